// Package overlay models a network of nodes that reach each other's pods: who the nodes are, which of them can be used, and
// what each one needs to know about the others.
//
// A [Source] delivers [Node] values as it has them, with unparsed strings. [Plan] turns them into a [Topology]: the usable
// peers, and a [Problem] for everything that could not be used. A [Backend] carries a topology into the data path as
// targets of one [reconcile.Engine]. A [Tracker] joins the three.
//
//	tracker := overlay.NewTracker(backend, overlay.TrackerOptions{Local: overlay.Local{NodeName: "node-a"}})
//	engine, err := reconcile.New(reconcile.Options{Targets: backend.Targets()})
//	…
//	go source.Run(ctx, tracker)
//	go backend.Watch(ctx, engine.Trigger)
//	go engine.Run(ctx)
//
// The package knows no kernel and no Kubernetes. Backends and sources live in packages of their own.
package overlay
