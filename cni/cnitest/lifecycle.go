package cnitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/cnikit/cnikit/cni"
)

// Lifecycle is a container runtime for the unit tests of a plugin: it has one container,
// on a node of its own, and takes it through its life, with prevResult and everything
// else that a runtime derives. Its methods return the plugin's error as [*cni.Error]. Use
// one Lifecycle from one goroutine.
type Lifecycle struct {
	p *probe
	a *attachment
}

// NewLifecycle makes a node and a container for the target. What the test cannot have
// fails it, but where it has no right to make network namespaces, it is skipped, unless
// CI=true is in the environment. Everything goes away with the test.
func NewLifecycle(t testing.TB, target Target) *Lifecycle {
	t.Helper()
	p, err := testExam(t, target, Options{}).probe(t.Context(), "lifecycle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	l := &Lifecycle{p: p}
	if err := guarded(func() { l.a = p.container() }); err != nil {
		t.Fatal(err)
	}
	return l
}

// Node is the network namespace that plays the node.
func (l *Lifecycle) Node() *Namespace { return l.p.node }

// Container is the network namespace of the container.
func (l *Lifecycle) Container() *Namespace { return l.a.ns }

// Dir is what replaces [Placeholder] in the configuration.
func (l *Lifecycle) Dir() string { return l.p.stateDir() }

// Add runs ADD, and before it once the plugins before the one under test. For a chained
// plugin without any, the interface is made by the kit.
func (l *Lifecycle) Add() (*cni.Result, error) {
	var got reply
	if err := guarded(func() { got = l.p.add(l.a) }); err != nil {
		return nil, err
	}
	if err := got.err(); err != nil {
		return nil, err
	}
	return cni.ParseResult(got.stdout, l.a.version)
}

// Check runs CHECK with the result of the last ADD.
func (l *Lifecycle) Check() error { return l.run(cni.CommandCheck) }

// Del runs DEL with the result of the last ADD, if there was one.
func (l *Lifecycle) Del() error { return l.run(cni.CommandDel) }

// Status runs STATUS.
func (l *Lifecycle) Status() error {
	return l.result(func() reply { return l.p.status() })
}

// GC runs GC; the container is in the list of valid attachments, or nothing is.
func (l *Lifecycle) GC(valid bool) error {
	return l.result(func() reply {
		if valid {
			return l.p.gc(l.a)
		}
		return l.p.gc()
	})
}

// Vanish makes the container's namespace go away with all that is in it.
func (l *Lifecycle) Vanish() error { return guarded(func() { l.p.vanish(l.a) }) }

// Run goes all the way: ADD, CHECK, DEL, DEL, and GC with nothing valid, each as far as
// the version has it, twice. It returns the result of the ADD. What the second life
// leaves behind on the node or in the container is an error.
func (l *Lifecycle) Run() (*cni.Result, error) {
	if _, err := l.life(); err != nil {
		return nil, err
	}
	var before State
	if err := guarded(func() { before = l.p.look(l.a) }); err != nil {
		return nil, err
	}
	result, err := l.life()
	if err != nil {
		return nil, err
	}
	var left string
	if err := guarded(func() { left = l.p.settled(before, l.a) }); err != nil {
		return nil, err
	}
	if left != "" {
		return nil, fmt.Errorf("a container's life changed the node or its namespace (+ was left, - went with it):\n%s", left)
	}
	return result, nil
}

func (l *Lifecycle) life() (*cni.Result, error) {
	result, err := l.Add()
	if err != nil {
		return nil, fmt.Errorf("ADD: %w", err)
	}
	steps := []struct {
		what  string
		since string
		run   func() error
	}{
		{"CHECK", "0.4.0", l.Check},
		{"DEL", "", l.Del},
		{"second DEL", "", l.Del},
		{"GC", "1.1.0", func() error { return l.GC(false) }},
	}
	for _, step := range steps {
		if l.p.version < step.since {
			continue
		}
		if err := step.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return result, nil
}

func (l *Lifecycle) run(command cni.Command) error {
	return l.result(func() reply { return l.p.do(l.p.request(command, l.a)) })
}

func (l *Lifecycle) result(call func() reply) error {
	var got reply
	if err := guarded(func() { got = call() }); err != nil {
		return err
	}
	return got.err()
}

// guarded makes what ends a case an error.
func guarded(fn func()) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case ending:
			err = errors.New(end.reason)
		default:
			panic(end)
		}
	}()
	fn()
	return nil
}

// err is the error that the plugin reported, nil if it succeeded.
func (r reply) err() error {
	if r.succeeded() {
		return nil
	}
	var e cni.Error
	if r.document() != nil && json.Unmarshal(r.stdout, &e) == nil && e.Msg != "" {
		return &e
	}
	return fmt.Errorf("%s: %s", r.what(), r)
}
