package kube

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: agent}}]
clusters: [{name: lab, cluster: {server: "https://192.0.2.1:6443", certificate-authority: ca.crt}}]
users: [{name: agent, user: {token: secret}}]
`

func TestConfig(t *testing.T) {
	write := func(t *testing.T, content string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Run("file", func(t *testing.T) {
		path := write(t, kubeconfig)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "ca.crt"), nil, 0o600))
		c, err := Config(path)
		require.NoError(t, err)
		require.Equal(t, "https://192.0.2.1:6443", c.Host)
		require.Equal(t, "secret", c.BearerToken)
		require.Equal(t, filepath.Join(filepath.Dir(path), "ca.crt"), c.CAFile, "relative to the file")
	})
	errors := map[string]struct{ content, want string }{
		"no context":      {"apiVersion: v1\nkind: Config\n", "current-context is not set; choose one"},
		"unknown context": {"apiVersion: v1\nkind: Config\ncurrent-context: x\n", `context "x"`},
		"no YAML":         {"{", "read kubeconfig "},
		"empty":           {"", "current-context is not set"},
	}
	for name, tt := range errors {
		t.Run("file/"+name, func(t *testing.T) {
			path := write(t, tt.content)
			_, err := Config(path)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("file/missing", func(t *testing.T) {
		_, err := Config(filepath.Join(t.TempDir(), "kubeconfig"))
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "create it, or name none")
	})
	t.Run("in cluster/not in a pod", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		_, err := Config("")
		require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
		require.ErrorContains(t, err, "or name a kubeconfig")
	})
	t.Run("in cluster/no ServiceAccount", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
		t.Setenv("KUBERNETES_SERVICE_PORT", "443")
		_, err := Config("")
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, serviceAccountCA)
		require.ErrorContains(t, err, "automountServiceAccountToken")
	})
}

func TestNew(t *testing.T) {
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "use Config")
	_, err = New(&rest.Config{Host: "https://192.0.2.1:port"}, Options{})
	require.ErrorContains(t, err, `Host="https://192.0.2.1:port"`)

	config := &rest.Config{Host: "https://192.0.2.1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent/ca.crt"}}
	s, err := New(config, Options{})
	require.NoError(t, err, "no I/O")
	err = s.Run(context.Background(), keeper{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "watch Kubernetes Nodes: ")
	require.Nil(t, config.GroupVersion, "the caller's configuration is left alone")
	require.Nil(t, s.config.GroupVersion, "so that it can run again")
}
