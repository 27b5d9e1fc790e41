// Command mkimage builds the image of the example's DaemonSet as a tar file, which
// `ctr images import`, `docker load` and `podman load` read: the node agent and the two
// plugins that it installs, and nothing else. It needs Go and no container engine.
//
//	go run ./examples/bridge-vxlan/deploy/mkimage -o cnikit.tar
//
// The same sources, built by the same Go, give the same bytes. With -bin it takes programs
// that are built already.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/cnikit/cnikit/examples/bridge-vxlan/deploy/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the program; it returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdout, stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(stderr, "mkimage:", err)
	return 1
}

// options are the flags.
type options struct {
	out  string
	ref  string
	arch string
	bin  string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if o.bin == "" {
		o.bin, err = os.MkdirTemp("", "cnikit-image-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(o.bin) }()
		if err := build(ctx, o.bin, o.arch, stderr); err != nil {
			return err
		}
	}
	if err := checkPrograms(o.bin, o.arch); err != nil {
		return err
	}
	if o.out == "-" {
		return image.Write(stdout, imageOf(o))
	}
	return writeFile(o.out, imageOf(o))
}

// parse writes the help to help if it is asked for; the error is then [flag.ErrHelp].
func parse(args []string, help io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("mkimage", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.out, "o", "cnikit.tar", "`file` to write; -: standard output")
	f.StringVar(&o.ref, "ref", "localhost/cnikit:dev", "`name` of the image: registry, path and tag")
	f.StringVar(&o.arch, "arch", runtime.GOARCH, "`architecture` of the nodes, as Go names it")
	f.StringVar(&o.bin, "bin", "", "`directory` with built programs; empty: build them")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(help, "Usage: mkimage [flags]")
		f.SetOutput(help)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see -help", err)
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: is not a flag; see -help", f.Arg(0))
	}
	return o, nil
}

func imageOf(o options) image.Image {
	i := image.Image{
		Ref: o.ref, Architecture: o.arch,
		Entrypoint: []string{imageDir + agent}, Env: []string{"PATH=" + path.Dir(imageDir)},
	}
	for _, name := range programs() {
		i.Files = append(i.Files, image.File{Path: imageDir + name, From: filepath.Join(o.bin, name)})
	}
	return i
}

// writeFile leaves what has the name as it is unless all goes well.
func writeFile(name string, i image.Image) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".mkimage-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := image.Write(f, i); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
