package fromskel_test

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// What a child process prints is text beside the result, and one that lives on does
// not hold up the call.
func TestChildProcesses(t *testing.T) {
	shell := testenv.Tool(t, "sh")
	shown := stdout(t)
	var child *exec.Cmd
	f := funcs()
	f.Add = func(args *skel.CmdArgs) error {
		ready, told, err := os.Pipe()
		if err != nil {
			return err
		}
		defer ready.Close()
		child = exec.Command(shell, "-c", "echo from a child; echo >&3; exec 3>&-; exec sleep 60")
		child.Stdout, child.ExtraFiles = os.Stdout, []*os.File{told}
		err = child.Start()
		told.Close()
		if err != nil {
			return err
		}
		if _, err := io.ReadAll(ready); err != nil {
			return err
		}
		return printing(plainResult)(args)
	}
	out, err := handle(f, "ADD", plainConfig)
	require.Nil(t, err)
	assert.Equal(t, plainResult, out)
	assert.Equal(t, "from a child\n", shown())
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
}

// What is written to the descriptor is captured, not only what goes through os.Stdout.
func TestDescriptor(t *testing.T) {
	shown := stdout(t)
	descriptor := int(os.Stdout.Fd())
	f := funcs()
	f.Add = func(*skel.CmdArgs) error {
		_, err := syscall.Write(descriptor, []byte(plainResult))
		return err
	}
	out, err := handle(f, "ADD", plainConfig)
	require.Nil(t, err)
	assert.Equal(t, plainResult, out)
	_, _ = syscall.Write(descriptor, []byte("after"))
	assert.Equal(t, "after", shown())
}
