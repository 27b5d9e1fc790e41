package main

import (
	"errors"
	"strings"

	"github.com/cnikit/cnikit/overlay/file"
)

// onTrouble notes what is wrong with the source now, nil when nothing is.
func (a *agent) onTrouble(err error) {
	a.updating.Lock()
	a.trouble = flatten(err)
	a.updating.Unlock()
	a.update()
}

// flatten returns the errors that [errors.Join] has joined.
func flatten(err error) []error {
	var joined interface {
		error
		Unwrap() []error
	}
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &joined) || !isJoin(err, joined.Unwrap()):
		return []error{err}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, flatten(e)...)
	}
	return errs
}

// isJoin reports whether an error says nothing but what its parts say.
func isJoin(err error, parts []error) bool {
	var texts []string
	for _, e := range parts {
		texts = append(texts, e.Error())
	}
	return err.Error() == strings.Join(texts, "\n")
}

// ownTrouble returns what is wrong with the own entry of the topology file, and whatever
// else is wrong with the source; lost: the own entry cannot be used at all.
func (a *agent) ownTrouble() (own, others []string, lost bool) {
	for _, err := range a.trouble {
		var entry *file.EntryError
		if errors.As(err, &entry) && entry.Node == a.opts.node {
			own, lost = append(own, err.Error()), lost || !entry.Used
			continue
		}
		others = append(others, err.Error())
	}
	return own, others, lost
}
