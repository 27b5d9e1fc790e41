package main

import (
	"testing"

	"github.com/cnikit/cnikit/cni/cnitest"
)

const conf = `{"name": "net", "type": "static-route", "routes": [{"dst": "198.51.100.0/24", "via": "10.1.0.1"}]}`

func TestConformance(t *testing.T) {
	cnitest.Run(t, cnitest.Target{Handler: plugin().Handler(), Config: []byte(conf), Profile: cnitest.ProfileChained}, cnitest.Options{Strict: true})
}
