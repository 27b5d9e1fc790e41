package plugin_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

const shared = `"ranges":[[{"subnet":"10.1.0.0/27"}],[{"subnet":"fd00:1::/123"}]]`

// Both at work in one directory, sixteen calls in flight, and processes of both killed at
// any time: no address has two owners, and what a killed ADD took is freed by its DEL.
func TestKilledBesideHostLocal(t *testing.T) {
	ours, theirs := executables(t)
	both := []executable{ours, theirs.in(ours)}
	c := claims{owners: map[string]string{}}
	var killed [2]int
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range 16 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range testenv.Scale(t, 8) {
				id := fmt.Sprintf("w%d.%d", w, i)
				which := random.IntN(2)
				if random.IntN(2) == 0 {
					if both[which].kill(t, id, time.Duration(random.IntN(6000))*time.Microsecond) {
						mu.Lock()
						killed[which]++
						mu.Unlock()
					}
				} else if result, err := both[which].exec(t, cni.CommandAdd, id, shared, ""); err == nil {
					assert.NoError(t, c.claim(id, result))
					c.release(result)
				} else {
					assert.Regexp(t, "no free address|no IP addresses available", err.Error())
				}
				_, err := both[random.IntN(2)].exec(t, cni.CommandDel, id, shared, "")
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	t.Logf("killed %d of ours and %d of theirs", killed[0], killed[1])
	assert.NotZero(t, killed[0])
	for name, file := range ours.leases(t) {
		assert.Contains(t, file, `""`, "%s: only what host-local created and had not written to yet may stay", name)
	}
}

// kill starts an ADD and kills it after a while, unless it is done by then.
func (e executable) kill(t *testing.T, id string, after time.Duration) (killed bool) {
	cmd := exec.Command(filepath.Join(e.path, e.name))
	cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + id, "CNI_IFNAME=eth0", "CNI_NETNS=" + e.netns, "CNI_PATH=" + e.path}
	cmd.Stdin = bytes.NewBufferString(fmt.Sprintf(
		`{"cniVersion":"1.1.0","name":"net","type":"bridge","ipam":{"type":"host-local","dataDir":%q,%s}}`, e.dataDir, shared))
	if !assert.NoError(t, cmd.Start()) {
		return false
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait() != nil && !cmd.ProcessState.Exited()
}
