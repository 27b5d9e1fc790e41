package cni

import "fmt"

// FieldError says what is wrong with one value of a configuration. It reaches the
// runtime with [CodeInvalidConfig], or [CodeUnsupportedField] if Unsupported is
// set.
//
// errors.As finds it within the process only. From a plugin that was executed an
// [Error] arrives, which has the code and the text.
type FieldError struct {
	Key         string // as in the configuration, "ipam.ranges" for a nested one
	Value       any    // printed as JSON
	Reason      string // "contains a slash"
	Fix         string // "use letters and digits"; optional
	Unsupported bool   // the key or value is right, but not for this plugin
}

var _ error = (*FieldError)(nil)

// Error renders `key=value: reason; fix`.
func (e *FieldError) Error() string {
	var value object
	value.encode(e.Value)
	text := value.buf.String()
	if value.err != nil {
		text = fmt.Sprint(e.Value)
	}
	s := e.Key + "=" + shorten(text, 200) + ": " + e.Reason
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}
