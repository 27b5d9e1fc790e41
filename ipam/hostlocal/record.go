package hostlocal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// Names and bytes of the reference plugin's format.
const (
	lockName   = "lock"
	lastPrefix = "last_reserved_ip."
	lineBreak  = "\r\n"
)

// maxRecord bounds what is a record, in bytes. It is more than the names of an attachment
// have, which come as environment variables: MAX_ARG_STRLEN of Linux bounds those to 128
// KiB, with pages of 4 KiB (execve(2)).
const maxRecord = 256 << 10

// tornAge is how old an empty file has to be before it counts as the remains of
// a crash. The lock alone would do for the reference plugin; the age protects
// writers that ignore the lock, between creating a file and filling it.
const tornAge = 10 * time.Second

func lastName(set int) string { return lastPrefix + strconv.Itoa(set) }

// encodeRecord returns the content of an address file.
func encodeRecord(o ipam.Owner) []byte {
	return []byte(o.ContainerID + lineBreak + o.IfName)
}

// decodeRecord reads the content of an address file. The reference plugin
// ignores white space around it. Content that names no container yields the
// zero Owner.
func decodeRecord(data []byte) ipam.Owner {
	id, ifName, _ := strings.Cut(string(bytes.TrimSpace(data)), "\n")
	o := ipam.Owner{ContainerID: strings.TrimSpace(id), IfName: strings.TrimSpace(ifName)}
	probe := o
	if probe.IfName == "" {
		probe.IfName = "eth0" // an old record: only the container is checked
	}
	if probe.Validate() != nil {
		return ipam.Owner{}
	}
	return o
}

// addrOf returns the address a file is named after.
func addrOf(name string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(name)
	if err != nil || addr.Zone() != "" || addr.Is4In6() || addr.String() != name {
		return netip.Addr{}, false
	}
	return addr, true
}

var errNoRecord = errors.New("is not a regular file of a lease's size")

// record is an address file as found.
type record struct {
	there   bool       // something has the name, even if it cannot be read
	owner   ipam.Owner // zero: damaged
	empty   bool       // without content: nothing, or blocks of zeros that never got their data
	young   bool       // changed so recently that a writer may still be at work
	written time.Time
}

// torn reports that the record is what a crash leaves behind: a free address.
func (r record) torn() bool { return r.empty && !r.young }

// read reads an address file.
func (t *tx) read(name string) (record, error) {
	info, data, err := t.readFile(t.path(name))
	if err != nil {
		return record{there: info != nil && !errors.Is(err, fs.ErrNotExist)}, fmt.Errorf("read lease: %w", err)
	}
	return record{
		there:   true,
		owner:   decodeRecord(data),
		empty:   len(bytes.Trim(data, "\x00")) == 0,
		young:   t.now.Sub(info.ModTime()).Abs() < tornAge,
		written: info.ModTime(),
	}, nil
}

// unread reports that a failure to read an address file says nothing of what is in it:
// another attempt may succeed.
func unread(err error) bool {
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoRecord)
}

// starved reports that it is this process, or the system, that has not what it takes to
// read any file: what is true of one says nothing of it.
func starved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// readFile reads a file of a record's size. It never follows links, and never
// blocks on what is no regular file. With an error, it returns what it knows of the file.
func (t *tx) readFile(path string) (fs.FileInfo, []byte, error) {
	info, err := t.sys().Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return info, nil, fmt.Errorf("%s: %w", path, errNoRecord)
	}
	data, err := t.sys().ReadFile(path)
	return info, data, err
}
