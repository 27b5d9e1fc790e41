package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// A journal keeps the warnings of an engine, a line each, without time and level.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "retry" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// lines returns what was logged since the last call.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.TrimSpace(j.buf.String())
	j.buf.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// failing returns a running engine over a store in which the keys cannot be applied.
func failing(t *testing.T, keys ...string) (*journal, *fake, *table) {
	j, f, want := &journal{}, reconciletest.NewFake(vals(nil)), vals{}
	for _, key := range keys {
		f.Fail(key, errBad)
		want[key] = 1
	}
	tbl := reconcile.NewTable("one", f, opts{})
	tbl.Replace(want)
	start(t, reconcile.Options{Resync: -1, Log: j.logger()}, tbl)
	return j, f, tbl
}

func TestFailuresInTheLog(t *testing.T) {
	subtests(t, rules{
		{"first/one clear line", func(t *testing.T) {
			j, _, _ := failing(t, "bad")
			require.Equal(t, []string{`msg="cannot apply" target=one key=bad error="bad key" tries=1`}, j.lines())
		}},
		{"lasting/at growing intervals", func(t *testing.T) {
			j, _, _ := failing(t, "bad")
			j.lines()
			pass(50 * time.Second)
			require.Empty(t, j.lines(), "many tries, nothing new")
			var counts []int
			for range 4 {
				pass(2 * time.Hour)
				counts = append(counts, len(j.lines()))
			}
			require.LessOrEqual(t, counts[0], 7)
			require.GreaterOrEqual(t, counts[0], 5)
			for _, n := range counts[1:] {
				require.Contains(t, []int{1, 2}, n, "%v: about one an hour in the end", counts)
			}
		}},
		{"changed/another error at once", func(t *testing.T) {
			j, f, _ := failing(t, "bad")
			j.lines()
			f.Fail("bad", errors.New("worse"))
			pass(2 * time.Second)
			lines := j.lines()
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "error=worse")
		}},
		{"over/a new failure is told again", func(t *testing.T) {
			j, f, tbl := failing(t, "bad")
			j.lines()
			f.Fail("bad", nil)
			pass(2 * time.Second)
			f.Fail("bad", errBad)
			tbl.Set("bad", 2)
			pass(2 * time.Second)
			require.Len(t, j.lines(), 1)
		}},
		{"over/likewise when another party made it", func(t *testing.T) {
			j, f, tbl := failing(t, "bad")
			j.lines()
			f.Put("bad", 1)
			pass(2 * time.Second)
			tbl.Set("bad", 2)
			pass(2 * time.Second)
			require.Len(t, j.lines(), 1)
		}},
		{"another key/is told whatever fails before it", func(t *testing.T) {
			j, f, tbl := failing(t, "bad1")
			j.lines()
			f.Fail("bad2", errBad)
			tbl.Set("bad2", 1)
			pass(2 * time.Second)
			lines := j.lines()
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "key=bad2")
		}},
		{"many/a few lines and the number of the others", func(t *testing.T) {
			var keys []string
			for i := range 100 {
				keys = append(keys, fmt.Sprintf("bad%02d", i))
			}
			j, _, _ := failing(t, keys...)
			lines := j.lines()
			require.Len(t, lines, 6)
			require.Equal(t, `msg="more failures, see the status" target=one keys=95`, lines[5])
		}},
		{"observations/likewise", func(t *testing.T) {
			j, f, tbl := failing(t)
			f.Before(func(context.Context, call) error { return errBad })
			tbl.Set("a", 1)
			pass(2 * time.Second)
			require.Equal(t, []string{`msg="cannot apply" target=one key=a error="bad key" tries=1`, `msg="cannot look" target=one error="bad key" tries=1`}, j.lines())
			pass(5 * time.Second)
			require.Empty(t, j.lines())
			f.Before(nil)
			pass(10 * time.Second)
			f.Before(func(context.Context, call) error { return errBad })
			tbl.Set("a", 2)
			pass(2 * time.Second)
			require.Len(t, j.lines(), 2)
		}},
		{"contested/though the number of repairs grows", func(t *testing.T) {
			j, f := &journal{}, reconciletest.NewFake(vals{"a": 1})
			tbl := reconcile.NewTable("one", f, opts{})
			tbl.Replace(vals{"a": 1})
			var r *rig
			f.Before(func(_ context.Context, c call) error {
				if c.Op == "apply" {
					time.AfterFunc(time.Millisecond, func() { f.Remove("a"); r.Trigger() })
				}
				return nil
			})
			r = start(t, reconcile.Options{Resync: -1, Log: j.logger()}, tbl)
			f.Remove("a")
			r.Trigger()
			pass(2 * time.Hour)
			lines := j.lines()
			require.Contains(t, lines[0], `msg="cannot keep" target=one key=a error="does not stay as applied`)
			require.LessOrEqual(t, len(lines), 8)
		}},
		{"deletes/say so", func(t *testing.T) {
			j, f := &journal{}, reconciletest.NewFake(vals{"a": 1})
			f.Fail("a", errBad)
			tbl := reconcile.NewTable("one", f, opts{})
			tbl.Replace(nil)
			start(t, reconcile.Options{Resync: -1, Log: j.logger()}, tbl)
			require.Equal(t, []string{`msg="cannot delete" target=one key=a error="bad key" tries=1`}, j.lines())
		}},
	})
}
