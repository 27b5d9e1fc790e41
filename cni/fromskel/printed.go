package fromskel

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// document is a JSON object in printed text.
type document struct {
	from, to int
	members  map[string]json.RawMessage
}

// findResult finds the one result in what a callback printed, which may stand between
// other text, and returns the rest too. An error document is returned as the error
// that it is. Two documents are one too many, even if they agree.
func findResult(printed []byte) (result, rest []byte, err error) {
	found := protocolDocuments(printed)
	switch {
	case len(found) == 0:
		return nil, bytes.TrimSpace(printed), cni.Errorf(cni.CodeInternal, "the Add callback printed no result; types.PrintResult prints one")
	case len(found) > 1:
		return nil, bytes.TrimSpace(printed), cni.Errorf(cni.CodeInternal, "the Add callback printed %d results or errors; it may print one", len(found))
	}
	d := found[0]
	result = printed[d.from:d.to]
	rest = bytes.TrimSpace(append(bytes.TrimSpace(printed[:d.from:d.from]), printed[d.to:]...))
	if !d.isError() {
		return result, rest, nil
	}
	var reported cni.Error
	if err := json.Unmarshal(result, &reported); err != nil {
		return nil, rest, cni.Errorf(cni.CodeInternal, "the Add callback printed a bad error: %w", err)
	}
	return nil, rest, &reported
}

// protocolDocuments are the documents that can be meant for a runtime. An object
// that is alone always is; beside others, one that has a version; only if there is
// none, one that looks like a result. A log may be made of JSON objects too.
func protocolDocuments(printed []byte) (found []document) {
	all := documentsIn(printed)
	if len(all) == 1 && len(bytes.TrimSpace(printed)) == all[0].to-all[0].from {
		return all
	}
	for _, is := range []func(document) bool{document.hasVersion, document.looksRight} {
		for _, d := range all {
			if is(d) || d.isError() {
				found = append(found, d)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// documentsIn finds the outermost JSON objects in a text. It gives up on what would
// have to be read over and over, such as a nest that never ends.
func documentsIn(text []byte) (all []document) {
	const patience = 64 // readings of the whole text
	for at, wasted := 0, 0; wasted <= patience*len(text); {
		next := bytes.IndexByte(text[at:], '{')
		if next < 0 {
			break
		}
		at += next
		d := document{from: at}
		decoder := json.NewDecoder(bytes.NewReader(text[at:]))
		if err := decoder.Decode(&d.members); err != nil {
			wasted += readFor(err, len(text)-at)
			at++
			continue
		}
		at += int(decoder.InputOffset())
		d.to = at
		all = append(all, d)
	}
	return all
}

// readFor is how much was read of a text for the error.
func readFor(err error, all int) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return all
}

func (d document) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := d.members[key]; ok {
			return true
		}
	}
	return false
}

func (d document) hasVersion() bool { return d.has("cniVersion") }

func (d document) looksRight() bool {
	return d.has("interfaces", "ips", "routes", "dns", "ip4", "ip6")
}

// isError reports whether the document is an error of the specification, and not a
// line of a log that has a code.
func (d document) isError() bool {
	for key := range d.members {
		if !strings.Contains(" cniVersion code msg details ", " "+key+" ") {
			return false
		}
	}
	return d.has("code") && d.has("msg")
}
