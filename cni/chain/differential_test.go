package chain

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
)

// reasons are why this package differs from libcni; numbers in parentheses are versions of the specification where one is meant.
const (
	noCapabilities    = "the request must not carry capabilities (section 3, Deriving request configuration)"
	alwaysRuntime     = "runtimeConfig is always inserted (the same section)"
	reservedIsOurs    = "a stored runtimeConfig, prevResult or cni.dev/ key would speak for the runtime"
	exactNumbers      = "unknown fields pass unchanged (section 1); libcni takes numbers through float64"
	losslessResults   = "a later plugin sees what an earlier one printed; libcni drops what its types do not have"
	sameVersion       = "prevResult has the version of the request; libcni hands on what was printed"
	rollsBack         = "a failed ADD is undone; libcni leaves that to its callers"
	needsResult       = "CHECK needs the result of an ADD (section 2); libcni runs it without"
	disabledIsSuccess = "disableCheck means success whatever the version (section 3)"
	remembers         = "parameters that are left out come from the ADD; libcni sends none"
	bestEffortGC      = "GC goes on past a failed DEL to the plugins before it, which hold the addresses"
	asAdded           = "GC deletes with the configuration of the ADD; libcni takes today's"
	refusesSecondADD  = "a second ADD is refused; libcni runs it"
)

// TestLikeLibcni runs the same commands with the same plugins through libcni and this package and compares what the plugins see. Every
// difference is listed with its reason; one that is not listed fails, and so does a listed one that does not occur.
func TestLikeLibcni(t *testing.T) {
	peer := buildLibcni(t)
	t.Run("commands", func(t *testing.T) { compareCommands(t, peer) })
	t.Run("parse", func(t *testing.T) { compareParse(t, peer) })
}

