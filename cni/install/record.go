package install

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// recordMark ends the name of every record, which begins with a dot and the owner.
const recordMark = ".cnikit-installed"

// A record says what an owner installed into a directory. It lies there itself and is written before the executable appears,
// so there is never one of ours that it does not know:
//
//	absent         nothing, or {installing: B} of an installation that was cut off
//	A in place     {installed: A}
//	B coming       {installed: A, installing: B}, with A or B in place, whatever is cut off when
//	B in place     {installed: B}
//	being removed  {installing: B}, with B in place or gone
//
// A file that differs is drift, and ours to repair, where something is installed, and foreign where something is installing
// at most: in our absence somebody else may have taken the name.
type record struct {
	Owner string           `json:"owner"`
	Files map[string]entry `json:"files"`

	damage error // why the record could not be used; then it knows nothing
}

// An entry is what is known of one name.
type entry struct {
	Installed  *stamp `json:"installed,omitempty"`
	Installing *stamp `json:"installing,omitempty"`
}

// A stamp identifies a program. The version is for people.
type stamp struct {
	SHA256  string `json:"sha256"`
	Version string `json:"version,omitempty"`
}

func stampOf(p program) *stamp { return &stamp{SHA256: p.digest, Version: p.version} }

// readRecord returns the record at path. A missing one knows nothing; nor does one that is torn or somebody else's.
func readRecord(path, owner string) (record, error) {
	empty := record{Owner: owner, Files: map[string]entry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("read record: %w", err)
	}
	var r record
	err = json.Unmarshal(text, &r)
	if err == nil && r.Owner != owner {
		err = fmt.Errorf("belongs to %q", r.Owner)
	}
	if err == nil {
		err = r.validate()
	}
	if err != nil {
		empty.damage = fmt.Errorf("record %s: %w", path, err)
		return empty, nil
	}
	return r, nil
}

func (r record) validate() error {
	if r.Files == nil {
		return errors.New("has no files")
	}
	for name, e := range r.Files {
		if !isPlain(name) {
			return fmt.Errorf("%q is no plain file name", name)
		}
		for _, s := range []*stamp{e.Installed, e.Installing} {
			if s == nil {
				continue
			}
			if sum, err := hex.DecodeString(s.SHA256); err != nil || len(sum) != 32 {
				return fmt.Errorf("%q is no SHA-256", s.SHA256)
			}
		}
	}
	return nil
}

// write puts the record on disk.
func (r record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return WriteFile(path, File{Content: append(text, '\n')})
}

// stands returns the standing of an observed program.
func (r record) stands(name string, p program) standing {
	e := r.Files[name]
	switch {
	case p.digest == "":
		return foreign
	case e.Installing.is(p):
		return unnoted
	case e.Installed != nil:
		return ours
	}
	return foreign
}

// knows reports whether a program is one that was installed under the name.
func (r record) knows(name string, p program) bool {
	e := r.Files[name]
	return e.Installing.is(p) || e.Installed.is(p)
}

// begin notes that a program is about to replace another, or nothing.
func (r record) begin(name string, old *program, coming program) {
	e := r.Files[name]
	switch {
	case old == nil || old.standing == foreign:
		e.Installed = nil
	case old.standing == unnoted:
		e.Installed = e.Installing
	}
	e.Installing = stampOf(coming)
	r.Files[name] = e
}

// finish notes that what was coming is in place.
func (r record) finish(name string) { r.Files[name] = entry{Installed: r.Files[name].Installing} }

// retire notes that a program is about to be removed.
func (r record) retire(name string, p program) { r.Files[name] = entry{Installing: stampOf(p)} }

func (s *stamp) is(p program) bool { return s != nil && s.SHA256 == p.digest }
