package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/cnikit/cnikit/internal/guest/kernels"
	"github.com/cnikit/cnikit/internal/guest/wire"
)

// writeImage writes the guest's initial file system to a file.
func writeImage(file string, kernel *kernels.Kernel, initProgram string, o Options) error {
	order, err := json.Marshal(wire.Run{Args: o.Args, Env: append(inherited(), o.Env...)})
	if err != nil {
		return err
	}
	modules, err := kernel.Load(o.Modules...)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	image := newCPIO(f)
	image.file(wire.Order, order)
	copies := map[string]string{wire.Init: initProgram, wire.Program: o.Program}
	for i, module := range modules {
		copies[path.Join(wire.Modules, fmt.Sprintf("%04d-%s", i, path.Base(module)))] = module
	}
	err = image.copy(copies)
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		if !path.IsAbs(name) {
			err = errors.Join(err, fmt.Errorf("file %q: the path is not absolute", name))
		}
		image.file(path.Clean(name), o.Files[name])
	}
	return errors.Join(err, image.close(), f.Close())
}

// inherited is what a test in a guest has from the one that boots it: all it needs must
// be there, and its size is the same.
func inherited() []string {
	env := []string{"CI=true"}
	if scale, ok := os.LookupEnv("CNIKIT_SCALE"); ok {
		env = append(env, "CNIKIT_SCALE="+scale)
	}
	return env
}

// copy adds files of this machine, by their names in the guest.
func (w *cpioWriter) copy(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		w.file(name, content)
	}
	return nil
}
