package cnitest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryRuleForPluginsHasACaseOrAReason: a rule may be left out only on purpose.
func TestEveryRuleForPluginsHasACaseOrAReason(t *testing.T) {
	reasons := uncoveredReasons()
	for _, u := range UncoveredRules() {
		require.NotEmpty(t, u.Reason, "rule %d has no case and no reason: %s", u.Rule.Number, u.Rule.Text)
		delete(reasons, u.Rule.Number)
	}
	require.Empty(t, reasons, "these rules have cases")
}
