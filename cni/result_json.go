package cni

import (
	"encoding/json"
	"slices"
)

var (
	_ json.Marshaler   = Result{}
	_ json.Unmarshaler = (*Result)(nil)
)

// MarshalJSON renders the result as [Result.Encode] does, in CNIVersion, or the
// newest version if that is empty or not supported.
func (r Result) MarshalJSON() ([]byte, error) {
	version := r.CNIVersion
	if !slices.Contains(SupportedVersions(), version) {
		version = newestVersion()
	}
	return r.Encode(version)
}

// UnmarshalJSON reads a document as [ParseResult] does, one without a version as
// the newest. A null changes nothing.
func (r *Result) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	parsed, err := ParseResult(data, newestVersion())
	if err != nil {
		return err
	}
	*r = *parsed
	return nil
}

// String is the JSON form, or why there is none; for logs and tests.
func (r Result) String() string {
	text, err := r.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
