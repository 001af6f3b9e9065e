package single

import (
	"crypto/sha1"
	_ "embed" // the scripts below
	"encoding/hex"
	"strings"
)

var (
	//go:embed lua/acquire.lua
	acquireSource string
	//go:embed lua/acquire_several.lua
	acquireSeveralSource string
	//go:embed lua/extend.lua
	extendSource string
	//go:embed lua/kind.lua
	kindSource string
	//go:embed lua/hold.lua
	holdSource string
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/counter.lua
	counterSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/release_bundle.lua
	releaseBundleSource string
	//go:embed lua/release_several.lua
	releaseSeveralSource string
	//go:embed lua/leave.lua
	leaveSource string
	//go:embed lua/keep.lua
	keepSource string
	//go:embed lua/raise.lua
	raiseSource string
	//go:embed lua/transfer.lua
	transferSource string
	//go:embed lua/announce.lua
	announceSource string
	//go:embed lua/inspect.lua
	inspectSource string
	//go:embed lua/share.lua
	shareSource string
	//go:embed lua/share_extend.lua
	shareExtendSource string
	//go:embed lua/share_release.lua
	shareReleaseSource string
)

// program numbers the scripts.
type program int

const (
	acquireProgram program = iota
	acquireSeveralProgram
	extendProgram
	releaseProgram
	releaseBundleProgram
	releaseSeveralProgram
	leaveProgram
	keepProgram
	raiseProgram
	transferProgram
	inspectProgram
	announceProgram
	shareProgram
	shareExtendProgram
	shareReleaseProgram
	numPrograms
)

// script is one Lua program and the SHA-1 under which a master remembers it.
type script struct {
	name   string
	source string
	sha    string
}

// scripts holds the programs. Tests compare their SHAs with a real redis-server's.
var scripts = [numPrograms]script{
	acquireProgram:        newScript("acquire", acquireSource),
	acquireSeveralProgram: newScript("acquire_several", acquireSeveralSource),
	extendProgram:         newScript("extend", extendSource),
	releaseProgram:        newScript("release", releaseSource),
	releaseBundleProgram:  newScript("release_bundle", releaseBundleSource),
	releaseSeveralProgram: newScript("release_several", releaseSeveralSource),
	leaveProgram:          newScript("leave", leaveSource),
	keepProgram:           newScript("keep", keepSource),
	raiseProgram:          newScript("raise", raiseSource),
	transferProgram:       newScript("transfer", transferSource),
	inspectProgram:        newScript("inspect", inspectSource),
	announceProgram:       newScript("announce", announceSource),
	shareProgram:          newScript("share", shareSource),
	shareExtendProgram:    newScript("share_extend", shareExtendSource),
	shareReleaseProgram:   newScript("share_release", shareReleaseSource),
}

// newScript replaces each include comment by the shared source. A script includes it after the code for the usual
// case, which does not need it.
func newScript(name, source string) script {
	source = strings.NewReplacer(
		"-- include kind.lua\n", kindSource, "-- include queue.lua\n", queueSource, "-- include counter.lua\n",
		counterSource,
		"-- include hold.lua\n", holdSource,
	).Replace(source)
	sum := sha1.Sum([]byte(source))
	return script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// program returns the script that performs the request.
func (r *Request) program() program {
	shared := r.Kind != Plain
	switch {
	case r.Op == Acquire && shared:
		return shareProgram
	case r.Op == Acquire:
		return acquireProgram
	case r.Op == Extend && shared:
		return shareExtendProgram
	case r.Op == Extend:
		return extendProgram
	case r.Op == Leave:
		return leaveProgram
	case r.Op == Release && shared:
		return shareReleaseProgram
	case r.Op == Release && r.Keep > 0:
		return keepProgram
	case r.Op == Release:
		return releaseProgram
	case r.Op == Raise:
		return raiseProgram
	case r.Op == Transfer:
		return transferProgram
	case r.Op == Announce:
		return announceProgram
	default:
		return inspectProgram
	}
}
