package install

import (
	"errors"
	"fmt"
	"io/fs"
)

// executable is the mode of what is installed.
const executable fs.FileMode = 0o755

// A program is the wanted or observed state of an executable.
type program struct {
	digest   string // SHA-256 in hexadecimal; of a wanted one never empty, of an observed one empty for what is no regular file
	mode     fs.FileMode
	size     int64  // bytes
	version  string // what its build information says; empty for scripts and the like
	standing standing
	fault    error // why a wanted one cannot be had
}

// A standing is what the record has to say about an observed program.
type standing byte

const (
	ours     standing = iota // recorded; also of wanted ones
	unnoted                  // what was recorded as about to come, before a crash
	foreign                  // not recorded, or no regular file
	leftover                 // a temporary file
)

// equal reports whether observed needs no change. A foreign file that is the same is as good as our own, however its package
// sets its mode.
func (p program) equal(observed program) bool {
	if p.fault != nil || observed.fault != nil {
		return p.fault != nil && observed.fault != nil && p.fault.Error() == observed.fault.Error()
	}
	mode := p.mode == observed.mode || observed.standing == foreign && observed.mode&0o111 != 0
	return p.digest == observed.digest && mode && observed.standing != unnoted
}

// String describes the program for plans.
func (p program) String() string {
	if p.fault != nil {
		return p.fault.Error()
	}
	text := p.mode.String()
	if p.digest != "" {
		text += fmt.Sprintf(", %d bytes, sha256 %.12s", p.size, p.digest)
	}
	if p.version != "" {
		text += ", " + p.version
	}
	return text + map[standing]string{
		unnoted:  ", not noted yet",
		foreign:  ", not installed by this program",
		leftover: ", left over",
	}[p.standing]
}

// usable returns why a file cannot be the source of an executable.
func usable(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("is no regular file; give the directory of the executables")
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("has mode %v and is not executable; give it mode %v, or the directory of the executables", info.Mode(), executable)
	}
	return nil
}

func hasLeftover(seen map[string]program) bool {
	for _, p := range seen {
		if p.standing == leftover {
			return true
		}
	}
	return false
}
