package ipam

import "context"

// Usage says how much of the range sets of an allocator is in use.
type Usage struct {
	Sets []SetUsage
	// Outside are the leases by ascending address that lie where nothing is handed
	// out: in no range, on a gateway, in an exclusion. The configuration has changed
	// since they were reserved, or somebody else reserved them. They are kept until
	// their owners are released.
	Outside []Lease
}

// SetUsage is the use of one range set: the sums of its ranges.
type SetUsage struct {
	Figures
	Ranges []RangeUsage
}

// RangeUsage is the use of one range.
type RangeUsage struct {
	Figures
	Range Range
}

// Figures count addresses, at most math.MaxUint64.
type Figures struct {
	Size    uint64 // that may be handed out
	Used    uint64 // of these, reserved ones
	Resting uint64 // of these, released ones in quarantine
}

// Usage implements [Allocator].
func (p *Pool) Usage(ctx context.Context) (Usage, error) {
	u := Usage{}
	err := p.store.View(ctx, func(tx ReadTx) error {
		for _, s := range p.sets {
			set := SetUsage{Figures: Figures{Size: s.Size()}}
			for _, r := range s {
				n, err := tx.Count(r.Start, r.End)
				if err != nil {
					return err
				}
				set.Used += n
				set.Ranges = append(set.Ranges, RangeUsage{Figures: Figures{Size: r.size(), Used: n}, Range: r})
			}
			u.Sets = append(u.Sets, set)
		}
		return nil
	})
	return u, err
}
