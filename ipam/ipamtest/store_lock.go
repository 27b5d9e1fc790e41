package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

func lockRules() []storeRule {
	return []storeRule{
		{name: "update/returns the error and keeps what was done", check: checkNoRollBack},
		{name: "update/one at a time", check: checkExclusive},
		{name: "update/waits until the context ends", check: checkWait},
		{name: "view/not during an update", check: checkViewWaits},
		{name: "view/returns the error", check: func(ctx context.Context, s ipam.Store) error {
			boom := errors.New("boom")
			return failsWith("View whose function fails", s.View(ctx, func(ipam.ReadTx) error { return boom }), boom)
		}},
	}
}

func checkNoRollBack(ctx context.Context, s ipam.Store) error {
	boom := errors.New("boom")
	err := s.Update(ctx, func(tx ipam.Tx) error {
		return errors.Join(reserveIn(tx, "10.1.0.5", owner("a")), boom)
	})
	return errors.Join(failsWith("Update whose function fails", err, boom), holds(ctx, s, "10.1.0.5", owner("a")))
}

// checkExclusive counts what many updates at once do, and looks whether one can get in
// where another is.
func checkExclusive(ctx context.Context, s ipam.Store) error {
	letIn, _ := during(ctx, s, updateWith(s))
	if letIn {
		return errors.New("two updates run at once")
	}
	err := runAtOnce(8, func(i int) error {
		for n := range 10 {
			if err := reserve(ctx, s, fmt.Sprintf("10.1.%d.%d", i, n), owner("a")); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error { return countIs(tx, "10.1.0.0", "10.1.255.255", 80) }))
}

func checkWait(ctx context.Context, s ipam.Store) error {
	letIn, err := during(ctx, s, updateWith(s))
	if letIn {
		return nil // which another rule forbids
	}
	return failsWith("Update during another one, whose context ends,", err, context.DeadlineExceeded)
}

func updateWith(s ipam.Store) func(context.Context, func()) error {
	return func(ctx context.Context, in func()) error {
		return s.Update(ctx, func(ipam.Tx) error { in(); return nil })
	}
}

func checkViewWaits(ctx context.Context, s ipam.Store) error {
	letIn, err := during(ctx, s, func(ctx context.Context, in func()) error {
		return s.View(ctx, func(ipam.ReadTx) error { in(); return nil })
	})
	if letIn {
		return errors.New("a view runs during an update")
	}
	return failsWith("View during an update, whose context ends,", err, context.DeadlineExceeded)
}

// wait is how long a call is let wait for a lock that does not come free.
const wait = 20 * time.Millisecond

// during makes a call while an update is under way. It tells whether the call was let
// in, and what it returned when its context had ended.
func during(ctx context.Context, s ipam.Store, call func(ctx context.Context, in func()) error) (letIn bool, err error) {
	entered, leave := make(chan struct{}), make(chan struct{})
	errUpdate := runAtOnce(2, func(i int) error {
		if i == 0 {
			return s.Update(ctx, func(ipam.Tx) error {
				close(entered)
				<-leave
				return nil
			})
		}
		<-entered
		defer close(leave)
		short, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		err = call(short, func() { letIn = true })
		return nil
	})
	return letIn, errors.Join(err, errUpdate)
}
