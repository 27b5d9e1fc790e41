package plugin

import (
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
)

// setParser collects range sets and remembers where each was written, for
// errors. The first error stays.
type setParser struct {
	sets  []ipam.RangeSet
	paths []string // of each set
	err   error
}

func (p *setParser) add(path string, ranges []Range) {
	if p.err != nil {
		return
	}
	set := ipam.RangeSet{}
	p.paths = append(p.paths, path)
	for i, r := range ranges {
		parsed, err := r.parse()
		if err != nil {
			p.err = p.locate(err, len(p.sets), i)
			return
		}
		set = append(set, parsed)
	}
	p.sets = append(p.sets, set)
}

func (p *setParser) finish() ([]ipam.RangeSet, error) {
	if p.err != nil {
		return nil, p.err
	}
	sets, err := ipam.NormalizeSets(p.sets)
	var re *ipam.RangeError
	if errors.As(err, &re) {
		return nil, p.locate(err, re.Set, re.Range)
	}
	return sets, err
}

// locate turns a range's error into that of a key of the configuration.
func (p *setParser) locate(err error, set, i int) error {
	var re *ipam.RangeError
	if !errors.As(err, &re) {
		return err
	}
	key := p.paths[set]
	if re.Key == "" { // the set as a whole
		return &cni.FieldError{Key: key, Value: []Range{}, Reason: re.Reason, Fix: re.Fix}
	}
	if key != "ipam" {
		key = fmt.Sprintf("%s[%d]", key, i)
	}
	return &cni.FieldError{Key: key + "." + re.Key, Value: re.Value, Reason: re.Reason, Fix: re.Fix}
}
