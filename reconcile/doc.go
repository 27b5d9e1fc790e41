// Package reconcile keeps something outside the program (kernel objects, files) as the program wants it.
//
// A [Store] says what is there and changes one key at a time. A [Table] holds what should be there; callers change it
// with Set, Unset and Replace, from any goroutine. An [Engine] compares the two and closes the difference:
//
//	routes := reconcile.NewTable("routes", store, reconcile.TableOptions[netip.Prefix, Route]{Phase: 1, After: []reconcile.Target{device}})
//	engine, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{device, routes}})
//	…
//	go engine.Run(ctx)
//	routes.Set(prefix, route)
//
// The engine is level-triggered. What it does follows from the wanted and the seen state alone, never from the history of
// events, so a lost or doubled event costs nothing. A change of a table reconciles just the changed keys against the
// remembered observation. [Engine.Trigger] and the periodic resync make a full look: the store is observed afresh and every
// key compared.
//
// # Order
//
// A round applies (creates and changes) in ascending phase and deletes afterwards, in descending phase, so that what others
// need comes first and goes last. A target with After waits until the named targets converged,
// and looks afresh when they were written to, for that may have changed what is there.
//
// While a target holds deletes back, those of lower phases wait too, for they would take away what the held keys still need. So
// they do for a delete that failed, until a retry succeeds. After five failures in a row they wait no longer: a key that fails
// for ever must not keep everything below it. Creates and changes never wait for deletes.
//
// # What never happens
//
//   - Nothing is written when nothing differs.
//   - Nothing is deleted before the table's first Replace: until then the wanted state may be incomplete.
//   - Nothing is changed or deleted on the strength of a partial observation ([ErrPartial]); it only adds.
//   - A surprising share of a target's keys is not deleted at once ([Options].MaxDeleteShare); the deletes are held until a
//     second full look agrees.
//   - A key that fails, or that another party keeps changing back, does not hold up the others; it is retried with a
//     back-off of its own. A panic in a store is such a failure.
//
// The package knows no kernel and no netlink, starts no goroutine, and imports the standard library only. It is no workflow
// engine: operations on different keys must not depend on each other except through phases and After.
package reconcile
