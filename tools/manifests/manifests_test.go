// Package manifests_test holds the Kubernetes manifests of examples/ against docs/operate/operating.md.
package manifests_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	file     = "../../examples/kubernetes/masters.yaml"
	jobsFile = "../../examples/kubernetes/jobs.yaml"
)

// masters are the objects of one set of masters.
type masters struct {
	config corev1.ConfigMap
	set    appsv1.StatefulSet
}

// jobs are programs that run under locks of these masters.
type jobs struct {
	config corev1.ConfigMap
	cron   batchv1.CronJob
	worker appsv1.Deployment
}

func (m *masters) objects() map[metav1.TypeMeta]any {
	return map[metav1.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:                       &m.config,
		{APIVersion: "v1", Kind: "Service"}:                         new(corev1.Service),
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:      new(policyv1.PodDisruptionBudget),
		{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: new(networkingv1.NetworkPolicy),
		{APIVersion: "apps/v1", Kind: "StatefulSet"}:                &m.set,
	}
}

func (j *jobs) objects() map[metav1.TypeMeta]any {
	return map[metav1.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:       &j.config,
		{APIVersion: "batch/v1", Kind: "CronJob"}:   &j.cron,
		{APIVersion: "apps/v1", Kind: "Deployment"}: &j.worker,
	}
}

// parse reads a file of manifests as strictly as an API server with --validate=strict: a field that does not exist, or
// stands there twice, is an error. There must be one object of each kind, and no other.
func parse(raw []byte, into map[metav1.TypeMeta]any) error {
	reader := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer reader.Close()
	buffer := make([]byte, len(raw)+1)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var kind metav1.TypeMeta
		if err := sigsyaml.Unmarshal(buffer[:n], &kind); err != nil {
			return err
		}
		object, known := into[kind]
		if !known {
			return fmt.Errorf("%s %s is of an unknown kind, or there twice", kind.APIVersion, kind.Kind)
		}
		if err := sigsyaml.UnmarshalStrict(buffer[:n], object); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
		delete(into, kind)
	}
	for kind := range into {
		return fmt.Errorf("there is no %s", kind.Kind)
	}
	return nil
}

func text(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// kept are lines of the manifests without which a node, a zone, an update or a drain could take a majority, or a master
// could forget what it granted. The server's own settings are checked on a server.
var kept = map[string][]string{
	file: {
		"clusterIP: None", "publishNotReadyAddresses: true", "unhealthyPodEvictionPolicy: AlwaysAllow",
		"maxUnavailable: 1", "replicas: 5", "policyTypes: [Ingress, Egress]", "redlock-client: \"true\"",
		"type: RollingUpdate", "minReadySeconds: 60", "accessModes: [ReadWriteOnce]",
		"topologyKey: kubernetes.io/hostname", "topologyKey: topology.kubernetes.io/zone", "maxSkew: 1",
		"minDomains: 3", "whenUnsatisfiable: DoNotSchedule", "requiredDuringSchedulingIgnoredDuringExecution:",
		"failureThreshold: 150", "failureThreshold: 6",
		"runAsNonRoot: true", "allowPrivilegeEscalation: false",
	},
	jobsFile: {
		"replicas: 2", "backoffLimit: 0", "restartPolicy: Never", "redlock-client: \"true\"",
		"terminationGracePeriodSeconds: 30",
		"runAsNonRoot: true",
	},
}

func TestTheManifestsKeepTheirPromises(t *testing.T) {
	for path, lines := range kept {
		whole := text(t, path)
		for _, line := range lines {
			if !regexp.MustCompile(`(?m)^[ -]*` + regexp.QuoteMeta(line) + `( #.*)?$`).MatchString(whole) {
				t.Errorf("%s does not have %q any more", path, line)
			}
		}
	}
}

// The negative control: an API server refuses these, too.
func TestABrokenManifestIsRefused(t *testing.T) {
	whole := text(t, file)
	if err := parse([]byte(whole), new(masters).objects()); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{
		{"updateStrategy:", "updateStrategie:"},
		{"serviceName: redlock", "serviceName: redlock\n  serviceName: redlock"},
		{"replicas: 5", "replicas: five"},
		{"memory: 500Mi", "memory: 500 MB"},
		{"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets"},
		{"apiVersion: policy/v1", "apiVersion: policy/v1beta1"},
		{"kind: Service", "kind: ConfigMap"},
		{whole[strings.LastIndex(whole, "\n---\n"):], ""},
	} {
		changed := strings.Replace(whole, c[0], c[1], 1)
		if err := parse([]byte(changed), new(masters).objects()); err == nil || changed == whole {
			t.Errorf("%q instead of %q is accepted", c[1], c[0])
		}
	}
}

// runJobs runs the commands of the manifests on the server with this socket.
func runJobs(t *testing.T, socket string) {
	t.Helper()
	var j jobs
	if err := parse([]byte(text(t, jobsFile)), j.objects()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "redlock"), "./cmd/redlock")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config := regexp.MustCompile(`@redlock-\d\.redlock:6379`).ReplaceAllString(j.config.Data["config"], "@"+socket)
	config, _, _ = strings.Cut(strings.ReplaceAll(config, "redis://", "unix://"), ",") // one server is one master
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []corev1.PodTemplateSpec{j.cron.Spec.JobTemplate.Spec.Template, j.worker.Spec.Template} {
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
	var m masters
	if err := parse([]byte(text(t, file)), m.objects()); err != nil {
		t.Fatal(err)
	}
	c := m.set.Spec.Template.Spec.Containers[0]
	dir := t.TempDir()
	socket, config := filepath.Join(dir, "s"), filepath.Join(dir, "redis.conf")
	conf := strings.ReplaceAll(m.config.Data["redis.conf"], "dir /data", "dir "+dir)
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
