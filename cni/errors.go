package cni

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrPluginNotFound says that an [Executor] has no plugin of that type: no file of
// that name in the search path can be executed.
var ErrPluginNotFound = errors.New("plugin not found")

// Code classifies an [Error] for the runtime (specification, section 5). Codes
// below 100 belong to the specification, 100 and above to plugins.
type Code uint

// The codes of the specification, and CodeInternal, which every Go plugin uses
// for what has no other code.
const (
	CodeIncompatibleVersion Code = 1  // the plugin does not speak the configuration's version
	CodeUnsupportedField    Code = 2  // the message must contain key and value
	CodeUnknownContainer    Code = 3  // the runtime need not clean up
	CodeInvalidEnvironment  Code = 4  // the message must contain the names of the variables
	CodeIO                  Code = 5  // for example a disk that is full
	CodeDecode              Code = 6  // something is not the JSON it should be
	CodeInvalidConfig       Code = 7  // the network configuration is wrong
	CodeTryAgain            Code = 11 // a passing condition; the runtime should try again later
	CodeNotAvailable        Code = 50 // STATUS: an ADD would fail now
	CodeLimitedConnectivity Code = 51 // STATUS: the same, and attached containers may suffer
	CodeInternal            Code = 999
)

// allowed reports whether a plugin may answer with the code.
func (c Code) allowed() bool {
	switch {
	case c >= 1 && c <= 7, c == CodeTryAgain, c == CodeNotAvailable, c == CodeLimitedConnectivity:
		return true
	}
	return c >= 100
}

// Error is an error as the protocol carries it. Its JSON form is the error
// document of the specification.
type Error struct {
	CNIVersion string // filled in by the handler of a Plugin
	Code       Code
	Msg        string // for a person; says what to do about it
	Details    string

	err error
}

// Errorf makes an [Error]. The verb %w works as in [fmt.Errorf].
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: err.Error(), err: err}
}

func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Details
}

// Unwrap returns what the error was made from, nil for one that was received.
func (e *Error) Unwrap() error { return e.err }

type errorDocument struct {
	CNIVersion string `json:"cniVersion"`
	Code       Code   `json:"code"`
	Msg        string `json:"msg"`
	Details    string `json:"details,omitempty"`
}

// MarshalJSON renders the error document of the specification.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(errorDocument{e.CNIVersion, e.Code, e.Msg, e.Details})
}

// UnmarshalJSON reads an error document.
func (e *Error) UnmarshalJSON(data []byte) error {
	var doc errorDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	*e = Error{CNIVersion: doc.CNIVersion, Code: doc.Code, Msg: doc.Msg, Details: doc.Details}
	return nil
}

// AsError finds the [*Error] in err, or makes one with the code that fits.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeInternal, "%w", err)
}

// FieldError says what is wrong with one value of a configuration. It reaches the
// runtime with [CodeInvalidConfig].
type FieldError struct {
	Key         string // as in the configuration, "ipam.ranges" for a nested one
	Value       any
	Reason      string // "contains a slash"
	Fix         string // "use letters and digits"; optional
	Unsupported bool   // the plugin does not know the key or value: CodeUnsupportedField
}

func (e *FieldError) Error() string {
	s := fmt.Sprintf("%s=%v: %s", e.Key, e.Value, e.Reason)
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}
