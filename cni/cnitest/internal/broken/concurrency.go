package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni"
)

// overlap is how long a call takes so that others meet it. Those that are made at once
// begin one after the other on a machine that has other things to do.
const overlap = 100 * time.Millisecond

func concurrencyFaults() map[string]fault {
	return map[string]fault{
		"one-add-at-a-time": around("chained", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			lock, err := os.OpenFile(filepath.Join(filepath.Dir(inv.NetNS), "adding"), os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return nil, cni.Errorf(cni.CodeTryAgain, "another ADD is going on")
			}
			defer func() { _ = os.Remove(lock.Name()) }()
			time.Sleep(5 * overlap)
			return next(inv)
		}),
		"del-of-many": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if len(records(dataDir(inv))) > 12 {
				return nil, cni.Errorf(100, "too many attachments")
			}
			return next(inv)
		}),
		"check-during-add-fails": {on: "chained", handle: checkAlone},
		"del-races": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if !exists(recordOf(inv)) {
				return next(inv)
			}
			meet(inv, "deleting")
			if err := os.Remove(recordOf(inv)); err != nil {
				return nil, cni.Errorf(100, "the record has vanished: %w", err)
			}
			return next(inv)
		}),
	}
}

// meet waits until another call does the same in this case, for a while.
func meet(inv cni.Invocation, what string) {
	dir := filepath.Dir(inv.NetNS)
	mark, err := os.CreateTemp(dir, what)
	if err != nil {
		return // no namespace, and so no directory of the case
	}
	defer func() { _, _ = mark.Close(), os.Remove(mark.Name()) }()
	for range 150 {
		if calls, _ := filepath.Glob(filepath.Join(dir, what+"*")); len(calls) > 1 {
			time.Sleep(overlap)
			return
		}
		time.Sleep(overlap / 5)
	}
}

// checkAlone is a CHECK that fails while there is an ADD of another container.
func checkAlone(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	switch inv.Command {
	case cni.CommandAdd:
		mark := beside(inv, "adding")
		if err := remember(inv, "adding"); err != nil {
			return nil, err
		}
		defer func() { _ = os.Remove(mark) }()
		time.Sleep(overlap * time.Duration(inv.ContainerID[0]%8)) // all begin at once, and end one by one
	case cni.CommandCheck:
		others, _ := filepath.Glob(filepath.Join(filepath.Dir(inv.NetNS), "*-adding"))
		for _, other := range others {
			if !strings.Contains(other, inv.ContainerID) {
				return nil, cni.Errorf(100, "another ADD is going on")
			}
		}
	}
	return next.Handle(ctx, inv)
}
