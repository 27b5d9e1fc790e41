package cni

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
)

// protect turns a panic of fn into an error. The log gets the whole stack, the
// error the place.
func protect(log *slog.Logger, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e := Errorf(CodeInternal, "panic: %v", v)
			e.Details = "at " + panicSite()
			log.Error("panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = e
		}
	}()
	return fn()
}

// panicSite is the innermost function outside the runtime that a panic came
// through. It must be called by the deferred function that recovered.
func panicSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
