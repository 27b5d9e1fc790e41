package cni_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// guarded is a plugin that does not work in the host's namespace, and that records
// the namespaces it is called with.
func guarded() (plugin, *[]cni.NetNS) {
	var calls []cni.NetNS
	fn := func(_ context.Context, r *request) error {
		calls = append(calls, r.NetNS)
		return nil
	}
	p := testPlugin()
	p.AllowHostNetNS = false
	p.Del, p.Check = fn, fn
	p.Add = func(ctx context.Context, r *request) (*cni.Result, error) { return &cni.Result{}, fn(ctx, r) }
	return p, &calls
}

func TestNetNSGuard(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for name, c := range map[string]struct{ path, want string }{
		"the host's own":                    {"/proc/self/ns/net", "is the network namespace that the plugin itself runs in"},
		"the host's own under another name": {"/proc/thread-self/ns/net", "is the network namespace that the plugin itself runs in"},
		"a namespace of another kind":       {"/proc/self/ns/mnt", "is not a network namespace; pass the path of one"},
		"a plain file":                      {file, "is not a network namespace; pass the path of one"},
		"a FIFO":                            {fifo, "is not a network namespace"},
		"a directory":                       {dir, "is not a network namespace"},
		"a missing path":                    {filepath.Join(dir, "gone"), "does not exist; create the namespace before the ADD"},
		"a missing process":                 {"/proc/4194305/ns/net", "does not exist"},
		"below a file":                      {filepath.Join(file, "x"), "does not exist"},
		"a name that is too long":           {"/" + strings.Repeat("x", 300), "does not exist"},
	} {
		for _, command := range []string{"ADD", "CHECK"} {
			t.Run(name+"/"+command+" is refused before the handler runs", func(t *testing.T) {
				p, calls := guarded()
				e := run(p, environment(command, "CNI_NETNS="+c.path), network("1.0.0")).failed(t)
				assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
				assert.Contains(t, e.Msg, `CNI_NETNS="`+c.path+`" `+c.want)
				assert.Empty(t, *calls)
			})
		}
		t.Run(name+"/DEL finds it gone", func(t *testing.T) {
			p, calls := guarded()
			run(p, environment("DEL", "CNI_NETNS="+c.path), network("1.0.0")).succeeded(t, "")
			assert.Equal(t, []cni.NetNS{{Path: c.path, Gone: true}}, *calls)
		})
	}
	t.Run("none/DEL finds it gone", func(t *testing.T) {
		p, calls := guarded()
		run(p, environment("DEL", "CNI_NETNS"), network("1.0.0")).succeeded(t, "")
		assert.Equal(t, []cni.NetNS{{Gone: true}}, *calls)
	})
	for _, command := range []string{"STATUS", "GC"} {
		t.Run(command+" is about none", func(t *testing.T) {
			for _, path := range []string{"", file, ownNetNS} {
				p, calls := guarded()
				p.Status, p.GC = p.Del, p.Del
				run(p, environment(command, "CNI_NETNS="+path), network("1.1.0")).succeeded(t, "")
				assert.Equal(t, []cni.NetNS{{Path: path}}, *calls)
			}
		})
	}
	t.Run("AllowHostNetNS/covers the own one only", func(t *testing.T) {
		p, calls := guarded()
		p.AllowHostNetNS = true
		for _, command := range []string{"ADD", "CHECK", "DEL"} {
			assert.Zero(t, run(p, environment(command), network("1.0.0")).code)
		}
		assert.Equal(t, []cni.NetNS{{Path: ownNetNS}, {Path: ownNetNS}, {Path: ownNetNS}}, *calls)
		run(p, environment("ADD", "CNI_NETNS="+file), network("1.0.0")).failed(t)
	})
	t.Run("a loop of links is not known to be gone", func(t *testing.T) {
		loop := filepath.Join(dir, "loop")
		require.NoError(t, os.Symlink(loop, loop))
		p, calls := guarded()
		e := run(p, environment("DEL", "CNI_NETNS="+loop), network("1.0.0")).failed(t)
		assert.Equal(t, cni.CodeIO, e.Code)
		assert.Contains(t, e.Msg, "CNI_NETNS")
		assert.Empty(t, *calls)
	})
}

func TestNetNSGuardWithNamespace(t *testing.T) {
	testenv.NetAdmin(t)
	ns, err := netns.New()
	require.NoError(t, err)
	defer ns.Close()
	for _, command := range []string{"ADD", "CHECK", "DEL"} {
		t.Run(command+"/a namespace of a container is served", func(t *testing.T) {
			p, calls := guarded()
			assert.Zero(t, run(p, environment(command, "CNI_NETNS="+ns.Path()), network("1.0.0")).code)
			assert.Equal(t, []cni.NetNS{{Path: ns.Path()}}, *calls)
		})
	}
	t.Run("inside of it, it is the plugin's own", func(t *testing.T) {
		require.NoError(t, ns.Do(func() error {
			_, err := testHandlerIn(ns.Path())
			assert.ErrorContains(t, err, "is the network namespace that the plugin itself runs in")
			return nil
		}))
	})
	t.Run("inside of it, the host's is not", func(t *testing.T) {
		host, err := netns.Current()
		require.NoError(t, err)
		defer host.Close()
		require.NoError(t, ns.Do(func() error {
			calls, err := testHandlerIn(host.Path())
			assert.NoError(t, err)
			assert.Len(t, calls, 1)
			return nil
		}))
	})
}

// testHandlerIn calls a guarded plugin on the calling thread.
func testHandlerIn(path string) ([]cni.NetNS, error) {
	p, calls := guarded()
	_, err := p.Handler().Handle(context.Background(), cni.Invocation{
		Command: cni.CommandAdd, ContainerID: "c1", IfName: "eth0", NetNS: path, Config: []byte(network("1.0.0")),
	})
	return *calls, err
}
