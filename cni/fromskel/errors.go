package fromskel

import (
	"errors"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/cnikit/cnikit/cni"
)

// translate keeps code, message and details of a callback's error. A nil *types.Error
// that became an error is none, as for skel: functions that return the pointer are
// common in callbacks.
func translate(err error) error {
	var theirs *types.Error
	if !errors.As(err, &theirs) {
		return err
	}
	if theirs == nil {
		return nil
	}
	e := cni.Errorf(cni.Code(theirs.Code), "%w", err)
	if err == error(theirs) { //nolint:errorlint // one that was wrapped has a message of its own
		e.Msg, e.Details = theirs.Msg, theirs.Details
	}
	return e
}
