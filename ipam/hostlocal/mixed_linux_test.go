package hostlocal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// Two processes of ours, with six calls each in flight, and the reference plugin, with
// four, share a directory, and are killed at random. No address ever has two owners, and
// none is lost.
func TestMixedProcesses(t *testing.T) {
	testenv.Root(t) // of the kernel tier, as it builds somebody else's program
	const inFlight, theirs = 6, 4
	dataDir, claims := fastDir(t), fastDir(t)
	s, p, err := workerPool(dataDir)
	require.NoError(t, err)
	ref := &reference{
		exe:    filepath.Join(testenv.Peers(t, "github.com/containernetworking/plugins/plugins/ipam/host-local"), "host-local"),
		config: referenceConfig(dataDir), claims: claims, done: make(chan struct{}),
	}
	ours := []*worker{startWorker(t, dataDir, claims, "w0", inFlight), startWorker(t, dataDir, claims, "w1", inFlight)}
	for i := range theirs {
		ref.Go(func() { ref.work("ref" + strconv.Itoa(i)) })
	}
	for kill := range kills(t) {
		i := kill % len(ours)
		ours[i].progress(t, 5+rand.IntN(20))
		require.NoError(t, ours[i].cmd.Process.Kill())
		require.Error(t, ours[i].cmd.Wait())
		collect(t, s, p, claims, ours[i].name, true)
		ours[i] = startWorker(t, dataDir, claims, "k"+strconv.Itoa(kill), inFlight)
	}
	for _, w := range ours {
		w.progress(t, 10)
	}
	for _, w := range ours {
		w.stop(t)
	}
	close(ref.done)
	ref.Wait()
	for _, err := range ref.errs {
		require.NoError(t, err)
	}
	t.Logf("the reference plugin: %d leases, %d kills", ref.leases, ref.kills)
	assert.Positive(t, ref.leases)

	age(t, s)
	for name, content := range snapshot(t, s.dir) {
		if _, ok := addrOf(name); ok {
			assert.Empty(t, content, "%s is left: it is neither free nor as a killed host-local leaves it", name)
		}
	}
	requireTrue(t, s)
	for n := range 13 {
		allocate(t, p, strconv.Itoa(n))
	}
}

func referenceConfig(dataDir string) []byte {
	return fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"net","ipam":{"type":"host-local","dataDir":%q,
"ranges":[[{"subnet":"10.1.0.0/28"}],[{"subnet":"fd00::/124"}]]}}`, dataDir)
}

// reference executes the reference plugin as a runtime does: whatever became of an ADD,
// there is a DEL, until one succeeds.
type reference struct {
	sync.WaitGroup
	exe    string
	config []byte
	claims string
	done   chan struct{}

	mu            sync.Mutex
	errs          []error
	leases, kills int
}

func (r *reference) work(name string) {
	for n := 0; ; n++ {
		select {
		case <-r.done:
			return
		default:
		}
		if err := r.attach(name + "." + strconv.Itoa(n)); err != nil {
			r.mu.Lock()
			r.errs = append(r.errs, err)
			r.mu.Unlock()
			return
		}
	}
}

// attach is the life of one attachment.
func (r *reference) attach(container string) error {
	out, killed, addErr := r.run("ADD", container)
	if addErr == nil && !killed {
		if err := r.claim(container, out); err != nil {
			return err
		}
	}
	for {
		out, killed, err := r.run("DEL", container)
		if err == nil && !killed {
			return nil
		}
		if !killed {
			return fmt.Errorf("DEL %s: %w: %s", container, err, out)
		}
	}
}

// claim says for a moment whose the addresses are; see runWorker.
func (r *reference) claim(container string, result []byte) error {
	var got struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &got); err != nil || len(got.IPs) != 2 {
		return fmt.Errorf("result of %s: %w: %s", container, err, result)
	}
	for _, ip := range got.IPs {
		if err := os.Symlink(container, filepath.Join(r.claims, ip.Address.Addr().String())); err != nil {
			return fmt.Errorf("%s of %s has two owners: %w", ip.Address, container, err)
		}
	}
	r.mu.Lock()
	r.leases++
	r.mu.Unlock()
	for _, ip := range got.IPs {
		if err := os.Remove(filepath.Join(r.claims, ip.Address.Addr().String())); err != nil {
			return err
		}
	}
	return nil
}

// run executes one command, and kills it in one of four cases, at any time.
func (r *reference) run(command, container string) (out []byte, killed bool, err error) {
	cmd := exec.Command(r.exe)
	var buf bytes.Buffer
	cmd.Stdin, cmd.Stdout = bytes.NewReader(r.config), &buf
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+container, "CNI_NETNS=/none",
		"CNI_IFNAME=eth0", "CNI_PATH="+filepath.Dir(r.exe))
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	if rand.IntN(4) == 0 {
		timer := time.AfterFunc(rand.N(8*time.Millisecond), func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() == -1 {
		r.mu.Lock()
		r.kills++
		r.mu.Unlock()
		return nil, true, nil
	}
	return buf.Bytes(), false, err
}
