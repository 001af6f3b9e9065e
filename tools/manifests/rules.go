package manifests

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	nodes = "kubernetes.io/hostname"
	zones = "topology.kubernetes.io/zone"
	// redisPort is the port in the service and in the container.
	redisPort = 6379
	// leastLiveness is the time, in seconds, of a master's silence before it may be restarted.
	leastLiveness = 60
	// leastStartup is the time, in seconds, that a master may need to load its data.
	leastStartup = 120
)

// findings are broken promises.
type findings []string

func (f *findings) want(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// Broken lists the promises that the manifests break; nil if they keep all.
func (m *Masters) Broken() []string {
	var f findings
	m.belongTogether(&f)
	m.spread(&f)
	m.oneAtATime(&f)
	m.persist(&f)
	m.probed(&f)
	confined(&f, m.redis(), m.Set.Spec.Template.Spec)
	m.secured(&f)
	return f
}

// redis is the server's container; an empty one unless there is exactly one.
func (m *Masters) redis() corev1.Container {
	if all := m.Set.Spec.Template.Spec.Containers; len(all) == 1 {
		return all[0]
	}
	return corev1.Container{}
}

// selects reports whether a selector is exactly the labels of the pods.
func (m *Masters) selects(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchExpressions) == 0 && len(s.MatchLabels) > 0 &&
		maps.Equal(s.MatchLabels, m.Set.Spec.Template.Labels)
}

// belongTogether checks that the objects refer to each other and that each master has its own name.
func (m *Masters) belongTogether(f *findings) {
	set, service := m.Set.Spec, m.Service.Spec
	f.want(len(set.Template.Spec.Containers) == 1 && len(set.Template.Spec.InitContainers) == 0,
		"a pod is one container")
	f.want(m.selects(set.Selector), "the stateful set does not select its own pods")
	f.want(m.selects(m.Budget.Spec.Selector), "the disruption budget is for other pods")
	f.want(maps.Equal(service.Selector, set.Template.Labels), "the service selects other pods")
	f.want(set.ServiceName == m.Service.Name, "the pods' names come from the service %q, which is not there",
		set.ServiceName)
	f.want(service.ClusterIP == corev1.ClusterIPNone, "the service is not headless: one name leads to any master, "+
		"which is one vote out of five")
	f.want(service.PublishNotReadyAddresses, "a master that is not ready loses its name")
	f.want(len(service.Ports) == 1 && service.Ports[0].Port == redisPort, "the service is not for port %d", redisPort)
	ports := m.redis().Ports
	f.want(len(ports) == 1 && ports[0].ContainerPort == redisPort && ports[0].HostPort == 0,
		"the container is not for port %d", redisPort)
}

// spread: two masters are never on one node. No zone has so many masters that the others are no quorum.
func (m *Masters) spread(f *findings) {
	n := 1
	if m.Set.Spec.Replicas != nil {
		n = int(*m.Set.Spec.Replicas)
	}
	f.want(n >= 3 && n%2 == 1, "%d masters: want an odd number, 3 or more", n)
	pod := m.Set.Spec.Template.Spec
	apart := pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil &&
		slices.ContainsFunc(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			func(t corev1.PodAffinityTerm) bool {
				return t.TopologyKey == nodes && m.selects(t.LabelSelector)
			})
	f.want(apart, "two masters may be on one node")
	zoned := slices.ContainsFunc(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		if c.TopologyKey != zones || c.WhenUnsatisfiable != corev1.DoNotSchedule || c.MaxSkew != 1 ||
			c.MinDomains == nil || !m.selects(c.LabelSelector) {
			return false
		}
		least := int(*c.MinDomains)
		return least > 0 && (n+least-1)/least < n/2+1 // masters in the fullest zone, with the least number of zones
	})
	f.want(zoned, "one zone may have a majority of the masters")
}

