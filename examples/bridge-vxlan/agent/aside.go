package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cnikit/cnikit/cni/netif"
)

// A runtime may have begun to attach a pod with the conflist that uninstall removes, and
// cannot delete that pod without one. So the conflist is set aside first, under a name that
// no runtime reads, and goes back when such a pod shows, or with the next uninstall when
// this one was killed.
const asideSuffix = ".aside"

// An ADD that has read the conflist makes its interface within lateADD of having its turn:
// before that it only asks for addresses.
const (
	lateADD      = 2 * time.Second
	lookInterval = 50 * time.Millisecond
)

func (o options) asidePath() string { return o.conflistPath() + asideSuffix }

// setAside reports whether there was a conflist.
func (o options) setAside() (bool, error) {
	if o.conflist == "" {
		return false, nil
	}
	err := os.Rename(o.conflistPath(), o.asidePath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// putBack undoes setAside. A conflist that is there again by now is newer.
func (o options) putBack() error {
	if o.conflist == "" {
		return nil
	}
	var err error
	if _, there := os.Lstat(o.conflistPath()); there == nil {
		err = os.Remove(o.asidePath())
	} else {
		err = os.Rename(o.asidePath(), o.conflistPath())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// awaitPods returns an error as soon as there are pods, nil when there are none for long
// enough. How long it waits for its own turn does not count: an ADD may wait as well.
func (o options) awaitPods(ctx context.Context) error {
	for left := lateADD; ; left -= lookInterval {
		if err := o.latePods(ctx); err != nil || left <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookInterval):
		}
	}
}

// latePods returns an error when there are pods. An ADD that makes an interface holds the
// lock of the host meanwhile.
func (o options) latePods(ctx context.Context) error {
	host, err := netif.Current()
	if err != nil {
		return err
	}
	defer host.Close()
	unlock, err := host.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	links, err := host.Links()
	if err != nil {
		return err
	}
	if err := o.podsLeft(links); err != nil {
		return fmt.Errorf("pods came meanwhile, so the conflist stays: %w", err)
	}
	return nil
}
