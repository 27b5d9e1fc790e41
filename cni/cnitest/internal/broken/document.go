package main

import (
	"encoding/json"

	"github.com/cnikit/cnikit/cni"
)

// object is a JSON object; nil if the text is none.
type object map[string]json.RawMessage

func parse(text []byte) (o object) {
	decode(text, &o)
	return o
}

func (o object) text(key string) (s string) {
	decode(o[key], &s)
	return s
}

func (o object) set(key string, value any) { o[key] = marshal(value) }

// decode leaves the target as it is if the text does not fit.
func decode(text []byte, target any) { _ = json.Unmarshal(text, target) }

// marshal encodes what cannot fail to be encoded.
func marshal(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}

// config is the configuration of the call.
func (c *call) config() object { return parse(c.stdin) }

// configure changes a key of the configuration.
func (c *call) configure(key string, value any) {
	if config := c.config(); config != nil {
		config.set(key, value)
		c.stdin = marshal(config)
	}
}

func (c *call) version() string { return c.config().text("cniVersion") }

// answer replaces what the call printed.
func (c *call) answer(document any) { c.stdout = append(marshal(document), '\n') }

// failed is the error that the call printed, nil if it succeeded.
func (c *call) failed() object {
	if c.exit == 0 {
		return nil
	}
	return parse(c.stdout)
}

// dataDir is where the plugin that is configured keeps its files.
func dataDir(inv cni.Invocation) string {
	var config struct {
		DataDir string `json:"dataDir"`
		IPAM    struct {
			DataDir string `json:"dataDir"`
		} `json:"ipam"`
	}
	decode(inv.Config, &config)
	return config.DataDir + config.IPAM.DataDir
}

// previous is the prevResult of a request, nil if there is none.
func previous(inv cni.Invocation) *cni.Result {
	config := parse(inv.Config)
	if config["prevResult"] == nil {
		return nil
	}
	result, err := cni.ParseResult(config["prevResult"], config.text("cniVersion"))
	if err != nil {
		return nil
	}
	return result
}

// with is the request with another value of a key of the configuration; nil removes it.
func with(inv cni.Invocation, key string, value any) cni.Invocation {
	config := parse(inv.Config)
	if value == nil {
		delete(config, key)
	} else {
		config.set(key, value)
	}
	inv.Config = marshal(config)
	return inv
}
