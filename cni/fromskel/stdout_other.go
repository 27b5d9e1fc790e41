//go:build !linux

package fromskel

import (
	"io"
	"math"
	"os"

	"github.com/cnikit/cnikit/cni"
)

// captured returns what is printed to os.Stdout while fn runs. The variable is
// another file meanwhile. When fn panics, the text is printed. It is called in turn.
func captured(fn func() error) (printed []byte, err error) {
	file, err := os.CreateTemp("", "stdout")
	if err != nil {
		return nil, cni.Errorf(cni.CodeIO, "capture standard output: %w", err)
	}
	stdout, returned := os.Stdout, false
	os.Stdout = file
	defer func() {
		os.Stdout = stdout
		printed, _ = io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
		_ = file.Close()
		_ = os.Remove(file.Name())
		if !returned {
			show(printed)
		}
	}()
	err = fn()
	returned = true
	return nil, err
}
