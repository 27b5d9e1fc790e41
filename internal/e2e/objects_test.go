package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

const (
	namespace = "kube-system"
	daemonSet = "cnikit"
)

// manifest reads the objects of a file of the deployment.
func manifest(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(filepath.Join(deploy, name))
	require.NoError(t, err)
	defer f.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// resource is where the API has objects of o's kind.
func (s *suite) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	where, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if o.GetNamespace() == "" {
		return s.dynamic.Resource(where)
	}
	return s.dynamic.Resource(where).Namespace(o.GetNamespace())
}

// apply creates or updates objects. The API server refuses fields that it does not know.
func (s *suite) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	force := true
	for _, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		_, err = s.resource(o).Patch(t.Context(), o.GetName(), types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: "e2e", Force: &force, FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
	}
}

// remove deletes objects and waits until they are gone, with what belongs to them.
func (s *suite) remove(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also when the test has ended
	foreground := metav1.DeletePropagationForeground
	for _, o := range objects {
		err := s.resource(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &foreground})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
		}
	}
	for _, o := range objects {
		await(t, fmt.Sprintf("%s %s gone", o.GetKind(), o.GetName()), func() string {
			_, err := s.resource(o).Get(ctx, o.GetName(), metav1.GetOptions{})
			return absent(err)
		})
	}
}

func absent(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return err.Error()
	}
	return "still there"
}

// agent is the deployment as its users have it, but for what a cluster without kube-proxy
// has to say: where the API server is.
func (s *suite) agent(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects := manifest(t, "cnikit.yaml")
	host, port := s.cluster.APIServer()
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" {
			setEnv(t, o, map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": host},
				map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": strconv.Itoa(port)})
		}
	}
	return objects
}

func setEnv(t *testing.T, o *unstructured.Unstructured, env ...any) {
	t.Helper()
	for _, kind := range []string{"initContainers", "containers"} {
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", kind)
		require.NoError(t, err)
		for _, c := range containers {
			c := c.(map[string]any)
			list, _ := c["env"].([]any)
			c["env"] = append(list, env...)
		}
		require.NoError(t, unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", kind))
	}
}

// installed makes sure that the agent runs on every node and every node is Ready.
func (s *suite) installed(t *testing.T) {
	t.Helper()
	s.apply(t, s.agent(t)...)
	s.settled(t)
}

// settled waits for an agent that is ready, and a Ready Node, everywhere.
func (s *suite) settled(t *testing.T) {
	t.Helper()
	await(t, "the agent is ready on every node", func() string {
		ds, err := s.apps.DaemonSets(namespace).Get(t.Context(), daemonSet, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		st := ds.Status
		if st.ObservedGeneration == ds.Generation && st.UpdatedNumberScheduled == int32(len(s.nodes)) && st.NumberReady == int32(len(s.nodes)) {
			return ""
		}
		return fmt.Sprintf("%d of %d ready, %d up to date", st.NumberReady, len(s.nodes), st.UpdatedNumberScheduled)
	})
	for _, n := range s.nodes {
		s.awaitReady(t, n.Name())
	}
}

// ready is the Ready condition of a Node; without one it is Unknown.
func (s *suite) ready(t *testing.T, node string) core.NodeCondition {
	t.Helper()
	n, err := s.core.Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		return core.NodeCondition{Status: core.ConditionUnknown, Message: err.Error()}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == core.NodeReady {
			return c
		}
	}
	return core.NodeCondition{Status: core.ConditionUnknown, Message: "no condition"}
}

func (s *suite) awaitReady(t *testing.T, node string) {
	t.Helper()
	await(t, node+" is Ready", func() string {
		if c := s.ready(t, node); c.Status != core.ConditionTrue {
			return fmt.Sprintf("%s: %s", c.Status, c.Message)
		}
		return ""
	})
}
