package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// outputs are where the reports go. They are opened before anything is examined, so
// that a file that cannot be written does not cost an examination.
type outputs struct {
	text, json, junit io.Writer // nil: not wanted
	files             []*os.File
}

func (o *options) open(stdout io.Writer) (*outputs, error) {
	out := &outputs{}
	for _, wanted := range []struct {
		name   string
		writer *io.Writer
	}{{o.json, &out.json}, {o.junit, &out.junit}} {
		switch wanted.name {
		case "":
		case "-":
			*wanted.writer = stdout
		default:
			file, err := os.Create(wanted.name)
			if err != nil {
				out.close()
				return nil, fmt.Errorf("open report: %w", err)
			}
			out.files = append(out.files, file)
			*wanted.writer = file
		}
	}
	if o.json != "-" && o.junit != "-" {
		out.text = stdout
	}
	return out, nil
}

func (out *outputs) close() {
	for _, file := range out.files {
		_ = file.Close()
	}
	out.files = nil
}

func (out *outputs) write(r *cnitest.Report, o *options) error {
	var errs []error
	if out.text != nil {
		errs = append(errs, r.WriteText(out.text, cnitest.TextOptions{
			Color: !o.plain && os.Getenv("NO_COLOR") == "" && terminal(out.text), Verbose: o.verbose, Command: o.again(),
		}))
	}
	if out.json != nil {
		errs = append(errs, r.WriteJSON(out.json))
	}
	if out.junit != nil {
		errs = append(errs, r.WriteJUnit(out.junit))
	}
	for _, file := range out.files {
		errs = append(errs, file.Close())
	}
	out.files = nil
	return errors.Join(errs...)
}

// again is the command line without what chooses cases and outputs.
func (o *options) again() string {
	words := []string{"cnisanity", "-plugin", o.plugin}
	for _, f := range []struct{ name, value string }{
		{"-type", o.typ}, {"-conf", o.conf}, {"-profile", o.profile}, {"-path", o.path.String()}, {"-dir", o.dirs.String()},
		{"-share", o.share.String()}, {"-args", o.args}, {"-capabilities", o.capabilities},
	} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	if o.timeout != cnitest.DefaultTimeout {
		words = append(words, "-timeout", o.timeout.String())
	}
	if o.strict {
		words = append(words, "-strict")
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// terminal reports whether somebody looks at what is written.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
