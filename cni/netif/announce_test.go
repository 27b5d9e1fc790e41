package netif

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnnouncement(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0xab, 0xcd}
	arp := announcement(mac, netip.MustParseAddr("10.1.2.3"))
	require.Equal(t, "ffffffffffff"+"02000000abcd"+"0806"+ // Ethernet
		"0001"+"0800"+"0604"+"0001"+ // request for an IPv4 address on Ethernet
		"02000000abcd"+"0a010203"+"000000000000"+"0a010203", hex.EncodeToString(arp))

	na := announcement(mac, netip.MustParseAddr("fd00::7"))
	require.Equal(t, "333300000001"+"02000000abcd"+"86dd"+ // Ethernet
		"60000000"+"0020"+"3aff"+ // 32 bytes of ICMPv6, hop limit 255
		"fd000000000000000000000000000007"+"ff020000000000000000000000000001"+
		"8800"+hex.EncodeToString(na[56:58])+"20000000"+ // advertisement, override
		"fd000000000000000000000000000007"+"0201"+"02000000abcd", hex.EncodeToString(na))

	pseudo := append(na[22:54:54], 0, 0, 0, 32, 0, 0, 0, 58)
	require.Zero(t, checksum(append(pseudo, na[54:]...)), "the sum over a packet with its checksum is zero")
}
