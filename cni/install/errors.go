package install

import "errors"

var (
	// ErrForeign says that something of the name of an executable is there that this program did not install.
	ErrForeign = errors.New("is there and was not installed by this program")

	// ErrChanged says that an executable is not what was installed any more.
	ErrChanged = errors.New("was changed since it was installed")
)
