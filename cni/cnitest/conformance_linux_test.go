package cnitest_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestConformance runs the kit on the peers if CNIKIT_CONFORMANCE says so: "write" makes
// the record and the document, "check" compares with the record. CNIKIT_CONFORMANCE_CASES
// chooses cases, and -run .../PLUGIN plugins; the rest of the record stays. Make has it
// as "make conformance CASES=expression PLUGINS=expression".
func TestConformance(t *testing.T) {
	mode := os.Getenv("CNIKIT_CONFORMANCE")
	if mode == "" {
		return // the cases that matter most are in TestKnownFaults
	}
	require.Contains(t, []string{"write", "check"}, mode, "CNIKIT_CONFORMANCE")
	testenv.NetAdmin(t)
	path := peerDirs(t)
	old, record := readRecord(t), &conformance{}
	for _, p := range peers() { // in this order
		*record.peer(p.name) = *old.peer(p.name)
	}
	var lock sync.Mutex
	t.Run("of", func(t *testing.T) {
		for _, p := range peers() {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				report := p.examine(t, path)
				lock.Lock()
				defer lock.Unlock()
				record.enter(p, report, t)
			})
		}
	})
	if mode == "write" {
		record.write(t)
		return
	}
	for i, p := range record.Peers {
		p.compare(t, old.Peers[i])
	}
}

// examine runs the kit on a peer; nil if the machine does not allow it.
func (p peer) examine(t *testing.T, path []string) *cnitest.Report {
	t.Helper()
	if p.lacks() != "" {
		return nil
	}
	began := time.Now()
	report, err := cnitest.Examine(t.Context(), p.target(t, path), cnitest.Options{
		Run: os.Getenv("CNIKIT_CONFORMANCE_CASES"), Seed: 1,
	})
	require.NoError(t, err)
	for _, o := range report.Outcomes {
		t.Logf("%-8s %-40s %6d ms  %s%s", o.Verdict, o.ID(), o.Took.Milliseconds(), o.Seen, o.Reason)
	}
	t.Logf("%d cases in %s", len(report.Outcomes), time.Since(began).Round(time.Second))
	return report
}

// enter puts the outcome for a peer into the record. A machine that does not allow the
// peer says nothing about what another one found.
func (r *conformance) enter(p peer, report *cnitest.Report, t *testing.T) {
	entry, from := r.peer(p.name), ours
	if p.pkg != "" {
		from = reference + p.pkg + " " + referenceVersion(t)
	}
	switch {
	case report != nil:
		entry.take(report, from)
	case entry.Verdicts == nil:
		entry.From, entry.Unable = from, p.lacks()
	}
}

// compare fails for each case whose verdict is not the recorded one, unless that may be
// luck.
func (p *recordedPeer) compare(t *testing.T, old *recordedPeer) {
	t.Helper()
	for id, verdict := range p.Verdicts {
		was := old.Verdicts[id]
		switch {
		case was == verdict:
		case p.races(id):
			t.Logf("%s %s: %s, and the record has %q; the next run may find the same", p.Plugin, id, verdict, was)
		default:
			t.Errorf("%s %s: %s, and the record has %q", p.Plugin, id, verdict, was)
		}
	}
}
