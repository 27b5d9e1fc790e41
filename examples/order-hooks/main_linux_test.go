package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// The plan shows the order, the firewall after the meter; the short packet is passed and reflected, the long one dropped.
func TestRun(t *testing.T) {
	testenv.BPF(t)
	var out strings.Builder
	require.NoError(t, run(&out))
	order := regexp.MustCompile(`(?m)^  (pre|original|post|observer) +\S+`).FindAllString(out.String(), -1)
	for i, line := range order {
		order[i] = strings.Join(strings.Fields(line), " ")
	}
	assert.Equal(t, []string{"pre meter/admit", "pre firewall/jumbo", "original xdp", "post firewall/reflect", "observer meter/account"}, order)
	assert.True(t, strings.HasSuffix(out.String(), "\n64 bytes: verdict 3\n1500 bytes: verdict 1\n"), out.String())
}
