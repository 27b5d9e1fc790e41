package cni

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plugin is a CNI plugin whose configuration, the JSON object that arrives on
// standard input, decodes into C. If C or *C has a method Validate() error, it is
// called before Add, Check and Status; not before Del and GC, because cleaning up
// must not be refused. For the same reason Del and GC get a Config without the
// members that do not decode, while the other commands fail.
//
// An error without a code gets one as [AsError] says; an error of Status that would
// be [CodeInternal], or is about a delegate that is missing, gets [CodeNotAvailable].
//
// All five functions are required; see [NoState], [Ready] and [CheckWith] for
// those that have nothing to do. Plugin is a value without state and safe for
// concurrent use if its functions are.
type Plugin[C any] struct {
	Type  string // the name of the executable
	About string // one line for who runs the executable by hand

	Add    func(context.Context, *Request[C]) (*Result, error)
	Del    func(context.Context, *Request[C]) error
	Check  func(context.Context, *Request[C]) error
	Status func(context.Context, *Request[C]) error
	GC     func(context.Context, *Request[C]) error

	Versions       []string      // of the specification; default SupportedVersions
	Timeout        time.Duration // of one call, without its undo steps; 0 none
	Delegates      Executor      // finds delegates; default Exec{}
	AllowHostNetNS bool          // serve requests for the plugin's own namespace

	// Log says where the log of a request goes beside standard error; default nowhere.
	// It gets the configuration as far as it decodes, which need not be valid. How each
	// request ended, with its error, is written there, too.
	Log func(C) LogOptions
}

// Handler returns the plugin as a [Handler], without its configuration type. A
// plugin with a nil function answers every command, VERSION too, with an error
// that names the field and what to set it to.
//
// The handler calls the plugin's functions on the goroutine that calls it. When
// the context ends before an ADD is done, its undo steps run and the error has
// [CodeTryAgain], unless it has a code of its own.
func (p Plugin[C]) Handler() Handler {
	if len(p.Versions) == 0 {
		p.Versions = SupportedVersions()
	}
	p.Versions = sortVersions(p.Versions)
	return handler[C]{p}
}

// validate finds what the author of the plugin left out.
func (p Plugin[C]) validate() error {
	var faults []error
	for _, field := range []struct {
		name   string
		isNil  bool
		remedy string
	}{
		{"Add", p.Add == nil, "return r.PrevResult if the plugin changes nothing"},
		{"Del", p.Del == nil, "cni.NoState if ADD leaves nothing behind"},
		{"Check", p.Check == nil, "cni.CheckWith(netif.Verify) to compare interfaces with prevResult, or cni.NoState if there is nothing to compare"},
		{"Status", p.Status == nil, "cni.Ready if an ADD can always be served"},
		{"GC", p.GC == nil, "cni.NoState if ADD leaves nothing behind outside the container's namespace"},
	} {
		if field.isNil {
			faults = append(faults, fmt.Errorf("plugin %q has no function %s: write one; or %s", p.Type, field.name, field.remedy))
		}
	}
	for _, version := range p.Versions {
		if !slices.Contains(SupportedVersions(), version) {
			faults = append(faults, fmt.Errorf("plugin %q lists version %q: use versions out of %v", p.Type, version, SupportedVersions()))
		}
	}
	if len(faults) > 0 {
		return Errorf(CodeInternal, "%w", errors.Join(faults...))
	}
	return nil
}

// NoState says that the plugin keeps nothing that the command would look at:
// success. For Del, Check and GC.
func NoState[C any](context.Context, *Request[C]) error { return nil }

// Ready says that the plugin can always serve an ADD: success. For Status.
func Ready[C any](context.Context, *Request[C]) error { return nil }
