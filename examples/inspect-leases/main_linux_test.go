package main

import (
	"crypto/sha512"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// node has a network, the plugin's executable, and libcni as its runtime.
type node struct {
	program string // inspect-leases
	cnitool string
	dir     string
	names   map[string]string // by the container ID that cnitool derives
}

func newNode(t *testing.T) *node {
	testenv.Root(t)
	n := &node{
		program: testenv.Build(t, "."), dir: t.TempDir(), names: map[string]string{},
		cnitool: filepath.Join(testenv.Peers(t, "github.com/containernetworking/cni/cnitool"), "cnitool"),
	}
	require.NoError(t, os.Mkdir(n.path("bin"), 0o755))
	require.NoError(t, os.Mkdir(n.path("cache"), 0o755))
	require.NoError(t, os.Symlink(testenv.Build(t, "../bridge-vxlan/ipam"), n.path("bin/cnikit-ipam")))
	n.configure(t, "pods", `{"type": "cnikit-ipam", "ipam": {"type": "cnikit-ipam", "dataDir": "`+n.path("networks")+`",
		"ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64", "rangeStart": "fd00::2", "rangeEnd": "fd00::5"}]]}}`)
	return n
}

func (n *node) configure(t *testing.T, file, plugin string) {
	config := `{"cniVersion": "1.0.0", "name": "pods", "plugins": [` + plugin + `]}`
	require.NoError(t, os.WriteFile(n.path(file+".conflist"), []byte(config), 0o600))
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// id is the container ID that cnitool derives from the path of a namespace.
func (n *node) id(name string) string {
	sum := sha512.Sum512([]byte(n.path(name)))
	return fmt.Sprintf("cnitool-%x", sum[:10])
}

// add attaches a container. cnitool keeps its cache in /var/lib/cni, so it gets one of
// its own there.
func (n *node) add(t *testing.T, name string) {
	n.names[n.id(name)] = name
	require.NoError(t, os.Symlink("/proc/self/ns/net", n.path(name)))
	const script = `mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/cni && mount --bind "$1/cache" /var/lib/cni && exec "$2" add pods "$3"`
	cmd := exec.CommandContext(t.Context(), testenv.Tool(t, "unshare"), "-m", "--propagation", "private",
		"sh", "-c", script, "sh", n.dir, n.cnitool, n.path(name))
	cmd.Env = append(os.Environ(), "CNI_PATH="+n.path("bin"), "NETCONFPATH="+n.dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// forget makes the runtime forget an attachment without DEL.
func (n *node) forget(t *testing.T, name string) {
	require.NoError(t, os.Remove(n.path("cache/results/pods-"+n.id(name)+"-eth0")))
}

// cache writes what a runtime keeps of an attachment.
func (n *node) cache(t *testing.T, dir, file, content string) {
	require.NoError(t, os.MkdirAll(n.path(dir+"/results"), 0o755))
	require.NoError(t, os.WriteFile(n.path(dir+"/results/"+file), []byte(content), 0o600))
}

func (n *node) age(t *testing.T, addr string, at time.Time) {
	require.NoError(t, os.Chtimes(n.path("networks/pods/"+addr), at, at))
}

// write makes an entry that is neither the plugin's nor new.
func (n *node) write(t *testing.T, addr, content string, at time.Time) {
	require.NoError(t, os.WriteFile(n.path("networks/pods/"+addr), []byte(content), 0o600))
	n.age(t, addr, at)
}

// list writes a file for -attachments.
func (n *node) list(t *testing.T, content string) string {
	require.NoError(t, os.WriteFile(n.path("list.json"), []byte(content), 0o600))
	return n.path("list.json")
}

func (n *node) inspect(t *testing.T, args ...string) (string, error) {
	args = append([]string{"-conf", n.path("pods.conflist"), "-cache", n.path("cache")}, args...)
	cmd := exec.CommandContext(t.Context(), n.program, args...)
	out, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(out), n.dir, "DIR")
	for id, name := range n.names {
		text = strings.ReplaceAll(text, id, name)
	}
	return regexp.MustCompile(` +`).ReplaceAllString(text, " "), err
}

func (n *node) leases(t *testing.T) string {
	names, err := filepath.Glob(n.path("networks/pods/[1f]*"))
	require.NoError(t, err)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return strings.Join(names, " ")
}

func TestInspect(t *testing.T) {
	n := newNode(t)
	for _, id := range []string{"kept", "lost", "young"} {
		n.add(t, id)
	}
	n.forget(t, "lost")
	n.forget(t, "young")
	n.cache(t, "cache", "other-lost-eth0", `{"kind":"cniCacheV1","networkName":"other","containerId":"`+n.id("lost")+`","ifName":"eth0"}`)
	hourAgo := time.Now().Add(-time.Hour)
	for _, addr := range []string{"10.1.0.2", "fd00::2", "10.1.0.3", "fd00::3"} {
		n.age(t, addr, hourAgo)
	}
	before := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	n.write(t, "10.1.0.20", n.id("kept"), before)
	n.write(t, "10.1.0.21", "gone\r\neth0", before)
	n.write(t, "10.9.0.9", n.id("kept")+"\r\neth0", before)
	n.write(t, "10.1.0.22", "? ? ?", before)
	require.NoError(t, os.Mkdir(n.path("networks/pods/10.1.0.23"), 0o755))
	require.NoError(t, os.Symlink("/gone", n.path("cache/results/pods-detached-eth0"))) // as when it is gone when it is read
	all := n.leases(t)

	report := `network pods, DIR/networks/pods: 9 leases
 10.1.0.2 kept/eth0
 10.1.0.3 lost/eth0 orphan
 10.1.0.4 young/eth0
 10.1.0.20 kept/ from before the machine was started
 10.1.0.21 gone/eth0 orphan, from before the machine was started
 10.9.0.9 kept/eth0 from before the machine was started, outside of the ranges
 fd00::2 kept/eth0
 fd00::3 lost/eth0 orphan
 fd00::4 young/eth0
set 0, 10.1.0.1-10.1.0.254: 7 of 253 used (97.2 % free)
set 1, fd00::2-fd00::5: 3 of 4 used (25.0 % free)
problem: DIR/networks/pods/10.1.0.22: its text is no record of a lease; garbage collection removes it
problem: DIR/networks/pods/10.1.0.23: is not a regular file of a lease's size; move it away if no container has the address: garbage collection does not touch what it did not write
`
	const young = "\n2 leases of no attachment are younger than 10m0s (-grace) and were left alone\n"
	out, err := n.inspect(t)
	require.NoError(t, err, out)
	assert.Equal(t, report+young+"\n3 leases are orphans; -delete releases them\n", out)
	assert.Equal(t, all, n.leases(t), "a dry run")

	out, err = n.inspect(t, "-delete")
	require.NoError(t, err, out)
	assert.Equal(t, report+young+"\n3 orphans released\n", out)
	assert.Equal(t, "10.1.0.2 10.1.0.20 10.1.0.22 10.1.0.23 10.1.0.4 10.9.0.9 fd00::2 fd00::4", n.leases(t))
	out, err = n.inspect(t)
	require.NoError(t, err)
	assert.NotContains(t, out, "orphan")
	assert.Contains(t, out, young)

	out, err = n.inspect(t, "-grace", "0", "-delete")
	require.NoError(t, err)
	assert.Contains(t, out, "\n2 orphans released\n", "of the young one")
	assert.NotContains(t, out, "younger")
}

func TestAttachmentsFromAList(t *testing.T) {
	n := newNode(t)
	n.add(t, "a")
	n.add(t, "b")
	list := n.list(t, fmt.Sprintf(`[{"containerID":%q,"ifname":"eth0"},{"containerID":%q,"ifname":"net1"}]`, n.id("a"), n.id("b")))
	out, err := n.inspect(t, "-attachments", list, "-grace", "0", "-delete")
	require.NoError(t, err, out)
	assert.Equal(t, "10.1.0.2 fd00::2", n.leases(t))
}

// Whoever cannot know what is attached releases nothing.
func TestUnknownAttachments(t *testing.T) {
	n := newNode(t)
	n.add(t, "a")
	n.forget(t, "a")
	all := n.leases(t)
	none := n.list(t, `[]`)
	n.cache(t, "cache", "pods-b-eth0", `{"kind":"cniCa`)
	n.cache(t, "foreign", "pods-c-eth0", `{"kind":"x"}`)
	n.configure(t, "plain", `{"type": "x"}`)
	n.configure(t, "dhcp", `{"type": "x", "ipam": {"type": "dhcp", "dataDir": "`+n.path("networks")+`", "subnet": "10.1.0.0/24"}}`)
	n.configure(t, "away", `{"type": "x", "ipam": {"type": "host-local", "dataDir": "`+n.path("netwroks")+`", "subnet": "10.1.0.0/24"}}`)
	n.configure(t, "broken", `{"type": "x", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "quarantine": "x"}}`)
	for want, args := range map[string][]string{
		"no such file":                {"-cache", n.path("elsewhere")},
		"b-eth0 is no attachment":     {},
		"c-eth0 is no attachment":     {"-cache", n.path("foreign")},
		"read attachments":            {"-attachments", n.path("pods.conflist")},
		"-conf is missing":            {"-conf", ""},
		"there are only flags":        {"extra"},
		"no plugin has an ipam.type":  {"-conf", n.path("plain.conflist")},
		`ipam.quarantine="x": is not`: {"-conf", n.path("broken.conflist")},
		`ipam.type "dhcp" keeps no leases in a directory of host-local; known are cnikit-ipam, host-local; -any-type`: {"-conf", n.path("dhcp.conflist")},
		"DIR/netwroks/pods does not exist: nothing was ever attached, or name or dataDir differ":                      {"-conf", n.path("away.conflist"), "-attachments", none},
	} {
		t.Run(want, func(t *testing.T) {
			out, err := n.inspect(t, append([]string{"-grace", "0", "-delete"}, args...)...)
			require.Error(t, err)
			assert.Contains(t, out, want)
			assert.Equal(t, all, n.leases(t))
		})
	}
}

// A list that may be meant otherwise than it would be read releases nothing.
func TestAttachmentsThatAreNone(t *testing.T) {
	n := newNode(t)
	n.add(t, "a")
	all := n.leases(t)
	const fix = `; write {"containerID": "web", "ifname": "eth0"}`
	for content, want := range map[string]string{
		`[{"containerID": "a"}]`:               `[0].ifname: is missing` + fix,
		`[{"containerID": "a", "ifname": ""}]`: `[0].ifname: is missing` + fix,
		`[{"ifname": "eth0"}]`:                 `[0].containerID: is missing` + fix,
		`[{}]`:                                 `[0].containerID: is missing` + fix,
		`[{"containerID": "a", "ifname": "eth0"}, null]`:          `[1].containerID: is missing` + fix,
		`[{"containerID": "a", "interface": "eth0"}]`:             `[0].interface: is no key of an attachment` + fix,
		`[{"containerId": "a", "ifname": "eth0"}]`:                `[0].containerId: is no key of an attachment` + fix,
		`[{"containerID": "a", "ifname": "eth0", "netns": "/x"}]`: `[0].netns: is no key of an attachment` + fix,
		`[{"containerID": "a", "ifname": 7}]`:                     `[0].ifname: is 7, want a string` + fix,
		`[{"containerID": "a", "ifname": "eth0 "}]`:               `[0]: invalid owner: ifname="eth0 " contains white space or control characters; use a name without them` + fix,
		`["a"]`:                                  `[0]: is "a", want an object` + fix,
		`null`:                                   `is no list; write [] if nothing is attached`,
		`{"containerID": "a", "ifname": "eth0"}`: `is no list; write [] if nothing is attached`,
		``:                                       `is no list; write [] if nothing is attached`,
		`[{"containerID": "a", "ifname": "eth0"}] []`: `is no list; write [] if nothing is attached`,
	} {
		t.Run(content, func(t *testing.T) {
			out, err := n.inspect(t, "-grace", "0", "-delete", "-attachments", n.list(t, content))
			require.Error(t, err)
			assert.Contains(t, out, "read attachments: DIR/list.json: "+want+"\n")
			assert.Equal(t, all, n.leases(t))
		})
	}
}

// Who insists is believed.
func TestOtherType(t *testing.T) {
	n := newNode(t)
	n.add(t, "a")
	n.configure(t, "pods", `{"type": "x", "ipam": {"type": "my-ipam", "dataDir": "`+n.path("networks")+`", "subnet": "10.1.0.0/24"}}`)
	n.forget(t, "a")
	out, err := n.inspect(t, "-any-type", "-grace", "0")
	require.NoError(t, err, out)
	assert.Contains(t, out, "\n2 leases are orphans; -delete releases them\n")
}

func TestOneLease(t *testing.T) {
	n := newNode(t)
	n.add(t, "a")
	require.NoError(t, os.Remove(n.path("networks/pods/fd00::2")))
	none := n.list(t, `[]`)
	for want, args := range map[string][]string{
		"pods: 1 lease\n": nil,
		"\n1 lease of no attachment is younger than 10m0s (-grace) and was left alone\n": nil,
		"\n1 lease is an orphan; -delete releases it\n":                                  {"-grace", "0"},
	} {
		out, err := n.inspect(t, append(args, "-attachments", none)...)
		require.NoError(t, err, out)
		assert.Contains(t, out, want)
	}
	out, err := n.inspect(t, "-attachments", none, "-grace", "0", "-delete")
	require.NoError(t, err, out)
	assert.Contains(t, out, "\n1 orphan released\n")
}

// The configuration that docs/ipam.md shows is one that a runtime and this program read.
func TestConfigurationOfTheManual(t *testing.T) {
	n := newNode(t)
	text, err := os.ReadFile("../../docs/ipam.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(text), "```json\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	require.Contains(t, block, `"type": "cnikit-ipam",`)
	block = strings.Replace(block, `"type": "cnikit-ipam",`, `"type": "cnikit-ipam", "dataDir": "`+n.path("networks")+`",`, 1)
	require.NoError(t, os.MkdirAll(n.path("networks/pods"), 0o755))
	require.NoError(t, os.WriteFile(n.path("pods.conflist"), []byte(block), 0o600))
	out, err := n.inspect(t, "-attachments", n.list(t, `[]`))
	require.NoError(t, err, out)
	assert.Contains(t, out, "network pods, DIR/networks/pods: 0 leases\nset 0, 10.244.1.1-10.244.1.254: 0 of 237 used (100.0 % free)\n")
}
