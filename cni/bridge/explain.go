package bridge

import (
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// explainRoute finds the key that asked for a route which cannot be.
func explainRoute(c Config, ifName string, err error) error {
	var invalid *netif.InvalidRoute
	if errors.As(err, &invalid) {
		return &cni.FieldError{Key: "ipam.routes", Value: invalid.Route.Dst,
			Reason: fmt.Sprintf("the IPAM plugin gave a route whose %s %v %s", invalid.Field, invalid.Value, invalid.Reason), Fix: invalid.Fix}
	}
	var conflict *netif.RouteConflict
	if !errors.As(err, &conflict) {
		return err
	}
	there := conflict.Has.String()
	if conflict.Link != "" {
		there += " through " + conflict.Link
	}
	field := &cni.FieldError{Key: "ipam.routes", Value: conflict.Route.Dst,
		Reason: fmt.Sprintf("the container has another route to it already: %s, not %s through %s", there, conflict.Route, ifName),
		Fix:    "leave the route out, or give it a priority of its own"}
	if c.IsDefaultGateway && conflict.Route.Dst.Bits() == 0 && conflict.Link != ifName {
		field.Key, field.Value = "isDefaultGateway", true
		field.Reason = fmt.Sprintf("the container has a default route already: %s", there)
		field.Fix = "set it to false for further networks of a container"
	}
	return field
}
