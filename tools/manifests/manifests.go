// Package manifests checks Kubernetes manifests of masters against the rules in docs/operate/operating.md. A master
// that has granted a lock must still know it after a restart. No node, zone or update may take away a majority.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Masters are the objects of one set of masters.
type Masters struct {
	Config  corev1.ConfigMap
	Service corev1.Service
	Budget  policyv1.PodDisruptionBudget
	Network networkingv1.NetworkPolicy
	Set     appsv1.StatefulSet
}

// Jobs are programs that run under locks of these masters.
type Jobs struct {
	Config corev1.ConfigMap
	Cron   batchv1.CronJob
	Worker appsv1.Deployment
}

// Parse reads the manifests of masters.
func Parse(raw []byte) (*Masters, error) {
	var m Masters
	return &m, parse(raw, map[metav1.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:                       &m.Config,
		{APIVersion: "v1", Kind: "Service"}:                         &m.Service,
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:      &m.Budget,
		{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: &m.Network,
		{APIVersion: "apps/v1", Kind: "StatefulSet"}:                &m.Set,
	})
}

// ParseJobs reads the manifests of jobs.
func ParseJobs(raw []byte) (*Jobs, error) {
	var j Jobs
	return &j, parse(raw, map[metav1.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:       &j.Config,
		{APIVersion: "batch/v1", Kind: "CronJob"}:   &j.Cron,
		{APIVersion: "apps/v1", Kind: "Deployment"}: &j.Worker,
	})
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
