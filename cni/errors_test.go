package cni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorf(t *testing.T) {
	err := Errorf(CodeIO, "write lease: %w", fs.ErrPermission)
	assert.Equal(t, CodeIO, err.Code)
	assert.Equal(t, "write lease: permission denied", err.Error())
	assert.ErrorIs(t, err, fs.ErrPermission)
	err.Details = "disk 3"
	assert.Equal(t, "write lease: permission denied; disk 3", err.Error())
}

func TestErrorDocument(t *testing.T) {
	for _, doc := range []string{
		`{"cniVersion":"1.0.0","code":7,"msg":"no","details":"never"}`,
		`{"cniVersion":"","code":999,"msg":"a < b"}`,
	} {
		var e Error
		require.NoError(t, json.Unmarshal([]byte(doc), &e))
		out, err := json.Marshal(&e)
		require.NoError(t, err)
		assert.JSONEq(t, doc, string(out))
	}
	var e Error
	assert.Error(t, json.Unmarshal([]byte(`{"code":"7"}`), &e))
	assert.NoError(t, errors.Unwrap(&e))
}

// patient is an error like those of package net that is no timeout.
type patient struct{}

func (patient) Error() string { return "refused" }
func (patient) Timeout() bool { return false }

func TestAsError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Code
	}{
		"an Error in a chain":      {fmt.Errorf("x: %w", Errorf(CodeNotAvailable, "y")), CodeNotAvailable},
		"among joined ones":        {errors.Join(errors.New("x"), Errorf(CodeUnknownContainer, "y")), CodeUnknownContainer},
		"field":                    {fmt.Errorf("x: %w", &FieldError{Key: "k"}), CodeInvalidConfig},
		"unsupported field":        {&FieldError{Key: "k", Unsupported: true}, CodeUnsupportedField},
		"containernetworking":      {types.NewError(types.ErrTryAgainLater, "m", "d"), CodeTryAgain},
		"no plugin":                {fmt.Errorf("x: %w", ErrPluginNotFound), CodeInvalidConfig},
		"cancelled":                {fmt.Errorf("x: %w", context.Canceled), CodeTryAgain},
		"deadline":                 {context.DeadlineExceeded, CodeTryAgain},
		"passing, in a path error": {&fs.PathError{Op: "open", Path: "/", Err: syscall.EMFILE}, CodeTryAgain},
		"busy":                     {syscall.EBUSY, CodeTryAgain},
		"nobody listens":           {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, CodeTryAgain},
		"a deadline of a socket":   {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, CodeTryAgain},
		"no deadline":              {patient{}, CodeInternal},
		"no such socket":           {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENOENT)}, CodeInternal},
		"disk full":                {syscall.ENOSPC, CodeIO},
		"another errno":            {syscall.EINVAL, CodeInternal},
		"anything":                 {errors.New("x"), CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			e := AsError(c.err)
			assert.Equal(t, c.want, e.Code)
			assert.Equal(t, c.err.Error(), e.Error(), "the whole message is kept")
			assert.ErrorIs(t, e, c.err)
		})
	}
	t.Run("nil", func(t *testing.T) { assert.Nil(t, AsError(nil)) })
	t.Run("an Error itself", func(t *testing.T) {
		e := Errorf(CodeIO, "x")
		assert.Same(t, e, AsError(e))
	})
}

func TestErrorReport(t *testing.T) {
	t.Run("a code that the specification reserves becomes the internal one", func(t *testing.T) {
		for _, code := range []Code{0, 8, 9, 10, 12, 49, 52, 99} {
			e := (&Error{Code: code, Msg: "m", Details: "d"}).report("1.0.0")
			assert.Equal(t, CodeInternal, e.Code)
			assert.Equal(t, fmt.Sprintf("d; reported with code %d, which the specification does not define", code), e.Details)
		}
		for _, code := range []Code{1, 7, 11, 50, 51, 100, 999} {
			assert.Equal(t, code, (&Error{Code: code}).report("").Code)
		}
	})
	t.Run("the error is copied", func(t *testing.T) {
		e := &Error{}
		r := e.report("1.0.0")
		assert.Equal(t, "1.0.0", r.CNIVersion)
		assert.NotEmpty(t, r.Msg)
		assert.Equal(t, &Error{}, e)
	})
}

func TestFieldError(t *testing.T) {
	for want, e := range map[string]FieldError{
		`bridge="a/b": contains a slash; use letters`: {Key: "bridge", Value: "a/b", Reason: "contains a slash", Fix: "use letters"},
		`alias="<a> & b": is taken`:                   {Key: "alias", Value: "<a> & b", Reason: "is taken"},
		`mtu=9000: is too large`:                      {Key: "mtu", Value: 9000, Reason: "is too large"},
		`subnet="10.0.0.0/8": is taken`:               {Key: "subnet", Value: netip.MustParsePrefix("10.0.0.0/8"), Reason: "is taken"},
		`x={"a":[1]}: is wrong`:                       {Key: "x", Value: json.RawMessage(`{"a":[1]}`), Reason: "is wrong"},
		`f=(1+2i): is wrong`:                          {Key: "f", Value: 1 + 2i, Reason: "is wrong"},
	} {
		assert.Equal(t, want, e.Error())
	}
	long := FieldError{Key: "x", Value: strings.Repeat("ü", 500), Reason: "is long"}
	assert.Less(t, len(long.Error()), 230)
}
