package cnitest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// busy is how long a plugin that answers may take in the tests of those that do not: a
// machine with other things to do gives a shell its first turn late.
const busy = 2 * time.Second

type anyConfig struct{}

// passing is a chained plugin that changes nothing.
func passing() cni.Handler {
	return cni.Plugin[anyConfig]{
		Type:   "passing",
		Add:    func(_ context.Context, r *cni.Request[anyConfig]) (*cni.Result, error) { return r.PrevResult, nil },
		Del:    cni.NoState[anyConfig],
		Check:  cni.NoState[anyConfig],
		Status: cni.Ready[anyConfig],
		GC:     cni.NoState[anyConfig],
	}.Handler()
}

// handler changes what another one answers.
type handler struct {
	cni.Handler
	change func(inv cni.Invocation, out []byte, err error) ([]byte, error)
}

func (h handler) Handle(ctx context.Context, inv cni.Invocation) ([]byte, error) {
	out, err := h.Handler.Handle(ctx, inv)
	return h.change(inv, out, err)
}

func examine(t *testing.T, h cni.Handler, o cnitest.Options) *cnitest.Report {
	t.Helper()
	testenv.NetAdmin(t)
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"name": "net", "type": "passing"}`), Profile: cnitest.ProfileChained, Handler: h,
	}, o)
	require.NoError(t, err)
	return r
}

func verdicts(r *cnitest.Report, v cnitest.Verdict) (ids []string) {
	for _, o := range r.Outcomes {
		if o.Verdict == v {
			ids = append(ids, o.ID())
		}
	}
	return ids
}

func TestExamineFindsTheOneFault(t *testing.T) {
	loud := handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command == cni.CommandVersion {
			out = []byte(`{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}`)
		}
		return out, err
	}}
	o := cnitest.Options{Run: "^(protocol|version)/", Seed: 7}
	good := examine(t, passing(), o)
	require.Empty(t, verdicts(good, cnitest.Broken))
	require.Empty(t, verdicts(good, cnitest.FailedToRun))
	require.NotEmpty(t, verdicts(good, cnitest.Kept))
	require.EqualValues(t, 7, good.Seed)

	bad := examine(t, loud, o)
	require.Equal(t, []string{"version/echo"}, verdicts(bad, cnitest.Broken))
	require.Equal(t, len(good.Outcomes), len(bad.Outcomes))
	for _, o := range bad.Outcomes {
		if o.Verdict == cnitest.Broken {
			require.Contains(t, o.Seen, `VERSION with cniVersion "1.0.0" answers cniVersion "1.1.0"`)
		}
	}
}

func TestOptionsChooseCases(t *testing.T) {
	r := examine(t, passing(), cnitest.Options{Run: "^version/", Skip: "echo$"})
	require.Equal(t, []string{"version/answer", "version/environment", "version/unsupported", "version/known"}, verdicts(r, cnitest.Kept))
	require.Equal(t, cni.SupportedVersions(), r.Versions)
}

// TestParallel: the report is the same, in the same order.
func TestParallel(t *testing.T) {
	o := cnitest.Options{Run: "^(version|del)/", Seed: 1}
	told := func() (said []string) {
		for _, outcome := range examine(t, flawed(), o).Outcomes {
			said = append(said, outcome.ID()+" "+string(outcome.Verdict)+" "+outcome.Reason)
		}
		return said
	}
	want := told()
	require.Contains(t, want, "version/echo broken ")
	o.Parallel = true
	require.Equal(t, want, told())
}

// TestParallelCasesMeet: the first ADD is answered when another case makes one.
func TestParallelCasesMeet(t *testing.T) {
	var calls atomic.Int32
	met := make(chan struct{})
	waiting := handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command != cni.CommandAdd {
			return out, err
		}
		if calls.Add(1) == 2 {
			close(met)
		}
		select {
		case <-met:
			return out, err
		case <-time.After(30 * time.Second):
			return nil, errors.New("no other case came")
		}
	}}
	r := examine(t, waiting, cnitest.Options{Run: "^(protocol/result|del/succeeds)$", Timeout: time.Minute, Parallel: true})
	require.Equal(t, []string{"protocol/result", "del/succeeds"}, verdicts(r, cnitest.Kept))
}

func TestBudget(t *testing.T) {
	r := examine(t, passing(), cnitest.Options{Run: "^version/", Budget: time.Nanosecond})
	require.Len(t, r.Outcomes, 5)
	for _, o := range r.Outcomes {
		require.Equal(t, cnitest.Skipped, o.Verdict)
		require.Equal(t, "the budget of 1ns is used up", o.Reason)
	}
	require.Empty(t, verdicts(examine(t, passing(), cnitest.Options{Run: "^version/", Budget: time.Hour}), cnitest.Skipped))
}

func TestExamineRefusesWhatItCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		target cnitest.Target
		o      cnitest.Options
		want   string
	}{
		"no configuration": {cnitest.Target{Handler: passing()}, cnitest.Options{}, "configuration"},
		"no type":          {cnitest.Target{Handler: passing(), Config: []byte(`{}`)}, cnitest.Options{}, "type"},
		"not in the list":  {cnitest.Target{Plugin: "b", Handler: passing(), Config: []byte(`{"plugins": [{"type": "a"}]}`)}, cnitest.Options{}, `"b"`},
		"no profile":       {cnitest.Target{Handler: passing(), Config: []byte(`{"type": "a"}`), Profile: "other"}, cnitest.Options{}, "other"},
		"no plugin":        {cnitest.Target{Config: []byte(`{"type": "a"}`)}, cnitest.Options{}, "Path"},
		"shared state":     {cnitest.Target{Handler: passing(), Config: []byte(`{"type": "a"}`), Dirs: []string{"x"}}, cnitest.Options{Parallel: true}, "option Parallel"},
		"bad expression":   {cnitest.Target{Handler: passing(), Config: []byte(`{"type": "a"}`)}, cnitest.Options{Run: "("}, "option Run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cnitest.Examine(t.Context(), c.target, c.o)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestCasesAreComplete: what reports and documents are made of.
func TestCasesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cnitest.Cases("") {
		require.False(t, seen[c.ID()], "%s is there twice", c.ID())
		seen[c.ID()] = true
		require.NotEmpty(t, c.Rows, c.ID())
		require.NotEmpty(t, c.About, c.ID())
		require.NotEmpty(t, c.Fix, c.ID())
		require.NotEqual(t, c.About, c.Fix, c.ID())
		require.Contains(t, []cnitest.Strength{cnitest.Must, cnitest.Should}, c.Strength, c.ID())
	}
}

// TestPluginsBeforeAreNotBlamedOnTheOneUnderTest: what they keep for an attachment stays.
func TestPluginsBeforeAreNotBlamedOnTheOneUnderTest(t *testing.T) {
	testenv.NetAdmin(t)
	testenv.Tool(t, "sh")
	before := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{cni.CommandAdd: {
		Stdout: `{"cniVersion": "1.0.0"}`,
		First:  `echo taken >"$(sed 's/.*"state":"\([^"]*\)".*/\1/' "$home/calls/$n/stdin")/$CNI_CONTAINERID"`,
	}}}
	dir := t.TempDir()
	require.NoError(t, before.Install(dir, "before"))
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Plugin: "passing", Handler: passing(), Path: []string{dir}, Profile: cnitest.ProfileChained,
		Config: []byte(`{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "before", "state": "{{dir}}"}, {"type": "passing"}]}`),
	}, cnitest.Options{Run: "^del/"})
	require.NoError(t, err)
	require.Equal(t, len(r.Outcomes), r.Count(cnitest.Kept), "%+v", r.Outcomes)
	calls, err := before.Calls()
	require.NoError(t, err)
	require.NotEmpty(t, calls)
}

