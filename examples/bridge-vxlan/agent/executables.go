package main

import (
	"errors"
	"flag"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
)

// plugins are the executables that the default conflist needs.
func plugins() []string { return []string{"cnikit-bridge", "cnikit-ipam"} }

func (o *options) executablesFlag(f *flag.FlagSet) {
	f.StringVar(&o.executables, "executables", "", "`directory` with the plugins cnikit-bridge and cnikit-ipam to copy (default: that of this program)")
}

// newExecutables returns the plugins in the directory that runtimes execute them from.
func (o options) newExecutables(phase int) (*install.Executables, error) {
	e, err := install.NewExecutables("executables", o.binDir, install.ExecutablesOptions{
		From: o.executables, Names: plugins(), Replace: o.replace, Owner: programName, Phase: phase,
	})
	var field *cni.FieldError
	if errors.As(err, &field) {
		if flag, ok := map[string]string{"dir": "-bin-dir", "from": "-executables"}[field.Key]; ok {
			return nil, &cni.FieldError{Key: flag, Value: field.Value, Reason: field.Reason, Fix: field.Fix}
		}
	}
	return e, err
}
