package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// showAtMost is up to how many pods the matrix has a row and a column each; with more, it
// has them for nodes.
const showAtMost = 8

// tooSlow is when a packet must have waited for the kernel to repeat a neighbour request,
// which it does after a second.
const tooSlow = time.Second

// enoughFailures is when pinging further pairs tells nothing new.
const enoughFailures = 4

// roundTrips are times of pings: from, to, family.
type roundTrips map[string]map[string]map[family]time.Duration

// pingPairs pings between all pods and prints the matrix.
func (l *lab) pingPairs(ctx context.Context) error {
	trips, err := l.pingAll(ctx)
	if err != nil {
		return err
	}
	l.out.say("round trips in ms, IPv4/IPv6%s", map[bool]string{true: ", the slowest of each pair of nodes"}[len(l.pods()) > showAtMost])
	l.out.table(trips.matrix(l.labels()))
	l.out.say("%s, none lost", l.pairs())
	return nil
}

// pairs says how many pings pingAll makes.
func (l *lab) pairs() string {
	n := len(l.pods())
	return count(n*(n-1), "pair") + " of pods in both families"
}

// labels are the rows and columns of the matrix.
func (l *lab) labels() []string {
	var labels []string
	for _, p := range l.pods() {
		if label := l.label(p); len(labels) == 0 || labels[len(labels)-1] != label {
			labels = append(labels, label)
		}
	}
	return labels
}

func (l *lab) label(p *pod) string {
	if len(l.pods()) > showAtMost {
		return p.node.member.Name
	}
	return p.name
}

// pingAll pings from every pod to every other one in both families.
func (l *lab) pingAll(ctx context.Context) (roundTrips, error) {
	trips := roundTrips{}
	var failed []string
	for _, from := range l.pods() {
		for _, to := range l.pods() {
			for _, f := range families() {
				if from == to || len(failed) >= enoughFailures {
					continue
				}
				took, err := from.ping(ctx, to, f)
				if ctx.Err() != nil {
					return nil, err
				}
				if err == nil && took >= tooSlow {
					err = fmt.Errorf("%s reply after %s", f, took)
				}
				if err != nil {
					failed = append(failed, fmt.Sprintf("%s to %s: %v", from.name, to.name, err))
				}
				trips.note(l.label(from), l.label(to), f, took)
			}
		}
	}
	if len(failed) > 0 {
		return nil, &failure{"a reply to every ping between pods, within a second", strings.Join(failed, "\n")}
	}
	return trips, nil
}

// ping sends one echo request to another pod.
func (p *pod) ping(ctx context.Context, to *pod, f family) (time.Duration, error) {
	return p.ns.Ping(ctx, cnitest.Ping{To: to.addrs[f]})
}

// note keeps the slowest.
func (t roundTrips) note(from, to string, f family, took time.Duration) {
	if t[from] == nil {
		t[from] = map[string]map[family]time.Duration{}
	}
	if t[from][to] == nil {
		t[from][to] = map[family]time.Duration{}
	}
	t[from][to][f] = max(t[from][to][f], took)
}

// matrix lays the times out.
func (t roundTrips) matrix(labels []string) (header []string, rows [][]string) {
	for _, from := range labels {
		row := []string{from}
		for _, to := range labels {
			cell := "-"
			if trip := t[from][to]; trip != nil {
				cell = fmt.Sprintf("%.2f/%.2f", trip[ipv4].Seconds()*1000, trip[ipv6].Seconds()*1000)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return append([]string{"FROM \\ TO"}, labels...), rows
}
