package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// backend notes the topologies it is given, and refuses them while err is set.
type backend struct {
	got []overlay.Topology
	err error
}

var _ overlay.Backend = (*backend)(nil)

func (*backend) Name() string                { return "fake" }
func (*backend) Overhead() int               { return 50 }
func (*backend) Targets() []reconcile.Target { return nil }

func (*backend) Cleanup(context.Context) error { return nil }

func (*backend) Watch(ctx context.Context, _ func(...reconcile.Target)) error {
	<-ctx.Done()
	return nil
}

func (b *backend) SetTopology(t overlay.Topology) error {
	b.got = append(b.got, t)
	return b.err
}

func (b *backend) last() overlay.Topology { return b.got[len(b.got)-1] }

func TestTracker(t *testing.T) {
	fresh := func(o overlay.TrackerOptions) (*overlay.Tracker, *backend) {
		b := &backend{}
		o.Local = onA
		return overlay.NewTracker(b, o), b
	}
	t.Run("sync/nothing before the first replace", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		tr.Upsert(good()[0])
		tr.Delete("a")
		tr.SetLocal(onA)
		require.Empty(t, b.got)
		_, known := tr.Topology()
		require.False(t, known)
		tr.Replace(nil)
		require.Len(t, b.got, 1, "an empty network is known too")
	})
	t.Run("changes/each one is planned and delivered", func(t *testing.T) {
		var told []overlay.Topology
		tr, b := fresh(overlay.TrackerOptions{OnTopology: func(top overlay.Topology) { told = append(told, top) }})
		tr.Replace(good()[:1])
		tr.Upsert(good()[1])
		require.Len(t, b.last().Peers, 1)
		tr.Delete("b")
		require.Empty(t, b.last().Peers)
		tr.SetLocal(overlay.Local{NodeName: "b"})
		require.Nil(t, b.last().Self)
		require.Len(t, b.got, 4)
		require.Equal(t, b.got, told)
		current, known := tr.Topology()
		require.True(t, known)
		require.Equal(t, b.last(), current)
	})
	t.Run("changes/of nothing that matters are not delivered", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		tr.Replace(good())
		tr.Replace(good())
		tr.Upsert(good()[1])
		tr.Delete("unknown")
		require.Len(t, b.got, 1)
	})
	t.Run("changes/a node recreated under its name is another one", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		tr.Replace(good())
		n := good()[1]
		n.UID = "another"
		tr.Upsert(n)
		require.Equal(t, overlay.TunnelMAC("another"), b.last().Peers[0].MAC)
	})
	t.Run("changes/what a source changes afterwards does not matter", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		nodes := good()
		tr.Replace(nodes)
		nodes[1].PodCIDRs[0] = "nonsense"
		tr.Delete("c")
		require.Empty(t, b.last().Problems)
	})
	t.Run("names/two nodes of one name are reported, and one replaces both", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		twin := node("b", 9, "192.0.2.9", "10.1.9.0/24")
		twin.UID = "twin"
		tr.Replace(append(good(), twin))
		require.Equal(t, overlay.BadName, b.last().Problems[0].Kind)
		tr.Upsert(good()[1])
		require.Empty(t, b.last().Problems)
	})
	t.Run("problems/are told when they change, and when they are over", func(t *testing.T) {
		var told [][]overlay.Problem
		tr, _ := fresh(overlay.TrackerOptions{OnProblems: func(ps []overlay.Problem) { told = append(told, ps) }})
		tr.Replace(good())
		require.Empty(t, told)
		tr.Upsert(node("x", 9, "192.0.2.9", "bad"))
		tr.Upsert(node("y", 9, "192.0.2.10", "10.1.10.0/24"))
		require.Len(t, told, 1)
		require.Equal(t, "x", told[0][0].Node)
		tr.Delete("x")
		require.Len(t, told, 2)
		require.Empty(t, told[1])
	})
	t.Run("no backend/the callbacks are told all the same", func(t *testing.T) {
		var told []overlay.Topology
		var problems []overlay.Problem
		tr := overlay.NewTracker(nil, overlay.TrackerOptions{
			Local:      onA,
			OnTopology: func(top overlay.Topology) { told = append(told, top) },
			OnProblems: func(ps []overlay.Problem) { problems = ps },
			OnError:    func(err error) { t.Error(err) },
		})
		tr.Replace(good())
		tr.Upsert(node("x", 9, "192.0.2.9", "bad"))
		tr.Upsert(good()[1])
		require.Len(t, told, 2, "the last changes nothing")
		require.Equal(t, "x", problems[0].Node)
		current, known := tr.Topology()
		require.True(t, known)
		require.Equal(t, told[1], current)
	})
	t.Run("errors/a refused topology is reported and offered again", func(t *testing.T) {
		var errs []error
		tr, b := fresh(overlay.TrackerOptions{OnError: func(err error) { errs = append(errs, err) }})
		b.err = errors.New("no room")
		tr.Replace(good())
		require.ErrorIs(t, errs[0], b.err)
		require.ErrorContains(t, errs[0], "backend fake")
		b.err = nil
		tr.Upsert(good()[0])
		tr.Upsert(good()[0])
		require.Len(t, b.got, 2)
	})
	t.Run("concurrent use/ends with what was last said of each node", func(t *testing.T) {
		tr, b := fresh(overlay.TrackerOptions{})
		tr.Replace(good()[:1])
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				name := fmt.Sprint("n", i)
				for j := range 50 {
					tr.Upsert(node(name, j, fmt.Sprint("198.51.100.", i), fmt.Sprintf("10.2.%d.0/24", i)))
					tr.Topology()
				}
				if i%2 == 0 {
					tr.Delete(name)
				}
			})
		}
		wg.Wait()
		require.Len(t, b.last().Peers, 4)
	})
}
