package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrivileges(t *testing.T) {
	for mask, ok := range map[string]bool{
		"000001ffffffffff": true,
		"0000000000201000": true,
		"0000000000001000": false,
		"0000000000200000": false,
		"0000000000000000": false,
		"what is this":     true, // the kernel will say
	} {
		assert.Equal(t, ok, privileged(mask) == nil, mask)
	}
	require.EqualError(t, privileged("0000000000000000"),
		"not permitted to configure the network: run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN; this process has 0x0000000000000000)")
}
