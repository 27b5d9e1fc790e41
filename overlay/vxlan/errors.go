package vxlan

import "fmt"

// FieldError is a setting that cannot be used.
type FieldError struct {
	Key    string // the field of [Config], in lower case
	Value  any
	Reason string
	Fix    string // the way out
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s=%v: %s; %s", e.Key, e.Value, e.Reason, e.Fix)
}
