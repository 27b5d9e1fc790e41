package cni

import (
	"fmt"
	"strings"
)

// Args are the generic arguments of CNI_ARGS, in order.
type Args []Arg

// Arg is one argument.
type Arg struct {
	Key, Value string
}

// ParseArgs reads the form "KEY=value;KEY=value". A value may contain '='; empty
// pieces, as a trailing ';' leaves one, are skipped.
func ParseArgs(s string) (Args, error) {
	var args Args
	for piece := range strings.SplitSeq(s, ";") {
		if piece == "" {
			continue
		}
		key, value, ok := strings.Cut(piece, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("parse arguments: %q is not KEY=value", piece)
		}
		args = append(args, Arg{key, value})
	}
	return args, nil
}

// Get returns the first value of key.
func (a Args) Get(key string) (string, bool) {
	for _, arg := range a {
		if arg.Key == key {
			return arg.Value, true
		}
	}
	return "", false
}

// Validate reports an argument that the form of CNI_ARGS cannot carry, which has
// no escapes: a ';' in a value would smuggle in further arguments.
func (a Args) Validate() error {
	for _, arg := range a {
		switch {
		case arg.Key == "":
			return fmt.Errorf("argument %q=%q: the key is empty", arg.Key, arg.Value)
		case strings.ContainsAny(arg.Key, "=;\x00"):
			return fmt.Errorf("argument %q: the key contains '=', ';' or a zero byte", arg.Key)
		case strings.ContainsAny(arg.Value, ";\x00"):
			return fmt.Errorf("argument %q=%q: the value contains ';' or a zero byte", arg.Key, arg.Value)
		}
	}
	return nil
}

// String renders the form that ParseArgs reads. See [Args.Validate].
func (a Args) String() string {
	pieces := make([]string, len(a))
	for i, arg := range a {
		pieces[i] = arg.Key + "=" + arg.Value
	}
	return strings.Join(pieces, ";")
}
