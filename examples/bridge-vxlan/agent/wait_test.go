package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		env, stdout, stderr := outside()
		code := -1
		go func() { code = program(ctx, []string{"wait"}, env) }()
		synctest.Wait()
		require.Equal(t, -1, code, "it stays")
		end()
		synctest.Wait()
		require.Zero(t, code)
		require.Empty(t, stdout.String()+stderr.String())
	})
}
