package vxlan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/nl"
)

func TestEventsConcernTargets(t *testing.T) {
	b, err := New(Config{})
	require.NoError(t, err)
	const tunnel, parent, other = 10, 2, 33
	all := "device sysctls addresses forwarding entries neighbours routes"
	for _, k := range []struct {
		name           string
		event          nl.Event
		tunnel, parent int
		want           string
	}{
		{"lost events", nl.Event{Kind: nl.Overflow}, tunnel, parent, all},
		{"our device", nl.Event{Kind: nl.LinkEvent, Link: tunnel}, tunnel, parent, all},
		{"underlay", nl.Event{Kind: nl.LinkEvent, Link: parent}, tunnel, parent, all},
		{"another link", nl.Event{Kind: nl.LinkEvent, Link: other}, tunnel, parent, ""},
		{"another link while ours is missing", nl.Event{Kind: nl.LinkEvent, Link: other}, 0, parent, all},
		{"another link while the underlay is missing", nl.Event{Kind: nl.LinkEvent, Link: other}, tunnel, 0, all},
		{"own address", nl.Event{Kind: nl.AddrEvent, Link: tunnel}, tunnel, parent, "addresses routes"},
		{"underlay address", nl.Event{Kind: nl.AddrEvent, Link: parent}, tunnel, parent, "device routes"},
		{"address anywhere", nl.Event{Kind: nl.AddrEvent, Link: other}, tunnel, parent, "device routes"},
		{"own route", nl.Event{Kind: nl.RouteEvent, Link: tunnel}, tunnel, parent, "routes"},
		{"underlay route", nl.Event{Kind: nl.RouteEvent, Link: parent}, tunnel, parent, "routes"},
		{"pod's route", nl.Event{Kind: nl.RouteEvent, Link: other}, tunnel, parent, ""},
		{"route over several links", nl.Event{Kind: nl.RouteEvent}, tunnel, parent, "routes"},
		{"own neighbour", nl.Event{Kind: nl.NeighEvent, Link: tunnel}, tunnel, parent, "forwarding entries neighbours"},
		{"underlay neighbour", nl.Event{Kind: nl.NeighEvent, Link: parent}, tunnel, parent, ""},
		{"forwarding of all", nl.Event{Kind: nl.NetconfEvent, Link: -1}, tunnel, parent, "sysctls"},
		{"forwarding of another", nl.Event{Kind: nl.NetconfEvent, Link: other}, tunnel, parent, ""},
		{"rule", nl.Event{Kind: nl.RuleEvent}, tunnel, parent, ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			b.kernel.saw(k.tunnel, k.parent)
			var names []string
			for _, target := range b.concerned([]nl.Event{k.event, k.event}) {
				names = append(names, strings.TrimPrefix(target.Name(), "vxlan "))
			}
			assert.Equal(t, k.want, strings.Join(names, " "))
		})
	}
}