// TestEndlessPlugin: what prints, or waits, for ever is ended and does not fill memory.
func TestEndlessPlugin(t *testing.T) {
	t.Parallel()
	testenv.NetAdmin(t)
	testenv.Tool(t, "sh")
	target := func(add cnitest.Reply, version cnitest.Reply) cnitest.Target {
		s := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{cni.CommandAdd: add}}
		if version.Delay > 0 {
			s.Replies[cni.CommandVersion] = version
		}
		dir := t.TempDir()
		require.NoError(t, s.Install(dir, "endless"))
		return cnitest.Target{Config: []byte(`{"type": "endless"}`), Path: []string{dir}}
	}
	o := cnitest.Options{Run: "^protocol/result$", Timeout: busy}
	printing := cnitest.Reply{First: "yes", Stdout: "{}"}
	r, err := cnitest.Examine(t.Context(), target(printing, cnitest.Reply{}), o)
	require.NoError(t, err)
	require.Equal(t, []string{"protocol/result"}, verdicts(r, cnitest.Broken))
	require.Contains(t, r.Outcomes[0].Seen, "no answer within")

	_, err = cnitest.Examine(t.Context(), target(cnitest.Reply{}, cnitest.Reply{Delay: time.Hour}), o)
	require.ErrorContains(t, err, "VERSION got no answer within 2s")
}
