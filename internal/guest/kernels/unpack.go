package kernels

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// unpack takes from a Debian package what guests need and puts it into dir: the image,
// the list of built-in modules, and modules by their file names.
func unpack(ctx context.Context, deb, dir string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	cmd.Stderr = &stderr
	files, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = pick(tar.NewReader(files), dir)
	if err == nil {
		_, err = io.Copy(io.Discard, files) // padding, which dpkg-deb wants to get rid of
	}
	if waitErr := cmd.Wait(); waitErr != nil {
		err = errors.Join(err, fmt.Errorf("%w\n%s", waitErr, stderr.String()))
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	return nil
}

func pick(files *tar.Reader, dir string) error {
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := target(header.Name)
		if header.Typeflag != tar.TypeReg || name == "" {
			continue
		}
		if err := write(filepath.Join(dir, name), files); err != nil {
			return err
		}
	}
}

func write(name string, content io.Reader) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

const builtinName = "modules.builtin"

// target says under which name a file of a package is kept, "" for not at all.
func target(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	name = strings.TrimPrefix(name, "usr/")
	base := path.Base(name)
	switch {
	case base == "vmlinuz", strings.HasPrefix(name, "boot/vmlinuz-"):
		return imageName
	case base == builtinName:
		return builtinName
	case wanted(name):
		return path.Join(modulesName, base)
	default:
		return ""
	}
}

// wanted picks the modules that need no hardware: networking, virtual links, and what
// they are built on. That is a tenth of a kernel's modules.
func wanted(name string) bool {
	module := regexp.MustCompile(`^lib/modules/[^/]+/kernel/(?:(?:arch|crypto|lib|net)/|drivers/net/(?:(?:bonding|ipvlan|netdevsim|ovpn|team|vxlan|wireguard)/)?[^/]+\.ko(?:\.xz)?$)`)
	return module.MatchString(name) && (strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".ko.xz"))
}

// expand runs xz on the compressed files of a directory, all at once.
func expand(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.xz"))
	if err != nil || len(files) == 0 {
		return err
	}
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	_, err = command(ctx, dir, "xz", append([]string{"--decompress", "--"}, files...)...)
	return err
}

// bareImage replaces an image that begins with its own decompressor by what is in it, when
// that is packed with xz: unpacking takes an emulated machine longer than all the rest of
// its boot. qemu enters the bare kernel as Xen would (PVH). Other images stay.
func bareImage(ctx context.Context, file string) error {
	image, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	payload, err := payload(image)
	if err != nil {
		return fmt.Errorf("read kernel image: %w", err)
	}
	if !bytes.HasPrefix(payload, []byte("\xfd7zXZ\x00")) {
		return nil
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "xz", "--decompress", "--stdout", "--single-stream")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), out, &stderr
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("unpack kernel image: %w\n%s", err, stderr.String())
	}
	return nil
}

// payload returns the packed kernel in an image of x86. See "The Linux/x86 Boot Protocol"
// in the kernel's documentation: fields setup_sects, header, payload_offset and
// payload_length. The last four bytes are the unpacked size, which is not the packer's.
func payload(image []byte) ([]byte, error) {
	const sector, header = 512, 0x250
	if len(image) < header || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("no header of the Linux/x86 boot protocol")
	}
	setup := int(image[0x1f1])
	if setup == 0 {
		setup = 4
	}
	from := (setup+1)*sector + int(binary.LittleEndian.Uint32(image[0x248:]))
	to := from + int(binary.LittleEndian.Uint32(image[0x24c:])) - 4
	if from > to || to > len(image) {
		return nil, fmt.Errorf("payload from %d to %d is outside of the image's %d bytes", from, to, len(image))
	}
	return image[from:to], nil
}
