package manifests_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-624411e5/redlock/tools/manifests"
)

const (
	file     = "../../examples/kubernetes/masters.yaml"
	jobsFile = "../../examples/kubernetes/jobs.yaml"
)

func text(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func parsed(t *testing.T, text string) *manifests.Masters {
	t.Helper()
	m, err := manifests.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheManifestsKeepTheirPromises(t *testing.T) {
	for _, broken := range parsed(t, text(t)).Broken() {
		t.Errorf("%s: %s", file, broken)
	}
}

// broken has changes of the manifests, each with a part of the complaint that it must cause.
var broken = []struct{ old, new, says string }{
	{"replicas: 5", "replicas: 4", "4 masters"},
	{"replicas: 5", "replicas: 1", "1 masters"},
	{"clusterIP: None", "clusterIP: \"\"", "not headless"},
	{"serviceName: redlock", "serviceName: redis", "not there"},
	{"publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "loses its name"},
	{"  selector:\n    app: redlock-master", "  selector:\n    app: redlock", "service selects other"},
	{"AlwaysAllow\n  selector:\n    matchLabels:\n      app: redlock-master", "AlwaysAllow\n  selector:\n    " +
		"matchLabels:\n      app: other", "for other pods"},
	{"maxUnavailable: 1", "maxUnavailable: 2", "drain"},
	{"maxUnavailable: 1", "maxUnavailable: 50%", "drain"},
	{"maxUnavailable: 1", "minAvailable: 2", "drain"},
	{"AlwaysAllow", "IfHealthyBudget", "node from being drained"},
	{"              redlock-client: \"true\"", "              app: any", "others than clients"},
	{"          port: 6379", "          port: 6380", "others than clients"},
	{"policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "reach others"},
	{`on ">$JOBS_PASSWORD"`, "on nopass", "user of jobs"},
	{"type: RollingUpdate", "type: OnDelete", "update restarts"},
	{"type: RollingUpdate", "type: RollingUpdate\n    rollingUpdate:\n      maxUnavailable: 3", "update restarts"},
	{"type: RollingUpdate", "type: RollingUpdate\n    rollingUpdate:\n      partition: 2", "leaves masters out"},
	{"minReadySeconds: 60", "minReadySeconds: 5", "restart guard"},
	{"terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 0", "no time to stop"},
	{"topologyKey: kubernetes.io/hostname", "topologyKey: kubernetes.io/os", "on one node"},
	{
		"requiredDuringSchedulingIgnoredDuringExecution: # two on one node fail together\n            - " +
			"labelSelector:\n                matchLabels:\n                  app: redlock-master",
		"requiredDuringSchedulingIgnoredDuringExecution:\n            - labelSelector:\n                " +
			"matchLabels:\n                  app: other", "on one node",
	},
	{"whenUnsatisfiable: DoNotSchedule", "whenUnsatisfiable: ScheduleAnyway", "one zone"},
	{"maxSkew: 1", "maxSkew: 3", "one zone"},
	{"minDomains: 3", "minDomains: 1", "one zone"},
	{"minDomains: 3", "minDomains: 2", "one zone"},
	{"topologyKey: topology.kubernetes.io/zone", "topologyKey: topology.kubernetes.io/region", "one zone"},
	{"appendonly yes", "appendonly no", "appendonly"},
	{"appendfsync always", "appendfsync everysec", "appendfsync"},
	{"no-appendfsync-on-rewrite no", "no-appendfsync-on-rewrite yes", "no-appendfsync-on-rewrite"},
	{"maxmemory-policy noeviction", "maxmemory-policy allkeys-lru", "maxmemory-policy"},
	{"maxmemory 200mb", "maxmemory 600mb", "maxmemory"},
	{"dir /data", "dir /data\n    replicaof redlock-0.redlock 6379", "on its own"},
	{"dir /data", "dir /tmp", "data directory"},
	{"mountPath: /etc/redis", "mountPath: /etc/other", "not started with"},
	{"accessModes: [ReadWriteOnce]", "accessModes: [ReadWriteMany]", "data directory"},
	{"failureThreshold: 150", "failureThreshold: 5", "load its data"},
	{"failureThreshold: 6", "failureThreshold: 1", "slow for less"},
	{"tcpSocket:\n              port: redis", "exec:\n              command: [redis-cli, ping]", "accepts connections"},
	{"livenessProbe: # slow", "readinessProbe: # slow", ""},
	{"| grep -qx PONG'", "'", "the server's answer"},
	{`--requirepass "$PASSWORD"`, "", "no password"},
	{"runAsNonRoot: true", "runAsNonRoot: false", "as root"},
	{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "privileges"},
	{"image: redis:8.0", "image: redis", "no version"},
	// An API server refuses these.
	{"updateStrategy:", "updateStrategie:", ""},
	{"serviceName: redlock", "serviceName: redlock\n  serviceName: redlock", ""},
	{"replicas: 5", "replicas: five", ""},
	{"memory: 500Mi", "memory: 500 MB", ""},
	{"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets", ""},
	{"apiVersion: policy/v1", "apiVersion: policy/v1beta1", ""},
	{"kind: Service", "kind: ConfigMap", ""},
}

// The negative control: each broken promise causes its own complaint.
func TestABrokenManifestIsRefused(t *testing.T) {
	whole := text(t)
	for _, c := range broken {
		changed := strings.Replace(whole, c.old, c.new, 1)
		if changed == whole {
			t.Errorf("the manifests do not contain %q", c.old)
			continue
		}
		m, err := manifests.Parse([]byte(changed))
		if c.says == "" {
			if err == nil {
				t.Errorf("%q instead of %q is accepted by the parser", c.new, c.old)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q instead of %q: %v", c.new, c.old, err)
			continue
		}
		if found := strings.Join(m.Broken(), "\n"); !strings.Contains(found, c.says) {
			t.Errorf("%q instead of %q: found %q, want something about %q", c.new, c.old, found, c.says)
		}
	}
	if _, err := manifests.Parse([]byte(whole[:strings.LastIndex(whole, "\n---\n")])); err == nil {
		t.Error("manifests without a stateful set are accepted")
	}
}

func TestTheManifestsOfJobsKeepTheirPromises(t *testing.T) {
	raw, err := os.ReadFile(jobsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"replicas: 2", "replicas: 2", ""},
		{"replicas: 2", "replicas: 1", "take over"},
		{"backoffLimit: 0", "backoffLimit: 3", "repeated"},
		{"restartPolicy: Never", "restartPolicy: OnFailure", "again in its pod"},
		{"redlock-client: \"true\"", "app: report", "network policy"},
		{"terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 1", "no time to end"},
		{"name: REDLOCK_PASSWORD", "name: PASSWORD", "no password"},
		{"[redlock, run,", "[sh, run,", "does not run under redlock"},
		{"mountPath: /etc/redlock", "mountPath: /etc/other", "settings"},
		{"runAsNonRoot: true", "runAsNonRoot: false", "as root"},
	} {
		changed := strings.Replace(string(raw), c.old, c.new, 1)
		j, err := manifests.ParseJobs([]byte(changed))
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(j.Broken(), "\n"); !strings.Contains(found, c.says) || c.says == "" && found != "" ||
			changed == string(raw) && c.says != "" {
			t.Errorf("%q instead of %q: found %q, want something about %q", c.new, c.old, found, c.says)
		}
	}
}

// runJobs runs the commands of the manifests on the server with this socket.
func runJobs(t *testing.T, socket string) {
	t.Helper()
	raw, err := os.ReadFile(jobsFile)
	if err != nil {
		t.Fatal(err)
	}
	j, err := manifests.ParseJobs(raw)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "redlock"), "./cmd/redlock")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config := regexp.MustCompile(`@redlock-\d\.redlock:6379`).ReplaceAllString(j.Config.Data["config"], "@"+socket)
	config, _, _ = strings.Cut(strings.ReplaceAll(config, "redis://", "unix://"), ",") // one server is one master
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []corev1.PodTemplateSpec{j.Cron.Spec.JobTemplate.Spec.Template, j.Worker.Spec.Template} {
		args := slices.Clone(pod.Spec.Containers[0].Command[1:])
		args[len(args)-1] = "echo"
		for password, want := range map[string]bool{"jobs": true, "wrong": false} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "redlock"),
				append(slices.Insert(slices.Clone(args), 1, "-wait", "5s"), password)...)
			cmd.Env = append(os.Environ(), "REDLOCK_CONFIG="+filepath.Join(dir, "config"), "REDLOCK_PASSWORD="+password)
			if out, err := cmd.CombinedOutput(); strings.Contains(string(out), "jobs\n") != want ||
				(err == nil) != want {
				t.Errorf("%q with the password %s: %v, %s", args, password, err, out)
			}
		}
	}
}

