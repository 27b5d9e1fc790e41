package cni

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrPluginNotFound says that an [Executor] has no plugin of that type: no file of
// that name in the search path can be executed. It is always about the plugin that
// was asked for: the error of one that ran and missed a delegate does not match.
var ErrPluginNotFound = errors.New("plugin not found")

// Error is an error as the protocol carries it. Its JSON form is the error
// document of the specification.
type Error struct {
	CNIVersion string // filled in by the handler of a Plugin
	Code       Code
	Msg        string // for a person; says what to do about it
	Details    string

	err error
}

var (
	_ json.Marshaler   = (*Error)(nil)
	_ json.Unmarshaler = (*Error)(nil)
)

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

// AsError makes the [*Error] that reports err to a runtime; nil for nil.
//
// An *Error is returned as it is. One that was wrapped keeps its code, and the
// message is that of err. Otherwise the code follows from what err matches: a
// [FieldError] is [CodeInvalidConfig] or [CodeUnsupportedField],
// [ErrPluginNotFound] is [CodeInvalidConfig], the end of a context, a timeout, and
// passing conditions of the system (EAGAIN, EBUSY, ENOBUFS, ECONNREFUSED and the
// like) are [CodeTryAgain], failures of storage (EIO, ENOSPC, EROFS and the like)
// are [CodeIO], everything else is [CodeInternal]. Errors of containernetworking/cni
// keep their code.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // a wrapped one is treated differently
		return e
	}
	return Errorf(codeOf(err), "%w", err)
}

// sealed is the error of a plugin that ran, for who asked for that plugin: the
// same, but if it comes from another plugin that was not found, it no longer
// matches [ErrPluginNotFound], as if it had been received from an executable.
func sealed(err error) error {
	if !errors.Is(err, ErrPluginNotFound) {
		return err
	}
	e := *AsError(err)
	e.err = nil
	return &e
}

// report is the error as it leaves a plugin: a copy that carries the version, a
// code that the specification allows and a message.
func (e *Error) report(version string) *Error {
	r := *e
	r.CNIVersion = version
	if !r.Code.allowed() {
		r.addDetail(fmt.Sprintf("reported with code %d, which the specification does not define", e.Code))
		r.Code = CodeInternal
	}
	if r.Msg == "" {
		r.Msg = "no message was given"
	}
	return &r
}

func (e *Error) addDetail(detail string) {
	if e.Details != "" {
		detail = e.Details + "; " + detail
	}
	e.Details = detail
}
