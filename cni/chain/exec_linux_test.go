package chain

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestRunsInTheCallersNamespace holds the thread in a namespace and looks where the plugin finds itself.
func TestRunsInTheCallersNamespace(t *testing.T) {
	testenv.NetAdmin(t)
	ns, err := netns.New()
	require.NoError(t, err)
	defer func() { _ = ns.Close() }()
	k := newKit(t, true, nil)
	shell(t, k.dir, "scripted-a", `readlink /proc/self/ns/net > `+k.dir+`/where; echo '{"cniVersion":"1.1.0"}'`)
	where := func() string {
		text, err := os.ReadFile(k.dir + "/where")
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}
	var inside string
	require.NoError(t, ns.Do(func() error {
		if inside, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		_, err := k.Add(t.Context(), conflist(t, "1.1.0", "a"), pod())
		return err
	}))
	assert.Equal(t, inside, where())
	require.NoError(t, k.Status(t.Context(), conflist(t, "1.1.0", "a")))
	outside, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	assert.Equal(t, outside, where())
	assert.NotEqual(t, outside, inside)
}

func TestEnvironmentOfPlugins(t *testing.T) {
	t.Setenv("SECRET", "x")
	t.Setenv("CNI_ARGS", "FROM=outside")
	for name, test := range map[string]struct{ env, want []string }{
		"default is PATH":  {nil, []string{"PATH=" + os.Getenv("PATH")}},
		"what is given":    {[]string{"A=1", "CNI_NETNS=/other"}, []string{"A=1"}},
		"nothing is given": {[]string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, true, nil)
			k.Env = test.env
			shell(t, k.dir, "scripted-a", `/bin/cat /proc/$$/environ > `+k.dir+`/environ; echo '{"cniVersion":"1.1.0"}'`)
			_, err := k.Add(t.Context(), conflist(t, "1.1.0", "a"), pod())
			require.NoError(t, err)
			environ, err := os.ReadFile(k.dir + "/environ")
			require.NoError(t, err)
			want := append([]string{
				"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_NETNS=/run/netns/c1", "CNI_PATH=" + k.dir,
			}, test.want...)
			assert.ElementsMatch(t, want, strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00"))
		})
	}
}