// The server starts with the command and the configuration of the manifests, and its probe tells a right answer from a
// wrong one.
func TestTheServerStartsAsTheManifestsSay(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %v", err)
	}
	m := parsed(t, text(t))
	c := m.Set.Spec.Template.Spec.Containers[0]
	dir := t.TempDir()
	socket, config := filepath.Join(dir, "s"), filepath.Join(dir, "redis.conf")
	conf := strings.ReplaceAll(m.Config.Data["redis.conf"], "dir /data", "dir "+dir)
	if err := os.WriteFile(config, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	command := strings.ReplaceAll(c.Args[0], "/etc/redis/redis.conf", config) + " --port 0 --unixsocket " + socket
	server := exec.CommandContext(ctx, c.Command[0], append(c.Command[1:], command)...)
	server.Dir = dir
	server.Env = append(os.Environ(), "PASSWORD=right", "JOBS_PASSWORD=jobs")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // it is killed
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	conn := dial(t, socket, ended)
	if got := ask(t, conn, "PING"); !strings.HasPrefix(got[0], "-NOAUTH") {
		t.Errorf("without a password: %q", got)
	}
	if got := ask(t, conn, "AUTH right"); got[0] != "+OK" {
		t.Fatalf("AUTH: %q", got)
	}
	for directive, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "maxmemory": "209715200",
		"save": "", "dir": dir,
	} {
		if got := ask(t, conn, "CONFIG GET "+directive); got[len(got)-1] != want {
			t.Errorf("%s is %q, want %q", directive, got, want)
		}
	}
	if got := ask(t, conn, "FLUSHALL"); !strings.HasPrefix(got[0], "-ERR unknown command") {
		t.Errorf("FLUSHALL: %q", got)
	}
	runJobs(t, socket)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Log("there is no redis-cli: the probes were not run")
		return
	}
	for password, want := range map[string]bool{"right": true, "wrong": false} {
		probe := strings.Replace(c.ReadinessProbe.Exec.Command[2], "redis-cli", "redis-cli -s "+socket, 1)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", probe)
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
		if err := cmd.Run(); (err == nil) != want {
			t.Errorf("the probe with the %s password: %v", password, err)
		}
	}
}

// dial waits until the server listens.
func dial(t *testing.T, socket string, ended <-chan struct{}) net.Conn {
	t.Helper()
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			return conn
		}
		select {
		case <-ended:
			t.Fatal("the server has ended by itself")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ask sends a command and returns the lines of its reply; an array's are its strings.
func ask(t *testing.T, conn net.Conn, command string) []string {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	line := func() string {
		l, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return strings.TrimSuffix(l, "\r\n")
	}
	head := line()
	if head[0] != '*' {
		return []string{head}
	}
	var n int
	if _, err := fmt.Sscanf(head, "*%d", &n); err != nil || n == 0 {
		t.Fatalf("%s: %q, %v", command, head, err)
	}
	found := make([]string, n)
	for i := range found {
		line() // the length
		found[i] = line()
	}
	return found
}
