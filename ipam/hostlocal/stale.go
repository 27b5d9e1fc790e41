package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cnikit/cnikit/ipam"
)

// Stale returns the reservations that were made before the machine was started, by
// ascending address: their containers have not outlived that, whether anybody releases
// them or not. It changes nothing; release them when the runtime does not know them, by
// [ipam.Store] or garbage collection.
//
// What this package reserved since is never among them, whatever the clock did. Of a
// reservation by somebody else the time of its file decides, which is compared with the
// clock when the directory is looked through first after the start, or after the index
// was lost. When the machine was started is known on Linux only; elsewhere the error
// matches errors.ErrUnsupported.
func (s *Store) Stale(ctx context.Context) (stale []ipam.Reservation, err error) {
	if _, _, err := s.boot(); err != nil {
		return nil, fmt.Errorf("find stale leases: %w", err)
	}
	err = s.view(ctx, func(t *tx) error {
		return t.ask(func(x *index) error {
			stale = nil
			addrs, err := x.earlier()
			if err != nil {
				return err
			}
			for _, addr := range addrs {
				r, err := t.read(addr.String())
				if errors.Is(err, fs.ErrNotExist) || err == nil && r.torn() {
					continue
				}
				stale = append(stale, ipam.Reservation{Address: addr, Owner: r.owner})
			}
			return nil
		})
	})
	return stale, err
}
