package netns

import "errors"

// ErrNotNetNS means that a path exists but is no network namespace: a plain file,
// the leftover mount point of a namespace that was unmounted, or a namespace of
// another kind.
var ErrNotNetNS = errors.New("not a network namespace")
