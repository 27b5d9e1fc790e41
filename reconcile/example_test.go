package reconcile_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// A store, here one in memory, a table of what is wanted of it, and an engine that sees to it.
func Example() {
	store := reconciletest.NewFake(map[string]int{"mtu": 1500, "leftover": 1})
	table := reconcile.NewTable("settings", store, reconcile.TableOptions[string, int]{})
	table.Replace(map[string]int{"mtu": 1450, "forwarding": 1})

	ctx, cancel := context.WithCancel(context.Background())
	engine, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{table},
		OnRound: func(r reconcile.Round) {
			fmt.Printf("applied %d, deleted %d\n", r.Applied, r.Deleted)
			cancel()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := engine.Plan(ctx)
	fmt.Print(plan)
	fmt.Println(err, engine.Run(ctx))
	fmt.Print(store)
	// Output:
	// settings (phase 0):
	//   + forwarding: 1
	//   ~ mtu: 1500 => mtu: 1450
	//   - leftover: 1
	// applied 2, deleted 1
	// <nil> <nil>
	// forwarding: 1
	// mtu: 1450
}

// Targets that build on each other: the routes wait until the device is there, and go before it.
func ExampleTableOptions() {
	device := reconcile.NewTable("device", reconciletest.NewFake[string, int](nil), reconcile.TableOptions[string, int]{})
	routes := reconcile.NewTable("routes", reconciletest.NewFake[netip.Prefix, string](nil),
		reconcile.TableOptions[netip.Prefix, string]{
			Phase:  1,
			After:  []reconcile.Target{device},
			Format: func(p netip.Prefix, via string) string { return fmt.Sprintf("%v via %s", p, via) },
		})
	device.Replace(map[string]int{"vxlan0": 1450})
	routes.Replace(map[netip.Prefix]string{netip.MustParsePrefix("10.1.2.0/24"): "10.1.2.0"})

	engine, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{routes, device}})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := engine.Plan(context.Background())
	fmt.Print(plan)
	fmt.Println(err)
	// Output:
	// device (phase 0):
	//   + vxlan0: 1450
	// routes (phase 1), after device:
	//   + 10.1.2.0/24 via 10.1.2.0
	// <nil>
}
