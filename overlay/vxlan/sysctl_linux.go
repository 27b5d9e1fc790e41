package vxlan

import (
	"context"
	"errors"
	"slices"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/reconcile"
)

// addrGenModeNone keeps IPv6 from making link-local addresses (linux/if_link.h).
const addrGenModeNone = "1"

func addrGenMode(device string) string { return "net/ipv6/conf/" + device + "/addr_gen_mode" }

// noLinkLocal keeps the device, before it is up, from making itself an address and
// from soliciting routers. Without IPv6 there is nothing to do.
func noLinkLocal(conn *nl.Conn, device string) error {
	_, err := conn.SetSysctl(addrGenMode(device), addrGenModeNone)
	if errors.Is(err, nl.ErrNotFound) {
		return nil
	}
	return err
}

// sysctls is the store of the settings that forwarding needs. Those that are not
// wanted are not ours, and stay as they are.
type sysctls struct{ k *kernel }

func sysctlStore(k *kernel) reconcile.Store[string, string] { return sysctls{k} }

// Observe implements [reconcile.Store].
func (s sysctls) Observe(context.Context) (map[string]string, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	s.k.mu.Lock()
	keys := slices.Clone(s.k.sysctls)
	s.k.mu.Unlock()
	seen := map[string]string{}
	for _, key := range keys {
		value, err := conn.Sysctl(key)
		if errors.Is(err, nl.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seen[key] = value
	}
	return seen, nil
}

// Apply implements [reconcile.Store].
func (s sysctls) Apply(_ context.Context, key, want string, _ *string) error {
	conn, err := s.k.connect()
	if err != nil {
		return err
	}
	_, err = conn.SetSysctl(key, want)
	return err
}

// Delete implements [reconcile.Store]. Somebody else may rely on the setting by now.
func (s sysctls) Delete(context.Context, string, string) error { return nil }
