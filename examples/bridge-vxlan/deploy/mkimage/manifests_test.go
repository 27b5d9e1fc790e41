package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/install"
)

// These tests see whether manifests and image fit together. Whether an API server takes
// the manifests, field by field, is tested on a real one.

func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	require.NoError(t, err)
	return string(text)
}

// matches returns the groups of a pattern in a text which has some.
func matches(t *testing.T, text, pattern string) (found []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	require.NotEmpty(t, found, pattern)
	return found
}

// commands are those of containers and probes.
func commands(t *testing.T, text string) (found [][]string) {
	t.Helper()
	for _, list := range matches(t, text, `^ +command: \[(.*)\]$`) {
		found = append(found, strings.Split(list, ", "))
	}
	return found
}

func TestManifestsNameTheImage(t *testing.T) {
	o, err := parse(nil, nil)
	require.NoError(t, err)
	for _, name := range []string{"cnikit.yaml", "uninstall.yaml"} {
		text := manifest(t, name)
		for _, image := range matches(t, text, `^ +image: (.*)$`) {
			require.Equal(t, o.ref, image)
		}
		for _, command := range commands(t, text) {
			require.Equal(t, imageOf(o).Entrypoint[0], command[0])
		}
	}
}

// The instructions name containers and labels of the manifests.
func TestInstructionsFitTheManifests(t *testing.T) {
	text := manifest(t, "README.md")
	for _, container := range matches(t, text, `set image daemonset cnikit ([a-z]+)=.*$`) {
		require.Contains(t, matches(t, manifest(t, "cnikit.yaml"), `^ +- name: ([a-z]+)$`), container)
	}
	uninstall := manifest(t, "uninstall.yaml")
	for _, container := range matches(t, text, `logs -l app.kubernetes.io/name=cnikit-uninstall -c ([a-z]+) `) {
		require.Contains(t, matches(t, uninstall, `^ +- name: ([a-z]+)$`), container)
	}
	require.Contains(t, uninstall, "\n        app.kubernetes.io/name: cnikit-uninstall\n")
	for _, file := range matches(t, text, `-f examples/bridge-vxlan/deploy/([a-z.-]+)`) {
		require.FileExists(t, "../"+file)
	}
	for _, anchor := range matches(t, text, `\]\(#([a-z-]+)\)`) {
		require.Contains(t, anchors(t, text), anchor)
	}
}

// anchors are the headings as links name them.
func anchors(t *testing.T, text string) (found []string) {
	t.Helper()
	for _, heading := range matches(t, text, `^#+ (.*)$`) {
		found = append(found, strings.ReplaceAll(regexp.MustCompile(`[^a-z -]`).ReplaceAllString(strings.ToLower(heading), ""), " ", "-"))
	}
	return found
}

// A pod of an image without a shell that ends in an error says why by kubectl describe.
func TestContainersLeaveTheirLastWords(t *testing.T) {
	for _, name := range []string{"cnikit.yaml", "uninstall.yaml"} {
		text := manifest(t, name)
		require.Len(t, matches(t, text, `^ +terminationMessagePolicy: (FallbackToLogsOnError)$`), len(matches(t, text, `^ +image: (.*)$`)), name)
	}
}

func TestDockerfileMakesTheSameImage(t *testing.T) {
	text := manifest(t, "Dockerfile")
	for name, source := range sources() {
		require.Contains(t, text, "-o /out/"+name+" ./"+strings.TrimPrefix(source, "github.com/cnikit/cnikit/")+"\n")
	}
	i := imageOf(options{})
	require.Equal(t, i.Env, matches(t, text, `^ENV (PATH=.*)$`))
	entrypoint, err := json.Marshal(i.Entrypoint)
	require.NoError(t, err)
	require.Equal(t, []string{string(entrypoint)}, matches(t, text, `^ENTRYPOINT (.*)$`))
	require.Equal(t, []string{"/out/ /bin/"}, matches(t, text, `^COPY --from=build (.*)$`))
}

// TestReferenceBridge reads the template as the agent does, out of the block in the
// ConfigMap.
func TestReferenceBridge(t *testing.T) {
	_, block, found := strings.Cut(manifest(t, "reference-bridge.yaml"), "  conflist.template: |\n")
	require.True(t, found)
	template, err := install.ParseTemplate(strings.ReplaceAll("\n"+block, "\n    ", "\n"))
	require.NoError(t, err)
	conflist, err := template.Render(install.Network{
		Name: "cnikit", Bridge: "cni0", MTU: 1450, DataDir: "/var/lib/cni/networks",
		ReadyFile: "/run/cnikit/status.json", TunnelDevice: "cnikit.5000",
		Subnets: []install.Subnet{{Prefix: netip.MustParsePrefix("10.244.1.0/24")}, {Prefix: netip.MustParsePrefix("fd00:244:0:1::/64")}},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"cniVersion": "1.0.0", "cniVersions": ["1.0.0", "1.1.0"], "name": "cnikit",
		"plugins": [{
			"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "forceAddress": true, "hairpinMode": true, "mtu": 1450,
			"ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [
				[{"subnet": "10.244.1.0/24", "gateway": "10.244.1.1"}],
				[{"subnet": "fd00:244:0:1::/64", "gateway": "fd00:244:0:1::1"}]
			]}
		}]
	}`, string(conflist))
	_, err = template.Render(install.Network{Name: "cnikit", Bridge: "cni0", Subnets: []install.Subnet{{Prefix: netip.MustParsePrefix("10.244.1.0/24")}}})
	require.NoError(t, err, "before the MTU is known")
}
