package cnitest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// The record of the last run, and the document made of it.
const (
	recordFile   = "../../docs/conformance.json"
	documentFile = "../../docs/conformance.md"
)

// conformance is the record: what came of each case for each plugin, and nothing that
// another machine or another day would change.
type conformance struct {
	Peers []*recordedPeer `json:"peers"`
}

type recordedPeer struct {
	Plugin  string          `json:"plugin"`
	From    string          `json:"from"`
	Profile cnitest.Profile `json:"profile"`
	Unable  string          `json:"unable,omitempty"` // why it could not be examined

	Verdicts map[string]cnitest.Verdict `json:"verdicts,omitempty"` // by case
}

func readRecord(t *testing.T) *conformance {
	t.Helper()
	data, err := os.ReadFile(recordFile)
	if os.IsNotExist(err) {
		return &conformance{}
	}
	require.NoError(t, err)
	r := &conformance{}
	require.NoError(t, json.Unmarshal(data, r))
	return r
}

func (r *conformance) write(t *testing.T) {
	t.Helper()
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(r))
	require.NoError(t, os.WriteFile(recordFile, buf.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(documentFile, []byte(r.document()), 0o644))
}

// peer is the entry of a plugin, which is made if it is not there.
func (r *conformance) peer(name string) *recordedPeer {
	for _, p := range r.Peers {
		if p.Plugin == name {
			return p
		}
	}
	p := &recordedPeer{Plugin: name}
	r.Peers = append(r.Peers, p)
	return p
}

// take puts a report into the record. Cases that were not run keep their verdicts, unless
// the kit has them no more.
func (p *recordedPeer) take(r *cnitest.Report, from string) {
	old := p.Verdicts
	if p.From != from {
		old = nil // of another version
	}
	p.Profile, p.From, p.Unable, p.Verdicts = r.Profile, from, "", map[string]cnitest.Verdict{}
	for _, c := range cnitest.Cases(r.Profile) {
		if verdict, ok := old[c.ID()]; ok {
			p.Verdicts[c.ID()] = verdict
		}
	}
	for _, o := range r.Outcomes {
		if p.races(o.ID()) && o.Verdict == cnitest.Kept && lost(old[o.ID()]) {
			continue
		}
		p.Verdicts[o.ID()] = o.Verdict
	}
}

// races reports whether a verdict may be luck: a case has a plugin race with itself, or
// reaches some of its moments, and the plugin is one that we do not keep from losing.
func (p *recordedPeer) races(id string) bool {
	return p.From != ours && (strings.HasPrefix(id, "concurrency/") || strings.HasPrefix(id, "faults/killed-"))
}

func lost(v cnitest.Verdict) bool { return v == cnitest.Broken || v == cnitest.Warned }

// ours is where our plugins come from.
const ours = "this repository"

// missing lists the cases that a plugin should have a verdict of, and has not, and those
// that the kit has not any more.
func (p *recordedPeer) missing() (ids []string) {
	if p.Unable != "" {
		return nil
	}
	stale := maps.Clone(p.Verdicts)
	for _, c := range cnitest.Cases(p.Profile) {
		if _, ok := p.Verdicts[c.ID()]; !ok {
			ids = append(ids, c.ID())
		}
		delete(stale, c.ID())
	}
	return append(ids, slices.Collect(maps.Keys(stale))...)
}

// TestConformanceRecord: the document shows the record, the record has the cases of the
// kit, and our plugins keep what there is to keep. A new case takes no run of all: the
// record can be brought up to date case by case.
func TestConformanceRecord(t *testing.T) {
	r := readRecord(t)
	document, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	require.Equal(t, r.document(), string(document), "docs/conformance.md is not what docs/conformance.json says: make conformance CASES='^$'")
	var missing []string
	for _, p := range r.Peers {
		missing = append(missing, p.missing()...)
		for id, verdict := range p.Verdicts {
			if p.From == ours && verdict != cnitest.Kept && verdict != cnitest.Skipped {
				t.Errorf("docs/conformance.json says of %s: %s %s", p.Plugin, verdict, id)
			}
		}
	}
	slices.Sort(missing)
	if missing = slices.Compact(missing); len(missing) > 0 {
		t.Errorf("the kit has other cases than docs/conformance.json: make conformance CASES='^(%s)$'", strings.Join(missing, "|"))
	}
}

// caseGroups lists the groups of cases in order.
func caseGroups() (names []string) {
	for _, c := range cnitest.Cases("") {
		if !slices.Contains(names, c.Group) {
			names = append(names, c.Group)
		}
	}
	return names
}

// cell counts the verdicts of a plugin in a group.
func (p *recordedPeer) cell(group string) string {
	count := map[cnitest.Verdict]int{}
	for _, c := range cnitest.Cases("") {
		if c.Group == group {
			count[p.Verdicts[c.ID()]]++
		}
	}
	if count[cnitest.Kept]+count[cnitest.Broken]+count[cnitest.Warned] == 0 {
		return "–"
	}
	cell := fmt.Sprint(count[cnitest.Kept])
	if n := count[cnitest.Broken]; n > 0 {
		cell += fmt.Sprintf(" **−%d**", n)
	}
	if n := count[cnitest.Warned]; n > 0 {
		cell += fmt.Sprintf(" ~%d", n)
	}
	return cell
}
