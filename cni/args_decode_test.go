package cni_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

type podArgs struct {
	Name string `cni:"K8S_POD_NAME"`
	UID  string `cni:"K8S_POD_UID"`
}

type testArgs struct {
	podArgs            // embedded, and not exported
	IP      netip.Addr // the name of the field is the key
	MTU     uint16
	Weight  int8
	Share   float64
	Keep    bool
	Retries *int
	Subnet  *netip.Prefix `cni:"SUBNET"`
	Scratch chan int      `cni:"-"`
	hidden  string        //nolint:unused // a field that no argument may reach
}

type badArgs struct{ List []string }

func decodeArgs(t *testing.T, s string) (testArgs, error) {
	t.Helper()
	args, err := cni.ParseArgs(s)
	require.NoError(t, err)
	return cni.DecodeArgs[testArgs](args)
}

func TestDecodeArgs(t *testing.T) {
	pod := podArgs{Name: "web-0"}
	retries, subnet := 3, netip.MustParsePrefix("10.0.0.0/8")
	for name, c := range map[string]struct {
		s    string
		want testArgs
	}{
		"none":                         {"", testArgs{}},
		"a tag, in an embedded struct": {"K8S_POD_NAME=web-0", testArgs{podArgs: pod}},
		"a trailing separator":         {"K8S_POD_NAME=web-0;", testArgs{podArgs: pod}},
		"'=' in a value":               {"K8S_POD_UID=a=b==", testArgs{podArgs: podArgs{UID: "a=b=="}}},
		"any order":                    {"MTU=1400;K8S_POD_NAME=web-0;IP=10.0.0.5", testArgs{podArgs: pod, IP: netip.MustParseAddr("10.0.0.5"), MTU: 1400}},
		"numbers and booleans":         {"Weight=-5;Share=0.5;Keep=TRUE", testArgs{Weight: -5, Share: 0.5, Keep: true}},
		"pointers":                     {"Retries=3;SUBNET=10.0.0.0/8", testArgs{Retries: &retries, Subnet: &subnet}},
		"the first of two counts":      {"MTU=1400;MTU=junk", testArgs{MTU: 1400}},
		"unknown, and allowed before":  {"IgnoreUnknown=1;X=1;MTU=9", testArgs{MTU: 9}},
		"unknown, and allowed after":   {"X=1;MTU=9;IgnoreUnknown=True", testArgs{MTU: 9}},
		"nothing unknown":              {"IgnoreUnknown=false;MTU=9", testArgs{MTU: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeArgs(t, c.s)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestDecodeArgsEmbeddedWithATag(t *testing.T) {
	got, err := cni.DecodeArgs[struct {
		netip.Addr `cni:"IP"`
	}](cni.Args{{Key: "IP", Value: "10.0.0.5"}})
	require.NoError(t, err)
	assert.Equal(t, netip.MustParseAddr("10.0.0.5"), got.Addr)
}

func TestDecodeArgsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		s    string
		want []string
	}{
		"unknown":             {"X=1", []string{`X="1": is unknown to this plugin`, "IgnoreUnknown=true"}},
		"unknown by its case": {"mtu=1400", []string{`mtu="1400": is unknown`}},
		"unknown, not lenient": {"IgnoreUnknown=0;X=1",
			[]string{`X="1": is unknown`}},
		"not exported":            {"hidden=1", []string{`hidden="1": is unknown`}},
		"left out by its tag":     {"Scratch=1", []string{`Scratch="1": is unknown`}},
		"too large":               {"MTU=65536", []string{`MTU="65536": is not a whole number (uint16)`}},
		"no number":               {"Weight=x", []string{`Weight="x": is not a whole number (int8)`}},
		"no fraction":             {"Share=x", []string{`Share="x": is not a number`}},
		"no boolean":              {"Keep=yes", []string{`Keep="yes": is not true or false`}},
		"no address":              {"IP=x", []string{`IP="x": `}},
		"IgnoreUnknown junk":      {"IgnoreUnknown=maybe", []string{`IgnoreUnknown="maybe": is not true or false`}},
		"all faults, in one list": {"MTU=x;Keep=x", []string{`MTU="x"`, `; Keep="x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeArgs(t, c.s)
			var e *cni.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
			for _, part := range append(c.want, "CNI_ARGS") {
				assert.Contains(t, e.Msg, part)
			}
		})
	}
	t.Run("a type that cannot hold arguments", func(t *testing.T) {
		_, err := cni.DecodeArgs[int](nil)
		require.ErrorContains(t, err, "decode arguments into int: it is no struct")
		_, err = cni.DecodeArgs[struct{ M map[string]string }](nil)
		require.ErrorContains(t, err, "field M is of type map[string]string")
		_, err = cni.DecodeArgs[struct{ badArgs }](nil)
		require.ErrorContains(t, err, "field List is of type []string")
		_, err = cni.DecodeArgs[*testArgs](nil)
		require.ErrorContains(t, err, "it is no struct")
	})
}

// Whatever the arguments are, there is a value or an error that names CNI_ARGS.
func FuzzDecodeArgs(f *testing.F) {
	for _, s := range []string{
		"K8S_POD_NAME=a=b;IgnoreUnknown=1;", ";;MTU=1400;IP=::1", "IgnoreUnknown=;X=", "Retries=-1;SUBNET=10.0.0.0/33", "=;=", "Share=NaN;Weight=1e3",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args, err := cni.ParseArgs(s)
		if err != nil {
			return
		}
		decoded, err := cni.DecodeArgs[testArgs](args)
		if err != nil {
			require.Contains(t, err.Error(), "CNI_ARGS")
			return
		}
		if name, ok := args.Get("K8S_POD_NAME"); ok {
			require.Equal(t, name, decoded.Name)
		}
	})
}
