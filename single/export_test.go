package single

// Programs returns source and SHA of every script, to compare them with a server's.
func Programs() map[string][2]string {
	programs := make(map[string][2]string)
	for _, s := range &scripts {
		programs[s.name] = [2]string{s.source, s.sha}
	}
	return programs
}

// MaxBundle is the greatest number of keys in a bundle.
const MaxBundle = maxBundle
