package plugin_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// executable is an IPAM plugin with a data directory, executed as a runtime does.
type executable struct {
	name    string // of the file
	path    string // its directory
	dataDir string
	netns   string
}

// executables returns our plugin and the reference plugin, with a data directory
// each and a namespace that both accept.
func executables(t *testing.T) (ours, theirs executable) {
	t.Helper()
	testenv.NetAdmin(t)
	own := testenv.Build(t, "../../examples/bridge-vxlan/ipam")
	reference := buildHostLocal(t)
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ns.Close()) })
	return executable{filepath.Base(own), filepath.Dir(own), t.TempDir(), ns.Path()},
		executable{filepath.Base(reference), filepath.Dir(reference), t.TempDir(), ns.Path()}
}

func buildHostLocal(t *testing.T) string {
	t.Helper()
	const pkg = "github.com/containernetworking/plugins/plugins/ipam/host-local"
	path := filepath.Join(t.TempDir(), "host-local")
	build := exec.Command(testenv.Tool(t, "go"), "build", "-C", "../../internal/peers", "-o", path, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "build %s: %s", pkg, out)
	return path
}

// in returns the executable with another's data directory.
func (e executable) in(o executable) executable {
	e.dataDir = o.dataDir
	return e
}

// exec runs one command. ipam are members of the ipam object, more members of the
// document.
func (e executable) exec(t *testing.T, command cni.Command, id, ipam, args string, more ...string) (*cni.Result, error) {
	t.Helper()
	members := append([]string{
		`"cniVersion":"1.1.0","name":"net","type":"bridge"`,
		fmt.Sprintf(`"ipam":{"type":"host-local","dataDir":%q,%s}`, e.dataDir, ipam),
	}, more...)
	out, err := cni.Exec{}.Execute(t.Context(), e.name, cni.Invocation{
		Command: command, ContainerID: id, NetNS: e.netns, IfName: "eth0", Args: args, Path: []string{e.path},
		Config: []byte("{" + strings.Join(members, ",") + "}"),
	})
	if err != nil || command != cni.CommandAdd {
		return nil, err
	}
	return cni.ParseResult(out, "1.1.0")
}

// listing returns the files of the network with mode and content.
func (e executable) listing(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(e.dataDir, "net"))
	require.NoError(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(e.dataDir, "net", entry.Name()))
		require.NoError(t, err)
		files[entry.Name()] = fmt.Sprintf("%v %q", info.Mode(), data)
	}
	return files
}

func (e executable) leases(t *testing.T) map[string]string {
	t.Helper()
	files := e.listing(t)
	maps.DeleteFunc(files, func(name, _ string) bool { return name == "lock" || strings.HasPrefix(name, "last_reserved_ip.") })
	return files
}

const (
	smallDualStack = `"ranges":[[{"subnet":"10.1.0.0/29"}],[{"subnet":"fd00:1::/125","rangeStart":"fd00:1::2"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"fd00::/8","gw":"fd00:1::1"}]`
	valid          = `"cni.dev/attachments":%[1]s,"cni.dev/valid-attachments":%[1]s`
)

// The same sequence of commands gives the same results and leaves the same bytes.
func TestSameAsHostLocal(t *testing.T) {
	ours, theirs := executables(t)
	for i, step := range []struct {
		command  cni.Command
		id, args string
		more     string
		differ   bool // their failed ADD has moved the round robin, ours has not
	}{
		{command: cni.CommandAdd, id: "a"},
		{command: cni.CommandAdd, id: "b"},
		{command: cni.CommandCheck, id: "a"},
		{command: cni.CommandCheck, id: "unknown"},
		{command: cni.CommandDel, id: "a"},
		{command: cni.CommandDel, id: "a"},
		{command: cni.CommandDel, id: "unknown"},
		{command: cni.CommandAdd, id: "c"},
		{command: cni.CommandAdd, id: "d", args: "IP=10.1.0.6"},
		{command: cni.CommandAdd, id: "e", args: "IP=10.1.0.6"},
		{command: cni.CommandAdd, id: "e", args: "IP=10.1.0.1"},
		{command: cni.CommandAdd, id: "e", args: "IP=10.9.0.1", differ: true},
		{command: cni.CommandAdd, id: "e", args: "IgnoreUnknown=1;IP=10.1.0.5", more: `"args":{"cni":{"ips":["fd00:1::7"]}}`},
		{command: cni.CommandAdd, id: "f"},
		{command: cni.CommandAdd, id: "full"},
		{command: cni.CommandDel, id: "c"},
		{command: cni.CommandAdd, id: "g", more: `"runtimeConfig":{"ips":["fd00:1::4/125"]}`},
		{command: cni.CommandGC, more: fmt.Sprintf(valid, `[{"containerID":"g","ifname":"eth0"},{"containerID":"b","ifname":"net1"}]`)},
		{command: cni.CommandAdd, id: "h", more: `"runtimeConfig":{"ipRanges":[[{"subnet":"10.7.0.0/24"}]]}`},
		{command: cni.CommandGC, more: fmt.Sprintf(valid, `[]`)},
		{command: cni.CommandAdd, id: "i"},
	} {
		t.Run(fmt.Sprintf("%02d %s %s %s", i, step.command, step.id, step.args), func(t *testing.T) {
			var more []string
			if step.more != "" {
				more = append(more, step.more)
			}
			want, wantErr := theirs.exec(t, step.command, step.id, smallDualStack, step.args, more...)
			got, err := ours.exec(t, step.command, step.id, smallDualStack, step.args, more...)
			assert.Equal(t, wantErr == nil, err == nil, "theirs: %v\nours: %v", wantErr, err)
			assert.Equal(t, want, got)
			if step.differ {
				assert.Equal(t, theirs.leases(t), ours.leases(t))
				return
			}
			assert.Equal(t, theirs.listing(t), ours.listing(t))
		})
	}
	assert.NotEmpty(t, theirs.leases(t))
}

