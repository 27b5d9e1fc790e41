package netif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestCheckSetting(t *testing.T) {
	for _, setting := range []string{"ipv4/conf/rp_filter", "ipv6/conf/accept_ra", "ipv4/neigh/gc_stale_time", "ipv6/conf/a2"} {
		assert.NoError(t, netif.CheckSetting(setting))
	}
	for setting, want := range map[string]string{
		"":                         "is no setting of an interface",
		"rp_filter":                "is no setting of an interface",
		"ipv4.conf.eth0.rp_filter": "is no setting of an interface",
		"net/ipv4/conf/rp_filter":  "is no setting of an interface",
		"ipv4/conf/eth0/rp_filter": "is no setting of an interface",
		"ipv5/conf/rp_filter":      "is no setting of an interface",
		"ipv4/route/flush":         "is no setting of an interface",
		"ipv4/conf/":               "has no name",
		"ipv4/conf/..":             "contains '.'",
		"ipv4/conf/RP":             "contains 'R'",
	} {
		assert.ErrorContains(t, netif.CheckSetting(setting), want, "%q", setting)
	}
}
