package cni_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestUndoTime(t *testing.T) {
	const slow = "blocks until its context ends"
	for name, c := range map[string]struct {
		steps []string        // slow, or the empty string for one that is quick
		times []time.Duration // that the steps were given, the last registered first
		total time.Duration
	}{
		"a slow step leaves the next its time": {
			[]string{"", slow}, []time.Duration{10 * time.Second, 10 * time.Second}, 10 * time.Second,
		},
		"quick steps cost nothing": {
			[]string{slow, "", "", ""}, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}, 10 * time.Second,
		},
		"there is an end, and the last steps have time before it": {
			[]string{slow, slow, slow, slow, slow},
			[]time.Duration{10 * time.Second, 10 * time.Second, 6 * time.Second, 2 * time.Second, 2 * time.Second}, 30 * time.Second,
		},
		"many steps share": {
			[]string{
				slow, slow, slow, slow, slow, slow, slow, slow, slow, slow,
				slow, slow, slow, slow, slow, slow, slow, slow, slow, slow,
			}, nil, 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var given []time.Duration
				p := testPlugin()
				p.Add = func(_ context.Context, r *request) (*cni.Result, error) {
					for i, step := range c.steps {
						r.Undo(fmt.Sprint(i), func(ctx context.Context) error {
							deadline, _ := ctx.Deadline()
							given = append(given, time.Until(deadline))
							if step == slow {
								<-ctx.Done()
							}
							return ctx.Err()
						})
					}
					return nil, errors.New("fails")
				}
				began := time.Now()
				run(p, environment("ADD"), network("1.0.0")).failed(t)
				assert.Equal(t, c.total, time.Since(began))
				if c.times != nil {
					assert.Equal(t, c.times, given)
				}
				assert.Len(t, given, len(c.steps))
				for i, got := range given {
					assert.GreaterOrEqual(t, got, time.Second, "step %d", i)
				}
			})
		})
	}
	t.Run("a step that ignores its context does not take the others' time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var given time.Duration
			p := testPlugin()
			p.Add = func(_ context.Context, r *request) (*cni.Result, error) {
				r.Undo("address", func(ctx context.Context) error {
					deadline, _ := ctx.Deadline()
					given = time.Until(deadline)
					return nil
				})
				r.Undo("deaf", func(context.Context) error { time.Sleep(time.Minute); return nil })
				return nil, errors.New("fails")
			}
			run(p, environment("ADD"), network("1.0.0")).failed(t)
			assert.Equal(t, 2*time.Second, given)
		})
	})
}

// What a command has done is done, though the runtime has given up meanwhile.
func TestHandlerSucceedsAndIsCancelled(t *testing.T) {
	for _, command := range []string{"DEL", "CHECK", "STATUS", "GC"} {
		ctx, cancel := context.WithCancel(t.Context())
		p := testPlugin()
		fn := func(context.Context, *request) error { cancel(); return nil }
		p.Del, p.Check, p.Status, p.GC = fn, fn, fn, fn
		runContext(ctx, p, environment(command), strings.NewReader(network("1.1.0"))).succeeded(t, "")
		require.Error(t, ctx.Err())
	}
}

func TestHandlerUndo(t *testing.T) {
	// ended describes how an ADD ends, after two steps were registered.
	type ended func(ctx context.Context, cancel context.CancelFunc, r *request) (*cni.Result, error)
	address := netip.MustParsePrefix("10.0.0.5/24")
	for name, c := range map[string]struct {
		end  ended
		undo bool
		code cni.Code
	}{
		"success": {func(context.Context, context.CancelFunc, *request) (*cni.Result, error) {
			return &cni.Result{IPs: []cni.IP{{Address: address}}}, nil
		}, false, 0},
		"error": {func(context.Context, context.CancelFunc, *request) (*cni.Result, error) {
			return nil, cni.Errorf(cni.CodeIO, "x")
		}, true, cni.CodeIO},
		"panic": {func(context.Context, context.CancelFunc, *request) (*cni.Result, error) { panic("x") }, true, cni.CodeInternal},
		"no result": {func(context.Context, context.CancelFunc, *request) (*cni.Result, error) {
			return nil, nil
		}, true, cni.CodeInternal},
		"a result that the version cannot carry": {func(context.Context, context.CancelFunc, *request) (*cni.Result, error) {
			return &cni.Result{}, nil
		}, true, cni.CodeInternal},
		"cancelled, and it failed of that": {func(ctx context.Context, cancel context.CancelFunc, _ *request) (*cni.Result, error) {
			cancel()
			<-ctx.Done()
			return nil, errors.New("signal: killed")
		}, true, cni.CodeTryAgain},
		"cancelled, and it failed of something else": {func(_ context.Context, cancel context.CancelFunc, _ *request) (*cni.Result, error) {
			cancel()
			return nil, fmt.Errorf("write lease: %w", syscall.ENOSPC)
		}, true, cni.CodeIO},
		"cancelled, and it went on": {func(_ context.Context, cancel context.CancelFunc, _ *request) (*cni.Result, error) {
			cancel()
			return &cni.Result{IPs: []cni.IP{{Address: address}}}, nil
		}, true, cni.CodeTryAgain},
		"timeout": {func(ctx context.Context, _ context.CancelFunc, _ *request) (*cni.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true, cni.CodeTryAgain},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var order []string
			p := testPlugin()
			p.Timeout = 50 * time.Millisecond
			p.Add = func(ctx context.Context, r *request) (*cni.Result, error) {
				for _, step := range []string{"first", "second"} {
					r.Undo(step, func(ctx context.Context) error {
						order = append(order, step)
						deadline, ok := ctx.Deadline()
						assert.NoError(t, ctx.Err(), "undo has a context of its own")
						assert.True(t, ok && time.Until(deadline) > 5*time.Second, "and time")
						return nil
					})
				}
				return c.end(ctx, cancel, r)
			}
			a := runContext(ctx, p, environment("ADD"), strings.NewReader(network("0.2.0")))
			if !c.undo {
				assert.Zero(t, a.code)
				assert.Empty(t, order)
				return
			}
			e := a.failed(t)
			assert.Equal(t, c.code, e.Code, e.Msg)
			assert.Equal(t, []string{"second", "first"}, order)
		})
	}
	t.Run("no result is the author's mistake", func(t *testing.T) {
		p := testPlugin()
		p.Add = func(context.Context, *request) (*cni.Result, error) { return nil, nil }
		e := run(p, environment("ADD"), network("1.0.0")).failed(t)
		assert.Equal(t, "the Add function returned neither a result nor an error", e.Msg)
	})
	t.Run("a step that fails or panics does not stop the others", func(t *testing.T) {
		done := false
		p := testPlugin()
		p.Add = func(_ context.Context, r *request) (*cni.Result, error) {
			r.Undo("a", func(context.Context) error { done = true; return nil })
			r.Undo("b", func(context.Context) error { panic("oh") })
			r.Undo("c", func(context.Context) error { return errors.New("stuck") })
			return nil, cni.Errorf(cni.CodeIO, "disk")
		}
		a := run(p, environment("ADD"), network("1.0.0"))
		e := a.failed(t)
		assert.True(t, done)
		assert.Contains(t, a.stderr, `msg="undo failed" plugin=test command=ADD`)
		assert.Contains(t, a.stderr, "step=c error=stuck")
		assert.Equal(t, cni.CodeIO, e.Code, "the first error is the one reported")
		assert.Equal(t, "disk", e.Msg)
		assert.Contains(t, e.Details, "undo c: stuck; undo b: panic: oh")
	})
}
