package bridge_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
)

// A configuration that cannot work is refused before anything is touched. The error says
// which value, why, and what to do.
func ExamplePlugin() {
	_, err := bridge.Plugin().Handler().Handle(context.Background(), cni.Invocation{
		Command: cni.CommandStatus,
		Config: []byte(`{
			"cniVersion": "1.1.0",
			"name": "pods",
			"type": "cnikit-bridge",
			"bridge": "my/bridge",
			"isDefaultGateway": true,
			"ipam": {"type": "cnikit-ipam"}
		}`),
	})
	var field *cni.FieldError
	if errors.As(err, &field) {
		fmt.Println(field)
	}
	// Output:
	// bridge="my/bridge": contains '/'; use up to 15 letters, digits, dots, dashes and underscores, such as cni0
}

func ExampleConfig_Validate() {
	for _, c := range []bridge.Config{
		{},
		{MTU: 42},
		{IPMasq: true},
	} {
		fmt.Println(c.Validate())
	}
	// Output:
	// <nil>
	// mtu=42: is not within 68 to 65535 bytes; leave it out to use that of the bridge
	// ipMasq=true: the plugin does not masquerade; set it to false, and let a plugin behind this one or the node agent masquerade
}