// oneAtATime: an update or a drain takes one master, and the next one only when the first has been back for a while.
func (m *Masters) oneAtATime(f *findings) {
	set, budget := m.Set.Spec, m.Budget.Spec
	one := intstr.FromInt32(1)
	rolling := set.UpdateStrategy.RollingUpdate
	f.want(set.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		(rolling == nil || rolling.MaxUnavailable == nil || *rolling.MaxUnavailable == one),
		"an update restarts more than one master at a time")
	f.want(rolling == nil || rolling.Partition == nil || *rolling.Partition == 0, "an update leaves masters out")
	f.want(set.MinReadySeconds >= 60, "an update goes on before a restart guard of a minute is over")
	f.want(budget.MinAvailable == nil && budget.MaxUnavailable != nil && *budget.MaxUnavailable == one,
		"a drain may take more than one master at a time")
	unhealthy := budget.UnhealthyPodEvictionPolicy
	f.want(unhealthy != nil && *unhealthy == policyv1.AlwaysAllow,
		"a master that is not ready keeps its node from being drained")
	grace := set.Template.Spec.TerminationGracePeriodSeconds
	f.want(grace == nil || *grace >= 10, "a master has no time to stop")
}

// persist: the server's configuration keeps every grant, on a separate volume of each master.
func (m *Masters) persist(f *findings) {
	c := m.redis()
	config, file := m.startedWith(c)
	f.want(config != nil, "the server is not started with a file of the config map")
	for directive, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no",
		"maxmemory-policy": "noeviction",
	} {
		f.want(config[directive] == want, "%s is %q in %s, want %q", directive, config[directive], file, want)
	}
	for _, directive := range []string{"replicaof", "slaveof", "cluster-enabled"} {
		f.want(config[directive] == "", "%s: %s: a master is on its own", file, directive)
	}
	claimed := slices.ContainsFunc(m.Set.Spec.VolumeClaimTemplates, func(v corev1.PersistentVolumeClaim) bool {
		return len(v.Spec.AccessModes) == 1 && strings.HasPrefix(string(v.Spec.AccessModes[0]), "ReadWriteOnce") &&
			!v.Spec.Resources.Requests.Storage().IsZero() && mounted(c, v.Name) == config["dir"]
	})
	f.want(claimed && config["dir"] != "", "the data directory %q is not on a volume of the master's own",
		config["dir"])
	kept := m.Set.Spec.PersistentVolumeClaimRetentionPolicy
	f.want(kept == nil || kept.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		"data is deleted with a master that is scaled away")
	f.want(below(config["maxmemory"], c.Resources.Limits.Memory()), "maxmemory %q is not below the container's limit",
		config["maxmemory"])
}

// mounted returns the path of a volume in the container.
func mounted(c corev1.Container, volume string) string {
	for _, v := range c.VolumeMounts {
		if v.Name == volume && v.SubPath == "" {
			return v.MountPath
		}
	}
	return ""
}

// startedWith returns the directives of the config map's file that the command names; nil if there is none.
func (m *Masters) startedWith(c corev1.Container) (directives map[string]string, file string) {
	for _, v := range m.Set.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil || v.ConfigMap.Name != m.Config.Name {
			continue
		}
		for name, text := range m.Config.Data {
			at := path.Join(mounted(c, v.Name), name)
			if slices.Contains(strings.Fields(strings.Join(append(c.Command, c.Args...), " ")), at) {
				return directivesOf(text), at
			}
		}
	}
	return nil, "no file"
}

