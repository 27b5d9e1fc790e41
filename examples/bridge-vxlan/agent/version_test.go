package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion(t *testing.T) {
	built := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for want, info := range map[string]*debug.BuildInfo{
		"cnikit-agent" + built:         nil,
		"cnikit-agent (devel)" + built: {Main: debug.Module{Version: "(devel)"}},
		"cnikit-agent v1.2.3 commit abc with changes" + built: {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		}},
		"cnikit-agent v1.2.3 commit abc" + built: {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.modified", Value: "false"}, {Key: "vcs.revision", Value: "abc"},
		}},
	} {
		assert.Equal(t, want, version(info))
	}
}
