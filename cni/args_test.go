package cni

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseArgs(t *testing.T) {
	for name, c := range map[string]struct {
		s    string
		want Args
	}{
		"empty":                     {"", nil},
		"order is kept":             {"B=1;A=2", Args{{"B", "1"}, {"A", "2"}}},
		"a value may contain '='":   {"A=b=c==", Args{{"A", "b=c=="}}},
		"empty value":               {"A=", Args{{"A", ""}}},
		"trailing separator":        {"A=1;", Args{{"A", "1"}}},
		"empty pieces":              {";;A=1;;B=2", Args{{"A", "1"}, {"B", "2"}}},
		"the same key twice, kept":  {"A=1;A=2", Args{{"A", "1"}, {"A", "2"}}},
		"space is part of the text": {" A = 1 ", Args{{" A ", " 1 "}}},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := ParseArgs(c.s)
			require.NoError(t, err)
			assert.Equal(t, c.want, args)
			again, err := ParseArgs(args.String())
			require.NoError(t, err)
			assert.Equal(t, args, again)
		})
	}
	for _, s := range []string{"A", "=1", "A=1;B"} {
		_, err := ParseArgs(s)
		assert.ErrorContains(t, err, "is not KEY=value", s)
	}
}

func TestArgsGet(t *testing.T) {
	args := Args{{"A", "1"}, {"A", "2"}, {"B", ""}}
	value, ok := args.Get("A")
	assert.True(t, ok)
	assert.Equal(t, "1", value)
	value, ok = args.Get("B")
	assert.True(t, ok)
	assert.Empty(t, value)
	_, ok = args.Get("a")
	assert.False(t, ok)
}

func TestArgsValidate(t *testing.T) {
	assert.NoError(t, Args{{"A", "b=c"}}.Validate())
	for _, args := range []Args{{{"", "1"}}, {{"A=", "1"}}, {{"A;B", "1"}}, {{"A", "1;K8S_POD_NAME=other"}}, {{"A", "1\x00"}}} {
		assert.Error(t, args.Validate(), "%q", args)
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add("A=1;B=2;")
	f.Add("=;")
	f.Fuzz(func(t *testing.T, s string) {
		args, err := ParseArgs(s)
		if err != nil {
			return
		}
		again, err := ParseArgs(args.String())
		require.NoError(t, err)
		require.Equal(t, args, again)
	})
}
