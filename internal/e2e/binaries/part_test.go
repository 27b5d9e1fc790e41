package binaries

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartsAreStampedWithWhatIsPinned(t *testing.T) {
	repository, err := findRepository()
	require.NoError(t, err)
	parts, err := allParts(repository)
	require.NoError(t, err)
	programs := map[string]bool{}
	for _, p := range parts {
		for _, program := range p.programs() {
			programs[p.name+"/"+program] = true
		}
		switch p.name {
		case "kube":
			version := list(t, filepath.Join(repository, p.module), "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
			assert.Contains(t, p.stamps, "k8s.io/component-base/version.gitVersion="+version)
			assert.Contains(t, p.stamps, "k8s.io/component-base/version.gitMajor=1")
			assert.Contains(t, version, "v1."+strings.TrimPrefix(p.stamps[2], "k8s.io/component-base/version.gitMinor=")+".")
		case "containerd-1.6":
			assert.Contains(t, p.stamps[0], "github.com/containerd/containerd/version.Version=v1.6.")
		case "containerd-2.4":
			assert.Contains(t, p.stamps[0], "github.com/containerd/containerd/v2/version.Version=v2.4.")
		}
	}
	for _, name := range []string{"kube/kubelet", "containerd-1.6/ctr", "containerd-2.4/containerd-shim-runc-v2", "cni/host-local", "pause/pause"} {
		assert.True(t, programs[name], name)
	}
}

// The keys of our own programs are those of their directories.
func TestOwnProgramsNeedTheStandardLibraryAlone(t *testing.T) {
	repository, err := findRepository()
	require.NoError(t, err)
	module := filepath.Join(repository, e2e)
	for _, name := range []string{"pause", "trace"} {
		p := ownPart(name)
		deps := list(t, module, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", p.packages[0])
		assert.Equal(t, "github.com/cnikit/cnikit/"+p.inputs[0], deps)
	}
}

func list(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Env = dir, buildEnv()
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func TestPinned(t *testing.T) {
	repository := t.TempDir()
	write(t, repository, "m/go.mod", "module m\n\nrequire (\n\ta.example v1.2.3 // indirect\n)\n\n"+
		"require b.example v0.1.0\n\nreplace (\n\tc.example => c.example v1.0.0\n)\n")
	for required, want := range map[string]string{"a.example": "v1.2.3", "b.example": "v0.1.0"} {
		got, err := pinned(repository, "m", required)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := pinned(repository, "m", "c.example")
	require.ErrorContains(t, err, "does not require it")
	_, err = pinned(repository, "absent", "c.example")
	require.ErrorContains(t, err, "read the pinned version of c.example")
}