func compareCommands(t *testing.T, peer libcni) {
	const both = `"cniVersion":"1.1.0","name":"net"`
	for name, test := range map[string]struct {
		list     string
		then     string // the list from the third command on; default list
		plugins  map[string]script
		commands []command
		want     map[string]string // difference: reason
	}{
		"chain of three": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","capabilities":{"mac":true}},{"type":"scripted-b","capabilities":{"ips":true,"mac":false}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}]}`}}, "b": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0","dns":{"domain":"x"}}`}}},
			commands: []command{"add", "check", "del"},
			want: map[string]string{
				`ADD a: capabilities: libcni {"mac":true}, chain nothing`:               noCapabilities,
				`ADD b: capabilities: libcni {"ips":true,"mac":false}, chain nothing`:   noCapabilities,
				`ADD b: runtimeConfig: libcni nothing, chain {}`:                        alwaysRuntime,
				`CHECK a: capabilities: libcni {"mac":true}, chain nothing`:             noCapabilities,
				`CHECK b: capabilities: libcni {"ips":true,"mac":false}, chain nothing`: noCapabilities,
				`CHECK b: runtimeConfig: libcni nothing, chain {}`:                      alwaysRuntime,
				`DEL a: capabilities: libcni {"mac":true}, chain nothing`:               noCapabilities,
				`DEL b: capabilities: libcni {"ips":true,"mac":false}, chain nothing`:   noCapabilities,
				`DEL b: runtimeConfig: libcni nothing, chain {}`:                        alwaysRuntime,
			},
		},
		"stored keys": {
			list: `{` + both + `,"plugins":[{"type":"scripted-a","name":"x","cniVersion":"0.1.0","runtimeConfig":{"mac":"stored"},"args":{"x":1},
				"prevResult":{"stored":true},"cni.dev/x":1,"big":9007199254740993,"null":null,"html":"<&>"}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}},
			commands: []command{"add", "status"},
			want: map[string]string{
				`ADD a: cni.dev/x: libcni 1, chain nothing`:                       reservedIsOurs,
				`ADD a: prevResult: libcni {"stored":true}, chain nothing`:        reservedIsOurs,
				`ADD a: runtimeConfig: libcni {"mac":"stored"}, chain {}`:         reservedIsOurs,
				`ADD a: big: libcni 9007199254740992, chain 9007199254740993`:     exactNumbers,
				`STATUS a: cni.dev/x: libcni 1, chain nothing`:                    reservedIsOurs,
				`STATUS a: prevResult: libcni {"stored":true}, chain nothing`:     reservedIsOurs,
				`STATUS a: runtimeConfig: libcni {"mac":"stored"}, chain nothing`: reservedIsOurs,
				`STATUS a: big: libcni 9007199254740992, chain 9007199254740993`:  exactNumbers,
			},
		},
		"results": {
			list: `{` + both + `,"plugins":[{"type":"scripted-a","capabilities":{}},{"type":"scripted-b"},{"type":"scripted-c"}]}`,
			plugins: map[string]script{
				"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"x":1}`}},
				"b": {cni.CommandAdd: {Print: `{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.0.0.2/24"}]}`}}, "c": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}},
			},
			commands: []command{"add"},
			want: map[string]string{
				`ADD a: capabilities: libcni {}, chain nothing`:  noCapabilities,
				`ADD a: runtimeConfig: libcni nothing, chain {}`: alwaysRuntime,
				`ADD b: runtimeConfig: libcni nothing, chain {}`: alwaysRuntime,
				`ADD c: runtimeConfig: libcni nothing, chain {}`: alwaysRuntime,
				`ADD b: prevResult: libcni {"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}]}, chain {"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"x":1}`:                  losslessResults,
				`ADD c: prevResult: libcni {"cniVersion":"0.4.0","dns":{},"ips":[{"address":"10.0.0.2/24","version":"4"}]}, chain {"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}]}`: sameVersion,
			},
		},
		"failed add": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}},{"type":"scripted-b","runtimeConfig":{}},{"type":"scripted-c"}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}, "b": {cni.CommandAdd: {Code: 100, Msg: "no"}}, "c": nil},
			commands: []command{"add"},
			want: map[string]string{
				`order: libcni [ADD a, ADD b], chain [ADD a, ADD b, DEL b, DEL a]`: rollsBack,
			},
		},
		"del halts": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}},{"type":"scripted-b","runtimeConfig":{}},{"type":"scripted-c","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": nil, "b": {cni.CommandDel: {Code: 100, Msg: "no"}}, "c": nil},
			commands: []command{"del", "del"},
		},
		"del of the unknown": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": nil},
			commands: []command{"del"},
		},
		"del with parameters left out": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","capabilities":{"mac":true}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}},
			commands: []command{"add", "del bare"},
			want: map[string]string{
				`ADD a: capabilities: libcni {"mac":true}, chain nothing`:                 noCapabilities,
				`DEL a: capabilities: libcni {"mac":true}, chain nothing`:                 noCapabilities,
				`DEL a: runtimeConfig: libcni nothing, chain {"mac":"02:00:00:00:00:01"}`: remembers,
				`DEL a: CNI_NETNS: libcni , chain /run/netns/c1`:                          remembers,
				`DEL a: CNI_ARGS: libcni , chain K=v`:                                     remembers,
			},
		},
		"del before 0.4.0": {
			list:     `{"cniVersion":"0.3.1","name":"net","plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"0.3.1"}`}}},
			commands: []command{"add", "del"},
		},
		"check without add": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": nil},
			commands: []command{"check"},
			want: map[string]string{
				`order: libcni [CHECK a], chain []`:   needsResult,
				`check: libcni succeeds, chain fails`: needsResult,
			},
		},
		"check before 0.4.0": {
			list:     `{"cniVersion":"0.3.1","name":"net","plugins":[{"type":"scripted-a"}]}`,
			plugins:  map[string]script{"a": nil},
			commands: []command{"check"},
		},
		"disableCheck": {
			list:     `{` + both + `,"disableCheck":true,"plugins":[{"type":"scripted-a"}]}`,
			plugins:  map[string]script{"a": nil},
			commands: []command{"check"},
		},
		"disableCheck before 0.4.0": {
			list:     `{"cniVersion":"0.3.1","name":"net","disableCheck":true,"plugins":[{"type":"scripted-a"}]}`,
			plugins:  map[string]script{"a": nil},
			commands: []command{"check"},
			want:     map[string]string{`check: libcni fails, chain succeeds`: disabledIsSuccess},
		},
		"status": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","capabilities":{"mac":true},"args":{}},{"type":"scripted-b"},{"type":"scripted-c"}]}`,
			plugins:  map[string]script{"a": nil, "b": {cni.CommandStatus: {Code: 50, Msg: "no"}}, "c": nil},
			commands: []command{"status"},
		},
		"status and gc before 1.1.0": {
			list:     `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"scripted-a"}]}`,
			plugins:  map[string]script{"a": {cni.CommandStatus: {Code: 50, Msg: "no"}, cni.CommandGC: {Code: 50, Msg: "no"}}},
			commands: []command{"status", "gc"},
		},
		"gc": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}},{"type":"scripted-b","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}, "b": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}, cni.CommandGC: {Code: 5, Msg: "no"}}},
			commands: []command{"add", "gc c1", "gc"},
			want: map[string]string{
				`GC a: runtimeConfig: libcni {}, chain nothing`: reservedIsOurs,
				`GC b: runtimeConfig: libcni {}, chain nothing`: reservedIsOurs,
			},
		},
		"gc of what cannot be deleted": {
			list:     `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"scripted-a","runtimeConfig":{}},{"type":"scripted-b","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.0.0"}`}}, "b": {cni.CommandAdd: {Print: `{"cniVersion":"1.0.0"}`}, cni.CommandDel: {Code: 5, Msg: "no"}}},
			commands: []command{"add", "gc"},
			want:     map[string]string{`order: libcni [ADD a, ADD b, DEL b], chain [ADD a, ADD b, DEL b, DEL a]`: bestEffortGC},
		},
		"gc after the list changed": {
			list:     `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			then:     `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"scripted-b","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.0.0"}`}}, "b": nil},
			commands: []command{"add", "check", "gc"},
			want:     map[string]string{`order: libcni [ADD a, CHECK a, DEL b], chain [ADD a, CHECK a, DEL a]`: asAdded},
		},
		"disableGC": {
			list:     `{` + both + `,"disableGC":true,"plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}},
			commands: []command{"add", "gc"},
		},
		"add twice": {
			list:     `{` + both + `,"plugins":[{"type":"scripted-a","runtimeConfig":{}}]}`,
			plugins:  map[string]script{"a": {cni.CommandAdd: {Print: `{"cniVersion":"1.1.0"}`}}},
			commands: []command{"add", "add"},
			want: map[string]string{
				`order: libcni [ADD a, ADD a], chain [ADD a]`: refusesSecondADD,
				`add: libcni succeeds, chain fails`:           refusesSecondADD,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.then == "" {
				test.then = test.list
			}
			ours, theirs := newKit(t, false, test.plugins), newKit(t, true, test.plugins)
			var differences []string
			for i, c := range test.commands {
				text := test.list
				if i >= 2 {
					text = test.then
				}
				a, b := peer.do(t, theirs, text, c), ours.do(t, text, c)
				if (a == nil) != (b == nil) {
					differences = append(differences, fmt.Sprintf("%s: libcni %s, chain %s", c, outcome(a), outcome(b)))
				}
			}
			differences = append(differences, compare(t, theirs.seen(), ours.seen())...)
			slices.Sort(differences)
			assert.Equal(t, slices.Sorted(maps.Keys(test.want)), slices.Compact(differences))
		})
	}
}

