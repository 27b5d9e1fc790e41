package cni

import (
	"context"
	"errors"
	"strings"
)

// handler serves a plugin's invocations; p has its defaults filled in.
type handler[C any] struct{ p Plugin[C] }

func (h handler[C]) Handle(ctx context.Context, inv Invocation) ([]byte, error) {
	var out []byte
	inv, log := h.openLog(inv)
	err := protect(inv.Log, func() (err error) {
		out, err = h.serve(ctx, inv)
		return err
	})
	if err != nil {
		newest := h.p.Versions[len(h.p.Versions)-1]
		failed := AsError(sealed(err)).report(peekVersion(inv.Config, newest))
		log.close(failed)
		return nil, failed
	}
	log.close(nil)
	return out, nil
}

func (h handler[C]) serve(ctx context.Context, inv Invocation) ([]byte, error) {
	if err := h.p.validate(); err != nil {
		return nil, err
	}
	if inv.Command == "" {
		return nil, h.about()
	}
	if err := inv.Validate(); err != nil {
		return nil, err
	}
	if inv.Command == CommandVersion {
		return versionDocument(inv.Config, h.p.Versions)
	}
	r, err := h.request(inv)
	if err != nil {
		return nil, err
	}
	if h.p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.p.Timeout)
		defer cancel()
	}
	return h.call(ctx, r)
}

// about answers somebody who runs the executable by hand.
func (h handler[C]) about() error {
	err := Errorf(CodeInvalidEnvironment, "CNI_COMMAND is missing; this is a CNI plugin, which a container runtime executes")
	lines := []string{h.p.About, "CNI protocol versions supported: " + strings.Join(h.p.Versions, ", ")}
	if h.p.About == "" {
		lines[0] = "CNI plugin " + h.p.Type
	}
	err.Details = strings.Join(lines, "\n")
	return err
}

// request decodes an invocation, cheap and general checks first.
func (h handler[C]) request(inv Invocation) (*Request[C], error) {
	e, err := readEnvelope(inv)
	if err != nil {
		return nil, err
	}
	log := h.describe(inv.Log, inv, e.network)
	if err := checkVersion(inv.Command, e.version, h.p.Versions, log); err != nil {
		return nil, err
	}
	r := &Request[C]{
		Command: inv.Command, ContainerID: inv.ContainerID, IfName: inv.IfName, Path: inv.Path,
		CNIVersion: e.version, Network: e.network, Type: e.typ, RawConfig: inv.Config, Valid: e.valid,
		Log: log, inv: inv, delegates: h.p.Delegates,
	}
	if r.Args, err = ParseArgs(inv.Args); err != nil {
		r.Log.Warn("CNI_ARGS is ignored", "error", err) // Validate refused an ADD and a CHECK
	}
	if r.NetNS, err = guardNetNS(inv, h.p.AllowHostNetNS); err != nil {
		return nil, err
	}
	if r.PrevResult, err = e.readPrevResult(inv, r.Log); err != nil {
		return nil, err
	}
	if inv.Command.cleans() {
		r.Config = salvageConfig[C](inv.Config, r.Log)
		return r, nil
	}
	r.Config, err = decodeConfig[C](inv.Config)
	return r, err
}

func (h handler[C]) call(ctx context.Context, r *Request[C]) ([]byte, error) {
	fn := map[Command]func(context.Context, *Request[C]) error{
		CommandDel: h.p.Del, CommandCheck: h.p.Check, CommandStatus: h.p.Status, CommandGC: h.p.GC,
	}[r.Command]
	if fn == nil {
		return h.add(ctx, r)
	}
	err := blameContext(ctx, fn(ctx, r))
	if r.Command == CommandStatus {
		err = unavailable(err)
	}
	return nil, err
}

// unavailable gives an error of STATUS that has no code the one that tells a runtime
// what it asked: an ADD would fail now.
func unavailable(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) || codeOf(err) != CodeInternal && !errors.Is(err, ErrPluginNotFound) {
		return err
	}
	return Errorf(CodeNotAvailable, "%w", err)
}

// add runs an ADD up to the finished document; whatever fails on the way, panics
// included, is undone.
func (h handler[C]) add(ctx context.Context, r *Request[C]) ([]byte, error) {
	var out []byte
	err := protect(r.Log, func() error {
		result, err := h.p.Add(ctx, r)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return Errorf(CodeTryAgain, "ADD was cancelled before it was done: %w", context.Cause(ctx))
		}
		if result == nil {
			return errors.New("the Add function returned neither a result nor an error")
		}
		out, err = result.Encode(r.CNIVersion)
		return err
	})
	if err == nil {
		return out, nil
	}
	return nil, rollBack(ctx, blameContext(ctx, err), r.undo, r.Log)
}

// blameContext gives an error without a code the one of a cancelled request, if it
// was cancelled: the error is a consequence then.
func blameContext(ctx context.Context, err error) error {
	var e *Error
	if err == nil || ctx.Err() == nil || errors.As(err, &e) || codeOf(err) != CodeInternal {
		return err
	}
	return Errorf(CodeTryAgain, "%w (%w)", err, context.Cause(ctx))
}