// Either can go on where the other stopped.
func TestInterchangeWithHostLocal(t *testing.T) {
	ours, theirs := executables(t)
	for name, pair := range map[string][2]executable{
		"theirs, then ours": {theirs, ours.in(theirs)},
		"ours, then theirs": {ours, theirs.in(ours)},
	} {
		t.Run(name, func(t *testing.T) {
			adds, goesOn := pair[0], pair[1]
			result, err := adds.exec(t, cni.CommandAdd, "a", smallDualStack, "")
			require.NoError(t, err)
			_, err = goesOn.exec(t, cni.CommandCheck, "a", smallDualStack, "")
			require.NoError(t, err)
			_, err = goesOn.exec(t, cni.CommandDel, "a", smallDualStack, "")
			require.NoError(t, err)
			assert.Empty(t, adds.leases(t))
			_, err = adds.exec(t, cni.CommandCheck, "a", smallDualStack, "")
			require.Error(t, err)
			next, err := goesOn.exec(t, cni.CommandAdd, "b", smallDualStack, "")
			require.NoError(t, err)
			assert.Equal(t, result.IPs[0].Address.Addr().Next(), next.IPs[0].Address.Addr(), "the round robin goes on")
			_, err = adds.exec(t, cni.CommandGC, "", smallDualStack, "", fmt.Sprintf(valid, `[]`))
			require.NoError(t, err)
			assert.Empty(t, adds.leases(t))
		})
	}
	t.Run("alternating", func(t *testing.T) {
		both := []executable{ours, theirs.in(ours)}
		owners := map[string]string{}
		for i := range 5 {
			id := "c" + strconv.Itoa(i)
			result, err := both[i%2].exec(t, cni.CommandAdd, id, smallDualStack, "")
			require.NoError(t, err)
			for _, ip := range result.IPs {
				require.Empty(t, owners[ip.Address.String()], "%s is given twice", ip.Address)
				owners[ip.Address.String()] = id
			}
		}
		for i := range 5 {
			_, err := both[(i+1)%2].exec(t, cni.CommandDel, "c"+strconv.Itoa(i), smallDualStack, "")
			require.NoError(t, err)
		}
		assert.Empty(t, ours.leases(t))
	})
	t.Run("an empty file that host-local left is free", func(t *testing.T) {
		path := filepath.Join(ours.dataDir, "net", "10.1.0.3")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, old, old))
		_, err := ours.exec(t, cni.CommandAdd, "a", smallDualStack, "IP=10.1.0.3")
		require.NoError(t, err)
		_, err = theirs.in(ours).exec(t, cni.CommandCheck, "a", smallDualStack, "")
		require.NoError(t, err)
		_, err = theirs.in(ours).exec(t, cni.CommandDel, "a", smallDualStack, "")
		require.NoError(t, err)
		assert.Empty(t, ours.leases(t))
	})
}

// Both at work in one directory, sixteen calls in flight: never a duplicate.
func TestConcurrentWithHostLocal(t *testing.T) {
	ours, theirs := executables(t)
	both := []executable{ours, theirs.in(ours)}
	c := claims{owners: map[string]string{}}
	const ranges = `"ranges":[[{"subnet":"10.1.0.0/28"}],[{"subnet":"fd00:1::/124"}]]`
	var group sync.WaitGroup
	for w := range 16 {
		group.Go(func() {
			for i := range 6 {
				id := fmt.Sprintf("w%d.%d", w, i)
				adds, deletes := both[(w+i)%2], both[(w+i/2)%2]
				result, err := adds.exec(t, cni.CommandAdd, id, ranges, "")
				if err == nil {
					assert.NoError(t, c.claim(id, result))
					c.release(result)
				} else {
					assert.Regexp(t, "no free address|no IP addresses available", err.Error())
				}
				_, err = deletes.exec(t, cni.CommandDel, id, ranges, "")
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	assert.Empty(t, ours.leases(t))
}

// claims notes who was given which address.
type claims struct {
	mu     sync.Mutex
	owners map[string]string
}

func (c *claims) claim(id string, r *cni.Result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, ip := range r.IPs {
		if o := c.owners[ip.Address.String()]; o != "" {
			errs = append(errs, fmt.Errorf("%s has two owners, %s and %s", ip.Address, o, id))
		}
		c.owners[ip.Address.String()] = id
	}
	return errors.Join(errs...)
}

func (c *claims) release(r *cni.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ip := range r.IPs {
		delete(c.owners, ip.Address.String())
	}
}