// compareParse compares what is accepted, and which version is selected.
func compareParse(t *testing.T, peer libcni) {
	const plugins = `"plugins":[{"type":"p"}]`
	for name, test := range map[string]struct{ text, libcni, chain, reason string }{
		"one version":          {`{"cniVersion":"1.0.0","name":"n",` + plugins + `}`, "n|1.0.0|p", "n|1.0.0|p", ""},
		"several versions":     {`{"cniVersion":"0.4.0","cniVersions":["1.1.0","1.0.0"],"name":"n",` + plugins + `}`, "n|1.1.0|p", "n|1.1.0|p", ""},
		"a newer one listed":   {`{"cniVersion":"0.4.0","cniVersions":["1.2.0","1.0.0"],"name":"n",` + plugins + `}`, "n|1.0.0|p", "n|1.0.0|p", ""},
		"switches as strings":  {`{"cniVersion":"1.0.0","name":"n","disableCheck":"TRUE",` + plugins + `}`, "n|1.0.0|p", "n|1.0.0|p", ""},
		"switches as nonsense": {`{"cniVersion":"1.0.0","name":"n","disableCheck":"yes",` + plugins + `}`, "refused", "refused", ""},
		"no name":              {`{` + plugins + `}`, "refused", "refused", ""},
		"no plugins in list":   {`{"name":"n","plugins":[]}`, "refused", "refused", ""},
		"no type":              {`{"name":"n","plugins":[{}]}`, "refused", "refused", ""},
		"no version":           {`{"name":"n",` + plugins + `}`, "n||p", "n|0.1.0|p", "the specification's meaning of none, said early"},
		"only a newer version": {`{"cniVersion":"9.9.0","name":"n",` + plugins + `}`, "n|9.9.0|p", "refused", "no plugin could be asked in a version that nobody here speaks"},
		"all versions newer":   {`{"cniVersion":"9.9.0","cniVersions":["9.8.0"],"name":"n",` + plugins + `}`, "n|9.9.0|p", "refused", "the same"},
		"a version between":    {`{"cniVersion":"0.4.0","cniVersions":["1.0.5"],"name":"n",` + plugins + `}`, "n|1.0.5|p", "n|0.4.0|p", "1.0.5 does not exist"},
		"a pre-release":        {`{"cniVersion":"1.0.0","cniVersions":["1.2.0-rc.1"],"name":"n",` + plugins + `}`, "refused", "n|1.0.0|p", "semver allows it, and it is not selected"},
		"an empty name":        {`{"cniVersion":"1.0.0","name":"",` + plugins + `}`, "|1.0.0|p", "refused", "names a cache file"},
		"a name that is path":  {`{"cniVersion":"1.0.0","name":"../x",` + plugins + `}`, "../x|1.0.0|p", "refused", "names a cache file and a folder of plugins"},
		"a type that is path":  {`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"../x"}]}`, "n|1.0.0|../x", "refused", "names an executable"},
		"a key twice":          {`{"cniVersion":"1.0.0","name":"n","name":"m",` + plugins + `}`, "m|1.0.0|p", "refused", "readers disagree about which counts"},
		"a misspelled type":    {`{"cniVersion":"1.0.0","name":"n","plugins":[{"TYPE":"p"}]}`, "n|1.0.0|p", "refused", "keys are case-sensitive"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := peer.run(t, map[string]any{"Command": "parse", "List": test.text})
			if err != nil {
				got = "refused"
			}
			assert.Equal(t, test.libcni, got, "libcni")
			got = "refused"
			if l, err := Parse([]byte(test.text)); err == nil {
				got = l.Name + "|" + l.Version() + "|" + l.Plugins[0].Type
			}
			assert.Equal(t, test.chain, got, "chain")
			assert.Equal(t, test.libcni == test.chain, test.reason == "", "a difference has a reason")
		})
	}
}
