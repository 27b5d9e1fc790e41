package datapath_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

const (
	matrixDocument = "../docs/datapath.md"
	matrixBegin    = "<!-- support matrix: begin (written by CNIKIT_SCALE=2 go test ./datapath -run TestInGuests -update) -->\n"
	matrixEnd      = "<!-- support matrix: end -->"
)

// matrix says, of each kernel (its version without the last numbers) and type, what a guest has run.
type matrix map[string]map[string]support

// add takes a guest's report.
func (m matrix) add(t *testing.T, release string, report []byte) {
	t.Helper()
	of := map[string]support{}
	require.NoError(t, json.Unmarshal(report, &of))
	numbers := strings.SplitN(release, ".", 3)
	m[numbers[0]+"."+numbers[1]] = of
}

// table is the matrix as the document shows it: a row for each type, a column for each kernel.
func (m matrix) table(kernels []string) string {
	var b strings.Builder
	b.WriteString("| program | " + strings.Join(kernels, " | ") + " |\n|---" + strings.Repeat("|---", len(kernels)) + "|\n")
	for _, k := range everyKind() {
		b.WriteString("| " + k.name)
		for _, kernel := range kernels {
			b.WriteString(" | " + m[kernel][k.name].String())
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func (s support) String() string {
	switch len(s.Ran) {
	case 0:
		return "–"
	case 3:
		return "all"
	default:
		return strings.Join(s.Ran, ", ")
	}
}

// check compares docs/datapath.md with the kernels that were run; those that were not are left out. -update writes all columns anew.
func (m matrix) check(t *testing.T, kernels []string) {
	t.Helper()
	shown, replace := testenv.Section(t, matrixDocument, matrixBegin, matrixEnd)
	if *update {
		replace(m.table(kernels))
		return
	}
	header, _, _ := strings.Cut(shown, "\n")
	columns := strings.Split(strings.Trim(header, "| "), " | ")[1:]
	kernels = slices.DeleteFunc(kernels, func(kernel string) bool { return !slices.Contains(columns, kernel) })
	require.NotEmpty(t, kernels, "%s shows none of the kernels that were run: add -update", matrixDocument)
	assert.Equal(t, m.table(kernels), selectColumns(shown, columns, kernels), "add -update to write %s anew", matrixDocument)
}

// selectColumns leaves the first column of a table and those of some kernels.
func selectColumns(table string, columns, kernels []string) string {
	var b strings.Builder
	for line := range strings.Lines(table) {
		edge, separator := " ", " | "
		if strings.HasPrefix(line, "|---") {
			edge, separator = "", "|"
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), separator)
		chosen := cells[:1:1]
		for i, column := range columns {
			if slices.Contains(kernels, column) && i+1 < len(cells) {
				chosen = append(chosen, cells[i+1])
			}
		}
		b.WriteString("|" + edge + strings.Join(chosen, separator) + edge + "|\n")
	}
	return b.String()
}

func TestMatrixOfSomeKernels(t *testing.T) {
	m := matrix{}
	m.add(t, "6.1.0-50-amd64", []byte(`{"XDP": {"Ran": ["pasted", "called", "slot"]}, "SockOps CGroupSockOps": {"Ran": ["called"]}}`))
	m.add(t, "7.3.4+deb13-amd64", []byte(`{"XDP": {"Ran": ["called", "slot"]}}`))
	all := m.table([]string{"6.1", "7.3"})
	assert.Contains(t, all, "| program | 6.1 | 7.3 |\n|---|---|---|\n")
	assert.Contains(t, all, "| XDP | all | called, slot |\n")
	assert.Contains(t, all, "| SockOps CGroupSockOps | called | – |\n")
	assert.Equal(t, m.table([]string{"7.3"}), selectColumns(all, []string{"6.1", "7.3"}, []string{"7.3"}))
}
