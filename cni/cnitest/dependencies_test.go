package cnitest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// TestDependencies: the test of a plugin that imports the kit links these modules, and no
// others. The system calls are netlink's, too.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), testenv.Tool(t, "go"), "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	require.NoError(t, err)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	require.Equal(t, []string{
		"github.com/cnikit/cnikit",
		"github.com/containernetworking/cni",
		"github.com/vishvananda/netlink",
		"github.com/vishvananda/netns",
		"golang.org/x/sys",
	}, slices.Compact(modules))
}
