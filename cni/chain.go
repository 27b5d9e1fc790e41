package cni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Chain makes one [Handler] of several, in order: a plugin of parts that can also
// stand alone, as a list of plugins in a configuration does. All get the same
// configuration, which each decodes into its own type.
//
//   - ADD runs forward. Each handler gets the result of the one before it as
//     prevResult, the first that of the request; the result of the last is the result.
//     When one fails, DEL runs for those before it, the last first, each on a context of
//     its own with the limits of [Request.Undo], and the error says what remained. The
//     one that failed has undone its own part, as a Plugin does: its DEL could hit what
//     an earlier ADD made, which may be why it failed. So it is the first handler that
//     should refuse an attachment that is there already (see netif.CheckVacant).
//   - DEL runs backward and completely, whatever fails on the way.
//   - CHECK runs forward up to the first error.
//   - STATUS and GC run forward and completely.
//   - VERSION tells the versions that all of them support.
//
// Where all run, the errors are joined; the code is that of the first, or
// [CodeLimitedConnectivity] if one has it, and what several say alike is said once.
// Results keep the text that a handler printed, unknown keys and numbers too, unless
// they have to be converted to the version of the configuration.
//
// Chain calls the handlers one after the other on the goroutine that calls it. It is
// an error of every command to have no handlers, or one that is nil.
func Chain(handlers ...Handler) Handler { return chained(slices.Clone(handlers)) }

type chained []Handler

func (c chained) Handle(ctx context.Context, inv Invocation) ([]byte, error) {
	out, err := c.serve(ctx, inv)
	if err != nil {
		return nil, AsError(sealed(err)).report(peekVersion(inv.Config, newestVersion()))
	}
	return out, nil
}

func (c chained) serve(ctx context.Context, inv Invocation) ([]byte, error) {
	if len(c) == 0 || slices.Contains(c, nil) {
		return nil, Errorf(CodeInternal, "the chain has no handlers, or one that is nil: give Chain the handlers of plugins")
	}
	if inv.Command == "" {
		return nil, c.about(ctx, inv)
	}
	if err := inv.Validate(); err != nil {
		return nil, err
	}
	if inv.Command == CommandVersion {
		return c.version(ctx, inv)
	}
	e, err := readEnvelope(inv)
	if err != nil { // each handler would say so
		return nil, err
	}
	switch inv.Command {
	case CommandAdd:
		return c.add(ctx, inv, e.version)
	case CommandDel:
		return nil, c.all(ctx, inv, slices.Backward(c))
	case CommandCheck:
		for _, h := range c {
			if _, err := call(ctx, h, inv); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return nil, c.all(ctx, inv, slices.All(c))
}

// about answers somebody who runs the executable by hand.
func (c chained) about(ctx context.Context, inv Invocation) error {
	var lines []string
	err := Errorf(CodeInvalidEnvironment, "CNI_COMMAND is missing")
	for _, h := range c {
		_, e := call(ctx, h, inv)
		var theirs *Error
		if errors.As(e, &theirs) {
			err.Msg = theirs.Msg
			lines = append(lines, theirs.Details)
		}
	}
	err.Details = strings.Join(lines, "\n")
	return err
}

// version intersects what the handlers support.
func (c chained) version(ctx context.Context, inv Invocation) ([]byte, error) {
	var common []string
	for i, h := range c {
		out, err := call(ctx, h, inv)
		if err != nil {
			return nil, err
		}
		versions, err := readVersions(out)
		if err != nil {
			return nil, Errorf(CodeDecode, "%s of the chain: %w", c.name(i), err)
		}
		if i == 0 {
			common = versions
		}
		common = slices.DeleteFunc(common, func(v string) bool { return !slices.Contains(versions, v) })
	}
	if len(common) == 0 {
		return nil, Errorf(CodeIncompatibleVersion, "the plugins of the chain have no version of the specification in common")
	}
	return versionDocument(inv.Config, common)
}

// all runs all handlers and joins the errors.
func (c chained) all(ctx context.Context, inv Invocation, handlers iter.Seq2[int, Handler]) error {
	var errs []error
	for _, h := range handlers {
		_, err := call(ctx, h, inv)
		errs = append(errs, err)
	}
	return joinErrors(errs...)
}

func (c chained) add(ctx context.Context, inv Invocation, version string) ([]byte, error) {
	config, err := readDocument(inv.Config)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage // of the last that succeeded
	request := func() Invocation {
		inv := inv
		if result != nil {
			inv.Config = config.with("prevResult", result).encode()
		}
		return inv
	}
	for i, h := range c {
		out, refused, err := attach(ctx, h, request(), version)
		if err == nil {
			result = out
			continue
		}
		left := i + 1 // a handler that is broken may have left something
		if refused {
			left = i
		}
		return nil, c.undo(ctx, left, request(), err)
	}
	return result, nil
}

// attach runs the ADD of one handler. Its result is in the version given. refused is that
// of ask: of a result that the chain cannot use, the handler knows nothing.
func attach(ctx context.Context, h Handler, inv Invocation, version string) (out []byte, refused bool, err error) {
	out, refused, err = ask(ctx, h, inv)
	if err == nil {
		out, err = sameVersion(out, version)
	}
	if err == nil && ctx.Err() != nil {
		err = Errorf(CodeTryAgain, "ADD was cancelled before it was done: %w", context.Cause(ctx))
	}
	return out, refused, err
}

// undo runs DEL for the first n handlers, the last first, and returns the error of the
// ADD with what could not be undone.
func (c chained) undo(ctx context.Context, n int, inv Invocation, cause error) error {
	inv.Command = CommandDel
	var steps []undoStep
	for i, h := range c[:n] {
		steps = append(steps, undoStep{"ADD of " + c.name(i), func(ctx context.Context) error {
			_, err := call(ctx, h, inv)
			return err
		}})
	}
	return rollBack(ctx, cause, steps, inv.logger())
}

func (c chained) name(i int) string { return fmt.Sprintf("plugin %d of %d", i+1, len(c)) }

// call runs a handler, which may be one that panics or answers with junk.
func call(ctx context.Context, h Handler, inv Invocation) ([]byte, error) {
	out, _, err := ask(ctx, h, inv)
	return out, err
}

// ask is call that tells of an error whether the handler refused, or is broken.
func ask(ctx context.Context, h Handler, inv Invocation) (out []byte, refused bool, err error) {
	err = protect(inv.logger(), func() (err error) {
		out, err = h.Handle(ctx, inv)
		refused = err != nil
		return err
	})
	if err != nil {
		return nil, refused, err
	}
	if inv.Command == "" {
		return nil, false, nil
	}
	return out, false, checkDocument(out, inv.Command)
}

// sameVersion returns a result as a document of the version: the same text if it is
// one.
func sameVersion(out []byte, version string) ([]byte, error) {
	result, err := ParseResult(out, version)
	if err != nil {
		return nil, Errorf(CodeDecode, "read the result of an ADD: %w", err)
	}
	if result.CNIVersion != version {
		return result.Encode(version)
	}
	d, err := readDocument(out)
	if err != nil {
		return nil, err
	}
	return d.with("cniVersion", quote(version)).encode(), nil
}

// joinErrors is the error of several that each have their own code; nil for none. What
// several say alike is said once.
func joinErrors(all ...error) error {
	var errs []error
	for _, err := range all {
		if err != nil && !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return errs[0]
	}
	code := codeOf(errs[0])
	if slices.ContainsFunc(errs, func(err error) bool { return codeOf(err) == CodeLimitedConnectivity }) {
		code = CodeLimitedConnectivity
	}
	return Errorf(code, "%w", errors.Join(errs...))
}
