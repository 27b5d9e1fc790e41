package cnitest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

func TestRules(t *testing.T) {
	rules := cnitest.Rules()
	require.Len(t, rules, 191)
	for i, r := range rules {
		require.Equal(t, i+1, r.Number)
		require.NotEmpty(t, r.Text)
		require.Contains(t, []string{"must", "should", "may", "must not", "should not", "is"}, r.Strength)
		require.Contains(t, []string{"text", "main branch", "implied"}, r.Source)
		require.NotEmpty(t, cnitest.SectionTitle(r.Section))
		for _, actor := range r.Actors {
			require.Contains(t, []string{"runtime", "plugin", "delegating plugin", "IPAM plugin"}, actor)
		}
	}
	require.Equal(t, "2, CHECK", cnitest.SectionTitle(rules[60].Section))
}

// TestCasesNameRules: a must case needs a rule that binds.
func TestCasesNameRules(t *testing.T) {
	rules := cnitest.Rules()
	for _, c := range cnitest.Cases("") {
		binding := false
		for _, row := range c.Rows {
			require.GreaterOrEqual(t, len(rules), row, c.ID())
			binding = binding || slices.Contains([]string{"must", "must not", "is"}, rules[row-1].Strength)
		}
		if c.Strength == cnitest.Must {
			require.True(t, binding, "%s: none of the rules %v is a must", c.ID(), c.Rows)
		}
	}
}
