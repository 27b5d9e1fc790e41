package install

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dirEvents are what can change an observation of a directory. Reads are not among them: looking must not cause a look.
	dirEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | goneEvents
	// goneEvents say that a directory is no longer where it was.
	goneEvents = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	// parentEvents are watched for in the directories above, for the one on our path to appear, go or be exchanged.
	parentEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | goneEvents
)

// watch calls changed at the start, and whenever a managed file or the way to the directory changed. It watches the directory
// and every directory above it, and starts afresh when the way changed.
func (f folder) watch(ctx context.Context, changed func()) error {
	for ctx.Err() == nil {
		w, err := f.arm()
		if err != nil {
			return err
		}
		changed() // whatever happened while nothing was watched
		err = w.run(ctx, changed)
		w.file.Close() //nolint:errcheck // read only
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// A watcher is one set of inotify watches.
type watcher struct {
	folder folder
	file   *os.File
	parts  map[int32]string // watch descriptor to the name that leads on from there; "" for the directory itself
}

// arm watches the directories of the path, as far as they exist.
func (f folder) arm() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	w := &watcher{folder: f, file: os.NewFile(uintptr(fd), "inotify"), parts: map[int32]string{}}
	names := strings.Split(f.dir, string(filepath.Separator)) // the first is empty, for the root
	for i := range names {
		path := string(filepath.Separator) + filepath.Join(names[:i+1]...)
		next, events := "", uint32(dirEvents|unix.IN_ONLYDIR)
		if i+1 < len(names) {
			next, events = names[i+1], parentEvents|unix.IN_ONLYDIR
		}
		wd, err := unix.InotifyAddWatch(fd, path, events)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			break // the watch above tells when it comes
		}
		if errors.Is(err, unix.EACCES) && next != "" {
			continue // may be passed through, not read
		}
		if err != nil {
			w.file.Close() //nolint:errcheck // read only
			return nil, fmt.Errorf("inotify on %s: %w", path, err)
		}
		w.parts[int32(wd)] = next
	}
	return w, nil
}

// run calls changed for events until the way to the directory changes or ctx ends.
func (w *watcher) run(ctx context.Context, changed func()) error {
	stop := context.AfterFunc(ctx, func() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return fmt.Errorf("read inotify: %w", err)
		}
		touched, moved := w.judge(buf[:n])
		if moved {
			return nil
		}
		if touched {
			changed()
		}
	}
}

// judge says whether events touched a managed file, and whether they changed the way to the directory.
func (w *watcher) judge(buf []byte) (touched, moved bool) {
	for len(buf) >= unix.SizeofInotifyEvent {
		e := parseEvent(buf)
		buf = buf[unix.SizeofInotifyEvent+len(e.padded):]
		next, known := w.parts[e.wd]
		switch {
		case !known, e.mask&(goneEvents|unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_Q_OVERFLOW) != 0:
			moved = true
		case next != "":
			moved = moved || e.name() == next
		default:
			touched = touched || slices.Contains(w.folder.names, e.name())
		}
	}
	return touched, moved
}

// An event is a struct inotify_event.
type event struct {
	wd     int32
	mask   uint32
	padded []byte // the name, padded with zeros
}

// parseEvent reads the first event of buf, which the kernel never cuts short.
func parseEvent(buf []byte) event {
	size := binary.NativeEndian.Uint32(buf[12:])
	return event{
		wd:     int32(binary.NativeEndian.Uint32(buf)),
		mask:   binary.NativeEndian.Uint32(buf[4:]),
		padded: buf[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size],
	}
}

func (e event) name() string { return strings.TrimRight(string(e.padded), "\x00") }
