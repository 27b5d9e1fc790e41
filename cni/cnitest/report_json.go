package cnitest

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as one JSON object: its fields, and before them "verdict",
// as [Report.Verdict] says it, and "counts", with the number of cases for each verdict
// that some have. Durations are in nanoseconds.
func (r *Report) WriteJSON(w io.Writer) error {
	counts := map[Verdict]int{}
	for _, o := range r.Outcomes {
		counts[o.Verdict]++
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Verdict Verdict         `json:"verdict"`
		Counts  map[Verdict]int `json:"counts"`
		*Report
	}{r.Verdict(), counts, r})
	if err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}
