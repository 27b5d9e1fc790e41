package binaries

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressCountsPackagesAndKeepsComplaints(t *testing.T) {
	var log bytes.Buffer
	p := &progress{log: &log, name: "kube", began: time.Now().Add(-time.Minute), next: time.Now().Add(time.Hour)}
	for _, piece := range []string{"fm", "t\nk8s.io/api/core/v1\n# k8s.io", "/api/core/v1\nx.go:1:2: undefined: y\n"} {
		n, err := p.Write([]byte(piece))
		require.NoError(t, err)
		require.Len(t, piece, n)
	}
	assert.Equal(t, 2, p.packages)
	assert.Equal(t, []string{"# k8s.io/api/core/v1", "x.go:1:2: undefined: y"}, p.tail)
	assert.Empty(t, log.String(), "it is not yet time")

	p.next = time.Time{}
	for i := range tailLines {
		fmt.Fprintf(p, "go: complaint %d\n", i+1)
	}
	assert.Equal(t, "kube: 2 packages compiled in 1m0s\n", log.String(), "once in an interval")
	assert.Len(t, p.tail, tailLines)
	assert.Equal(t, "go: complaint 40", p.tail[tailLines-1])
}
