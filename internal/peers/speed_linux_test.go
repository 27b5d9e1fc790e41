package peers_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// BenchmarkBesideHostLocal executes host-local and ours by turns, each in a directory of
// its own with as many leases, and reports the medians in milliseconds, their ratio, and
// how much longer ours takes than with the fewest leases. Apart it reports what is in the
// figures whatever the plugin does: the start of the process (of ours, answering
// VERSION), and what making one file durable takes on the file system, which ours does in
// ADD and host-local does not.
func BenchmarkBesideHostLocal(b *testing.B) {
	testenv.NetAdmin(b)
	ours := buildOurs(b)
	theirs := filepath.Join(testenv.Peers(b, "github.com/containernetworking/plugins/plugins/ipam/host-local"), "host-local")
	ns, err := netns.New()
	require.NoError(b, err)
	defer func() { _ = ns.Close() }()
	for _, fs := range []string{"tmpfs", "disk"} {
		parent := parentOn(b, fs)
		if parent == "" {
			b.Logf("no directory is on %s", fs)
			continue
		}
		fewest := map[string]time.Duration{} // ours, by operation
		for _, leases := range []int{100, 1_000, 10_000, 60_000} {
			b.Run(fmt.Sprintf("%s/%d", fs, leases), func(b *testing.B) {
				pair := [2]contender{
					{program: theirs, netns: ns.Path(), dataDir: dataDir(b, parent)},
					{program: ours, netns: ns.Path(), dataDir: dataDir(b, parent)},
				}
				for _, c := range pair {
					c.fill(b, leases)
					c.exec(b, "ADD", "first") // whatever a first call has to build
					c.exec(b, "DEL", "first")
				}
				for _, op := range operations {
					b.Run(op.name, func(b *testing.B) {
						ours := compareSpeed(b, pair, op)
						if fewest[op.name] == 0 {
							fewest[op.name] = ours
						}
						b.ReportMetric(float64(ours)/float64(fewest[op.name]), "growth")
					})
				}
			})
		}
	}
}

// operation is a command of which the time is measured, between two that keep the number
// of leases as it was.
type operation struct{ name, before, command, after string }

var operations = []operation{
	{name: "ADD", command: "ADD", after: "DEL"},
	{name: "DEL", before: "ADD", command: "DEL"},
	{name: "DEL-unknown", command: "DEL"},
}

// In each round ours is executed several times for host-local's once: a second of
// host-local leaves cold caches to what comes next.
const (
	rounds = 7
	turns  = 3
)

// compareSpeed returns the median of ours.
func compareSpeed(b *testing.B, pair [2]contender, op operation) time.Duration {
	var times [2][]time.Duration
	var starts, syncs []time.Duration
	for b.Loop() {
		for range rounds {
			times[0] = append(times[0], pair[0].measure(b, op))
			for range turns {
				times[1] = append(times[1], pair[1].measure(b, op))
			}
			starts = append(starts, took(func() { pair[1].exec(b, "VERSION", "") }))
			syncs = append(syncs, took(func() { makeDurable(b, pair[1].dataDir) }))
		}
	}
	theirs, ours := median(times[0]), median(times[1])
	b.ReportMetric(0, "ns/op") // of a whole round
	b.ReportMetric(milliseconds(theirs), "host-local-ms")
	b.ReportMetric(milliseconds(ours), "ours-ms")
	b.ReportMetric(float64(theirs)/float64(ours), "ratio")
	b.ReportMetric(milliseconds(median(starts)), "start-ms")
	b.ReportMetric(milliseconds(median(syncs)), "fsync-ms")
	return ours
}

// contender is an executable with a data directory.
type contender struct{ program, netns, dataDir string }

func (c contender) measure(b *testing.B, op operation) time.Duration {
	if op.before != "" {
		c.exec(b, op.before, "subject")
	}
	d := took(func() { c.exec(b, op.command, "subject") })
	if op.after != "" {
		c.exec(b, op.after, "subject")
	}
	return d
}

func (c contender) exec(b *testing.B, command, id string) {
	cmd := exec.Command(c.program)
	cmd.Env = []string{"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + id, "CNI_IFNAME=eth0", "CNI_NETNS=" + c.netns, "CNI_PATH=/nowhere"}
	cmd.Stdin = bytes.NewBufferString(fmt.Sprintf(
		`{"cniVersion":"1.0.0","name":"net","type":"bridge","ipam":{"type":"host-local","dataDir":%q,"subnet":"10.0.0.0/15"}}`, c.dataDir))
	out, err := cmd.Output()
	require.NoError(b, err, "%s: %s", command, out)
}

// fill writes leases as both plugins do.
func (c contender) fill(b *testing.B, leases int) {
	dir := filepath.Join(c.dataDir, "net")
	require.NoError(b, os.MkdirAll(dir, 0o755))
	addr := netip.MustParseAddr("10.0.0.1")
	for i := range leases {
		addr = addr.Next()
		owner := fmt.Sprintf("%064x\r\neth0", i)
		require.NoError(b, os.WriteFile(filepath.Join(dir, addr.String()), []byte(owner), 0o600))
	}
	require.NoError(b, os.WriteFile(filepath.Join(dir, "last_reserved_ip.0"), []byte(addr.String()), 0o600))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
}

// parentOn returns a directory on a file system of that kind, "" when none is known.
func parentOn(b *testing.B, fs string) string {
	const tmpfsMagic = 0x01021994 // statfs(2)
	for _, parent := range []string{"/dev/shm", os.TempDir(), cacheDir(b, "speed")} {
		var s syscall.Statfs_t
		if err := syscall.Statfs(parent, &s); err == nil && (s.Type == tmpfsMagic) == (fs == "tmpfs") {
			return parent
		}
	}
	return ""
}

func dataDir(b *testing.B, parent string) string {
	dir, err := os.MkdirTemp(parent, "cnikit-speed-")
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// makeDurable does for one file what a lease must not do without: it and its directory
// are on disk afterwards.
func makeDurable(b *testing.B, dir string) {
	path := filepath.Join(dir, "durable"+strconv.Itoa(os.Getpid()))
	f, err := os.Create(path)
	require.NoError(b, err)
	defer func() { _ = os.Remove(path) }()
	_, err = f.WriteString("a lease")
	require.NoError(b, err)
	require.NoError(b, f.Sync())
	require.NoError(b, f.Close())
	d, err := os.Open(dir)
	require.NoError(b, err)
	require.NoError(b, d.Sync())
	require.NoError(b, d.Close())
}

func took(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
