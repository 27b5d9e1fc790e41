package cni

import (
	"encoding/json"
	"log/slog"
	"slices"
)

// envelope is what the specification itself defines in a request configuration.
type envelope struct {
	version    string
	network    string
	typ        string
	prevResult json.RawMessage // nil: absent or null
	valid      []Attachment
}

func readEnvelope(inv Invocation) (envelope, error) {
	f, err := readFields("", inv.Config)
	if err != nil {
		return envelope{}, Errorf(CodeDecode, "read configuration from standard input: %w", err)
	}
	e := envelope{
		version:    orOldest(f.text("cniVersion")),
		network:    f.text("name"),
		typ:        f.text("type"),
		prevResult: f.raw("prevResult"),
	}
	if inv.Command == CommandGC {
		e.valid = f.attachments()
	}
	if f.err != nil {
		return envelope{}, Errorf(CodeInvalidConfig, "invalid configuration: %w", f.err)
	}
	if fault := nameFault(e.network); fault != "" {
		return envelope{}, Errorf(CodeInvalidConfig, "invalid configuration: %w", &FieldError{Key: "name", Value: e.network, Reason: fault})
	}
	return e, nil
}

// attachments reads the list of a GC request under both of its names and joins
// them, so that nothing that either lists is taken for stale. A request without
// any list is refused, for it would mean that everything is. null is no list, unless
// both are null: libcni 1.2.3 and later write both names, and null for a slice that is
// nil, which runtimes give where nothing is attached. Package chain sends [].
func (f *fields) attachments() []Attachment {
	var all []Attachment
	var nulls []string
	lists := 0
	for _, key := range []string{"cni.dev/valid-attachments", "cni.dev/attachments"} {
		switch value, ok := f.members[key]; {
		case string(value) == "null":
			nulls = append(nulls, key)
		case ok:
			lists++
		}
		for _, a := range readList(f, key, (*fields).attachment) {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	const fix = "and without one every attachment would be stale; list the valid attachments, [] if there is none"
	switch {
	case lists > 0 || len(nulls) == 2:
	case len(nulls) == 1:
		f.fail(nulls[0], "is null, which is no list, %s", fix)
	default:
		f.fail("cni.dev/valid-attachments", "is missing, %s", fix)
	}
	return all
}

func (f *fields) attachment() Attachment {
	a := Attachment{ContainerID: f.text("containerID"), IfName: f.text("ifname")}
	if a.ContainerID == "" {
		f.fail("containerID", "is missing")
	}
	if a.IfName == "" {
		f.fail("ifname", "is missing")
	}
	return a
}

// peekVersion is the version of a configuration that may be broken, as the version
// of an error about it; fallback if it names none.
func peekVersion(config []byte, fallback string) string {
	var doc struct {
		CNIVersion string `json:"cniVersion"`
	}
	if json.Unmarshal(config, &doc) != nil || doc.CNIVersion == "" {
		return fallback
	}
	return doc.CNIVersion
}

// peekNetwork is the name of the network in a configuration that need not be valid.
func peekNetwork(config []byte) string {
	d, err := readDocument(config)
	if err != nil {
		return ""
	}
	return d.text("name")
}

// readPrevResult parses the prevResult of a request, whatever its own version. A
// malformed one is an error for ADD and CHECK; the other commands go without.
func (e envelope) readPrevResult(inv Invocation, log *slog.Logger) (*Result, error) {
	if e.prevResult == nil {
		return nil, nil
	}
	r, err := ParseResult(e.prevResult, e.version)
	if err == nil {
		return r, nil
	}
	if inv.Command != CommandAdd && inv.Command != CommandCheck {
		log.Warn("prevResult is ignored", "error", err)
		return nil, nil
	}
	return nil, Errorf(CodeDecode, "read prevResult: %w", err)
}
