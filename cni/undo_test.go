package cni_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

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
