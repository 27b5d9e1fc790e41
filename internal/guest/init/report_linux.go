package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/guest/wire"
)

// openPort opens a serial port that carries bytes as they are.
func openPort(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	settings, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	settings.Iflag, settings.Lflag = 0, 0
	settings.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, settings); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return f, nil
}

// closePort waits until all is written (tcdrain(3)) before it closes.
func closePort(f *os.File) error {
	return errors.Join(unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1), f.Close())
}

// report writes the exit status and the files that the program left.
func report(status int) error {
	port, err := openPort(wire.ReportPort)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(port)
	text := strconv.Itoa(status)
	err = archive.WriteHeader(&tar.Header{Name: wire.Status, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(archive, text)
	}
	if err == nil {
		err = filepath.WalkDir(wire.Out, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			return add(archive, path)
		})
	}
	return errors.Join(err, archive.Close(), closePort(port))
}

func add(archive *tar.Writer, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel("/", path)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}
