package nl_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

func TestErrorMatches(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("outer: %w", &nl.Error{Op: "get link", Object: "eth0", Err: err})
	}
	for name, k := range map[string]struct {
		err           error
		absent, exist bool
	}{
		"ENODEV":         {syscall.ENODEV, true, false},
		"ENOENT":         {syscall.ENOENT, true, false},
		"ESRCH":          {syscall.ESRCH, true, false},
		"library":        {netlink.LinkNotFoundError{}, true, false},
		"wrapped errno":  {fmt.Errorf("%w: in words", syscall.ESRCH), true, false},
		"EEXIST":         {syscall.EEXIST, false, true},
		"EPERM":          {syscall.EPERM, false, false},
		"something else": {errors.New("else"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := wrap(k.err)
			assert.Equal(t, k.absent, errors.Is(err, nl.ErrNotFound))
			assert.Equal(t, k.exist, errors.Is(err, nl.ErrExists))
			assert.ErrorIs(t, err, k.err)
			assert.NotErrorIs(t, err, nl.ErrPartial)
		})
	}
	assert.ErrorIs(t, wrap(nl.ErrPartial), nl.ErrPartial)
	assert.EqualError(t, &nl.Error{Op: "get link", Object: "eth0", Err: syscall.ENODEV}, "get link eth0: no such device")
}
