package reconciletest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// A fake holds real state, fails on demand and prints itself.
func ExampleFake() {
	store := reconciletest.NewFake(map[string]int{"leftover": 1})
	store.Fail("bad", errors.New("no room"))
	table := reconcile.NewTable("settings", store, reconcile.TableOptions[string, int]{})
	table.Replace(map[string]int{"good": 1, "bad": 1})

	ctx, cancel := context.WithCancel(context.Background())
	engine, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{table},
		OnRound: func(r reconcile.Round) { fmt.Println(r.Failed[0]); cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = engine.Run(ctx)
	fmt.Print(store)
	fmt.Println(store.Calls())
	// Output:
	// settings: bad: no room
	// good: 1
	// [{observe } {apply bad} {apply good} {delete leftover}]
}

// keepsNothing is a store with an error: what it is given is gone.
type keepsNothing struct{}

func (keepsNothing) Observe(context.Context) (map[string]int, error) { return map[string]int{}, nil }
func (keepsNothing) Apply(context.Context, string, int, *int) error  { return nil }
func (keepsNothing) Delete(context.Context, string, int) error       { return nil }

// CheckStore names every rule that a store breaks.
func ExampleCheckStore() {
	err := reconciletest.CheckStore(context.Background(), keepsNothing{}, reconciletest.Sample[string, int]{Key: "a", First: 1, Second: 2})
	fmt.Println(err)
	// Output:
	// apply/creates: a is not observed
	// apply/is idempotent: a is not observed
	// apply/changes: a is not observed
	// apply/changes what it was not told of: a is not observed
	// observe/returns a map of its own: a change of the returned map changed the store
	// apply/creates again in spite of a stale observation: a is not observed
}
