package fromskel

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnikit/cnikit/cni"
)

// Main is skel.PluginMainFuncs with the plugin of [Plugin]: the whole main function
// of a program. It serves one call and exits.
func Main(funcs skel.CNIFuncs, versions version.PluginInfo, about string) {
	cni.Main(Plugin[struct{}](funcs, versions, about).Handler())
}

// Plugin returns a plugin whose functions run the callbacks. The arguments are those
// of skel.PluginMainFuncs.
//
// C is the configuration type of functions that replace callbacks, struct{} if none
// does. A configuration that does not decode into it is refused before a callback
// of ADD, CHECK or STATUS sees it.
//
// A nil callback leaves its function nil, and the plugin answers with an error that
// says so, where skel answers with success: set the function, for example to
// cni.NoState. Versions that package cni does not speak are left out; nil stands
// for all that it speaks. AllowHostNetNS is set if the environment says
// CNI_NETNS_OVERRIDE as skel wants it; Type is the name of the executable.
//
// When an ADD fails although its callback succeeded, because it printed no result or
// the request was cancelled, the callback of DEL runs.
func Plugin[C any](funcs skel.CNIFuncs, versions version.PluginInfo, about string) cni.Plugin[C] {
	speaks := spoken(versions)
	p := cni.Plugin[C]{
		Type:           filepath.Base(os.Args[0]),
		About:          about,
		Del:            function[C](funcs.Del, speaks),
		Check:          function[C](funcs.Check, speaks),
		Status:         function[C](funcs.Status, speaks),
		GC:             function[C](funcs.GC, speaks),
		Versions:       speaks,
		AllowHostNetNS: overridden(os.Getenv("CNI_NETNS_OVERRIDE")),
	}
	if funcs.Add != nil {
		p.Add = func(ctx context.Context, r *cni.Request[C]) (*cni.Result, error) {
			return add(ctx, r, callOf(r, speaks), funcs)
		}
	}
	return p
}

// callback is what skel calls for a command.
type callback = func(*skel.CmdArgs) error

func function[C any](fn callback, speaks []string) func(context.Context, *cni.Request[C]) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, r *cni.Request[C]) error {
		return inTurn(ctx, func() error { return run(callOf(r, speaks), fn) })
	}
}

// add runs the callback of an ADD and makes a result of what it prints.
func add[C any](ctx context.Context, r *cni.Request[C], c call, funcs skel.CNIFuncs) (*cni.Result, error) {
	var printed []byte
	err := inTurn(ctx, func() (err error) {
		printed, err = captured(func() error { return run(c, funcs.Add) })
		return err
	})
	if err != nil {
		show(printed)
		return nil, err
	}
	if funcs.Del != nil {
		r.Undo("ADD of the callback", func(ctx context.Context) error {
			undo := c
			undo.command = cni.CommandDel
			return inTurn(ctx, func() error { return run(undo, funcs.Del) })
		})
	}
	document, rest, err := findResult(printed)
	show(rest)
	if err != nil {
		return nil, err
	}
	result, err := cni.ParseResult(document, r.CNIVersion)
	if err != nil {
		return nil, cni.Errorf(cni.CodeInternal, "the Add callback printed a bad result: %w", err)
	}
	return result, nil
}

// show prints what was captured and is no result, where the callback wanted it.
func show(text []byte) {
	if text = bytes.TrimSpace(text); len(text) > 0 {
		_, _ = fmt.Fprintf(os.Stdout, "%s\n", text)
	}
}

// spoken are the versions that both the callbacks and package cni speak.
func spoken(info version.PluginInfo) []string {
	if info == nil {
		return cni.SupportedVersions()
	}
	listed := info.SupportedVersions()
	both := slices.DeleteFunc(slices.Clone(listed), func(version string) bool {
		return !slices.Contains(cni.SupportedVersions(), version)
	})
	if len(both) == 0 {
		return listed // the plugin says what is wrong with them
	}
	return both
}

// overridden is what skel makes of CNI_NETNS_OVERRIDE.
func overridden(value string) bool { return value == "1" || strings.ToUpper(value) == "TRUE" }
