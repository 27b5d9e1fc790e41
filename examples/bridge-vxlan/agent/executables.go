package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
)

// plugins are the executables that the default conflist needs.
func plugins() []string { return []string{"cnikit-bridge", "cnikit-ipam"} }

func (o *options) executablesFlag(f *flag.FlagSet) {
	f.StringVar(&o.executables, "executables", "", "`directory` with the plugins cnikit-bridge and cnikit-ipam to copy (default: that of this program)")
}

// checkExecutables refuses a directory without the plugins, such as that of an agent which
// was built alone.
func (o options) checkExecutables() error {
	if o.binDir == "" {
		return nil
	}
	var lacks []string
	for _, name := range plugins() {
		if _, err := os.Stat(filepath.Join(o.executables, name)); errors.Is(err, fs.ErrNotExist) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &cni.FieldError{Key: "-executables", Value: o.executables, Reason: "lacks " + strings.Join(lacks, " and "), Fix: "give the directory that has the plugins"}
}

// explainForeign adds what lets a foreign executable be replaced.
func explainForeign(err error) error {
	if !errors.Is(err, install.ErrForeign) {
		return err
	}
	return fmt.Errorf("%w (%s install -replace does)", err, programName)
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
