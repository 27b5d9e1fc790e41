package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/rest"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// restConfig is the configuration of a client of this process, as administrator. Its
// connections start in the namespace, whatever namespace the caller is in.
func restConfig(inside *cnitest.Namespace, c *credentials) *rest.Config {
	return &rest.Config{
		Host:            apiURL(),
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
		QPS:             -1, // no limit
		Dial: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = inside.Do(func() error {
				var d net.Dialer
				conn, err = d.DialContext(ctx, network, address) // no names: no other goroutine dials
				return err
			})
			return conn, err
		},
	}
}

// writeKubeconfig writes the same configuration for programs that run on the underlay.
// It is JSON, which every reader of a kubeconfig takes.
func writeKubeconfig(file string, c *credentials) error {
	const name = "cnikit-e2e"
	type entry map[string]any
	data, err := json.MarshalIndent(entry{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []entry{{"name": name, "cluster": entry{"server": apiURL(), "certificate-authority-data": c.ca}}},
		"users":    []entry{{"name": name, "user": entry{"token": c.token}}},
		"contexts": []entry{{"name": name, "context": entry{"cluster": name, "user": name}}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
