package overlay

import (
	"crypto/sha256"
	"net"
)

// A MAC is an Ethernet address. It is comparable and may be a map key.
type MAC [6]byte

// String prints the usual form, such as "02:00:5e:10:00:01".
func (m MAC) String() string { return m.HardwareAddr().String() }

// HardwareAddr returns a copy in the type of package net.
func (m MAC) HardwareAddr() net.HardwareAddr { return net.HardwareAddr(m[:]) }

// TunnelMAC derives the address of a node's tunnel interface from the node's UID: the first six bytes of the SHA-256 of
// "cnikit tunnel mac\x00" and the UID, with the bit for "locally administered" set and the bit for "group" cleared. Every
// node computes the same address for a peer, it survives a reboot, and a node created anew gets a new one. Of 48 bits 46
// are free: among 10,000 nodes two share an address with a probability of 7e-7, and [Plan] reports it.
func TunnelMAC(uid string) MAC {
	sum := sha256.Sum256([]byte("cnikit tunnel mac\x00" + uid))
	m := MAC(sum[:6])
	m[0] = m[0]&^0x01 | 0x02
	return m
}