func directivesOf(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found && name != "#" {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// below reports whether a size, in Redis's form, leaves a quarter of the limit free. A rewrite of the file needs that
// memory.
func below(size string, limit *resource.Quantity) bool {
	number, found := strings.CutSuffix(size, "mb")
	q, err := resource.ParseQuantity(number + "Mi")
	return found && err == nil && q.Value() > 0 && q.Value() <= limit.Value()*3/4
}

// probed: a probe does not restart a master that loads its data or is slow for a moment.
func (m *Masters) probed(f *findings) {
	c := m.redis()
	f.want(lasts(c.StartupProbe) >= leastStartup, "a master that takes %d s to load its data is restarted",
		leastStartup)
	f.want(lasts(c.ReadinessProbe) > 0, "no readiness probe: an update does not wait for a master")
	f.want(lasts(c.LivenessProbe) > 0, "no liveness probe: a master that hangs stays so")
	f.want(c.LivenessProbe == nil || lasts(c.LivenessProbe) >= leastLiveness,
		"a master that is slow for less than %d s is restarted", leastLiveness)
	f.want(c.LivenessProbe == nil || c.LivenessProbe.TCPSocket != nil,
		"the liveness probe asks for more than a process that accepts connections")
	for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe} {
		f.want(p != nil && p.Exec != nil && strings.Contains(strings.Join(p.Exec.Command, " "), "PONG"),
			"a probe does not check the server's answer")
	}
}

// lasts returns how long, in seconds, a probe must fail before it has an effect; 0 if there is no probe. The API's
// defaults are 10 s and three times.
func lasts(p *corev1.Probe) int {
	if p == nil || p.Exec == nil && p.TCPSocket == nil {
		return 0
	}
	period, failures := int(p.PeriodSeconds), int(p.FailureThreshold)
	if period == 0 {
		period = 10
	}
	if failures == 0 {
		failures = 3
	}
	return period * failures
}

// secured: passwords come from a secret, and none but clients reach the masters.
func (m *Masters) secured(f *findings) {
	c := m.redis()
	command := strings.Join(c.Args, " ")
	f.want(fromSecret(c, "PASSWORD") && strings.Contains(command, "--requirepass \"$PASSWORD\""),
		"the server has no password from a secret")
	f.want(fromSecret(c, "JOBS_PASSWORD") && strings.Contains(command, "--user jobs on \">$JOBS_PASSWORD\" resetkeys"),
		"the user of jobs has no password from a secret")
	pod := m.Set.Spec.Template.Spec.SecurityContext
	f.want(pod != nil && pod.FSGroup != nil, "the server can't write its volume")
	n := m.Network.Spec
	f.want(m.selects(&n.PodSelector) && len(n.PolicyTypes) == 2 && len(n.Egress) == 0, "the masters reach others")
	f.want(len(n.Ingress) == 1 && len(n.Ingress[0].From) == 1 && n.Ingress[0].From[0].PodSelector != nil &&
		maps.Equal(n.Ingress[0].From[0].PodSelector.MatchLabels, map[string]string{clientLabel: "true"}) &&
		len(n.Ingress[0].Ports) == 1 && n.Ingress[0].Ports[0].Port.IntValue() == redisPort,
		"others than clients reach the masters")
}

func fromSecret(c corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == name && e.Value == "" && e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil
	})
}

// confined: the program can do nothing but its work.
func confined(f *findings, c corev1.Container, spec corev1.PodSpec) {
	pod, s := spec.SecurityContext, c.SecurityContext
	f.want(pod != nil && pod.RunAsNonRoot != nil && *pod.RunAsNonRoot, "%s runs as root", c.Name)
	f.want(s != nil && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation &&
		s.Capabilities != nil && slices.Contains(s.Capabilities.Drop, "ALL"), "%s keeps privileges", c.Name)
	f.want(strings.Contains(c.Image, ":") && !strings.HasSuffix(c.Image, ":latest"),
		"the image %q has no version: a restart may change it", c.Image)
}

// clientLabel is what lets a pod reach the masters.
const clientLabel = "redlock-client"

// Broken lists the promises that the manifests of jobs do not keep.
func (j *Jobs) Broken() []string {
	var f findings
	cron := j.Cron.Spec
	f.want(cron.JobTemplate.Spec.BackoffLimit != nil && *cron.JobTemplate.Spec.BackoffLimit == 0,
		"a job that failed is repeated under the key of the first")
	f.want(cron.JobTemplate.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyNever,
		"a job is started again in its pod")
	f.want(j.Worker.Spec.Replicas != nil && *j.Worker.Spec.Replicas >= 2, "no worker waits to take over")
	for _, pod := range []corev1.PodTemplateSpec{cron.JobTemplate.Spec.Template, j.Worker.Spec.Template} {
		f.want(pod.Labels[clientLabel] == "true", "the network policy keeps a pod from the masters")
		f.want(pod.Spec.TerminationGracePeriodSeconds != nil && *pod.Spec.TerminationGracePeriodSeconds >= 30,
			"a program has no time to end")
		for _, c := range pod.Spec.Containers {
			confined(&f, c, pod.Spec)
			f.want(fromSecret(c, "REDLOCK_PASSWORD"), "%s has no password from a secret", c.Name)
			f.want(len(c.Command) > 2 && c.Command[0] == "redlock" && c.Command[1] == "run" && len(c.Args) == 0,
				"%s does not run under redlock", c.Name)
			at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.ConfigMap != nil && v.ConfigMap.Name == j.Config.Name
			})
			f.want(at >= 0 && mounted(c, pod.Spec.Volumes[max(at, 0)].Name) == "/etc/redlock",
				"%s does not find its settings", c.Name)
		}
	}
	return f
}
