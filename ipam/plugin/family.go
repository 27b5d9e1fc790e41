package plugin

import (
	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
)

// checkFamilies refuses more addresses than a result of the request's version has places
// for: before 0.3.0, one of each family. The words are host-local's, which plugins that
// delegate to it compare; what to do goes to the log.
func checkFamilies(r *cni.Request[Config], sets []ipam.RangeSet) error {
	if r.CNIVersion != "0.1.0" && r.CNIVersion != "0.2.0" {
		return nil
	}
	four := 0
	for _, s := range sets {
		if s[0].Start.Is4() {
			four++
		}
	}
	if four <= 1 && len(sets)-four <= 1 {
		return nil
	}
	r.Log.Warn("more range sets of a family than a result of this version has places for; use cniVersion 0.3.0 or later, or one range set for each family")
	return cni.Errorf(cni.CodeInvalidConfig, "CNI version %s does not support more than 1 address per family", r.CNIVersion)
}
