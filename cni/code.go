package cni

import (
	"context"
	"errors"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"
)

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

// codeOf chooses the code for an error that is no *Error itself.
func codeOf(err error) Code {
	var (
		inner  *Error
		field  *FieldError
		theirs *types.Error
		errno  syscall.Errno

		timeout interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &inner):
		return inner.Code
	case errors.As(err, &field):
		if field.Unsupported {
			return CodeUnsupportedField
		}
		return CodeInvalidConfig
	case errors.As(err, &theirs):
		return Code(theirs.Code)
	case errors.Is(err, ErrPluginNotFound):
		return CodeInvalidConfig
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return CodeTryAgain
	case errors.As(err, &errno):
		return codeOfErrno(errno)
	case errors.As(err, &timeout) && timeout.Timeout():
		return CodeTryAgain
	}
	return CodeInternal
}

func codeOfErrno(errno syscall.Errno) Code {
	switch errno {
	case syscall.EAGAIN, syscall.EBUSY, syscall.EINTR, syscall.ETIMEDOUT, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY,
		syscall.ECONNREFUSED, syscall.ECONNRESET: // an agent that is being restarted
		return CodeTryAgain
	case syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EFBIG:
		return CodeIO
	}
	return CodeInternal
}
