package cnitest

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIsReply(t *testing.T) {
	request := echoRequest(Ping{To: netip.MustParseAddr("192.0.2.1")}.withDefaults())
	require.Zero(t, checksum(request), "the checksum over a message with its checksum")
	request6 := echoRequest(Ping{To: netip.MustParseAddr("2001:db8::1")}.withDefaults())

	for name, c := range map[string]struct {
		ipv4   bool
		change func(packet []byte) []byte
		want   bool
	}{
		"ipv4/reply":            {true, func(p []byte) []byte { return p }, true},
		"ipv4/options":          {true, func(p []byte) []byte { p[0] = 0x46; return append(append(p[:20:20], 0, 0, 0, 0), p[20:]...) }, true},
		"ipv4/a request":        {true, func(p []byte) []byte { p[20] = echo4; return p }, false},
		"ipv4/other identifier": {true, func(p []byte) []byte { p[24]++; return p }, false},
		"ipv4/other sequence":   {true, func(p []byte) []byte { p[27]++; return p }, false},
		"ipv4/cut short":        {true, func(p []byte) []byte { return p[:len(p)-1] }, false},
		"ipv4/no header":        {true, func(p []byte) []byte { return p[:19] }, false},
		"ipv6/reply":            {false, func(p []byte) []byte { return p }, true},
		"ipv6/a request":        {false, func(p []byte) []byte { p[0] = echo6; return p }, false},
		"ipv6/other identifier": {false, func(p []byte) []byte { p[4]++; return p }, false},
		"ipv6/empty":            {false, func([]byte) []byte { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request6
			packet := append([]byte{reply6}, request6[1:]...)
			if c.ipv4 {
				asked = request
				packet = append(make([]byte, ipv4Header), request...)
				packet[0], packet[ipv4Header] = 0x45, reply4
			}
			require.Equal(t, c.want, isReply(c.change(packet), asked, c.ipv4))
		})
	}
}

// TestPassesOnABusyMachine: what takes its time is not lost, and what is lost is given up.
func TestPassesOnABusyMachine(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		takes time.Duration // each answer
		lost  int           // from this size on
		err   error
		want  bool
	}{
		"at once":      {time.Millisecond, 1500, ErrNoReply, true},
		"slow":         {500 * time.Millisecond, 1500, ErrNoReply, true},
		"lost":         {time.Millisecond, 1400, ErrNoReply, false},
		"lost, slowly": {500 * time.Millisecond, 1400, ErrNoReply, false},
		"too big":      {time.Millisecond, 1400, ErrTooBig, false},
		"broken":       {time.Millisecond, 1400, broken, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := passes(1400, 28, func(size int, timeout time.Duration) (time.Duration, error) {
				switch {
				case size >= c.lost:
					return 0, c.err
				case c.takes > timeout:
					return 0, ErrNoReply
				}
				return c.takes, nil
			})
			require.Equal(t, c.want, got)
			if errors.Is(c.err, broken) {
				require.ErrorIs(t, err, broken)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
