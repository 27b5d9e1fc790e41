package nl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

var errSysctlKey = errors.New("not a network setting: the key is a path below /proc/sys that starts with net/")

// Sysctl reads a setting of the namespace, such as "net/ipv4/ip_forward". White space
// between its words is a single blank. An absent one matches [ErrNotFound].
func (c *Conn) Sysctl(key string) (string, error) {
	path, err := sysctlPath(key)
	if err != nil {
		return "", &Error{Op: "read sysctl", Object: key, Err: err}
	}
	var data []byte
	err = c.ns.Do(func() (err error) { // /proc/sys/net is that of the opening thread
		data, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return "", &Error{Op: "read sysctl", Object: key, Err: cause(err)}
	}
	return normal(string(data)), nil
}

// SetSysctl gives a setting of the namespace a value, unless it has it already.
func (c *Conn) SetSysctl(key, value string) (changed bool, err error) {
	have, err := c.Sysctl(key)
	if err != nil || have == normal(value) {
		return false, err
	}
	path, err := sysctlPath(key)
	if err != nil {
		return false, err
	}
	err = c.write("write sysctl", key+"="+value, func() error {
		return cause(c.ns.Do(func() error { return writeSysctl(path, value) }))
	})
	return err == nil, err
}

// writeSysctl writes in one system call, without creating or truncating.
func writeSysctl(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func sysctlPath(key string) (string, error) {
	if !filepath.IsLocal(key) || filepath.Clean(key) != key || !strings.HasPrefix(key, "net/") {
		return "", errSysctlKey
	}
	return filepath.Join("/proc/sys", key), nil
}

// normal is the value without the white space that the kernel puts around it.
func normal(value string) string { return strings.Join(strings.Fields(value), " ") }

// cause drops the path, which the object of the error already says.
func cause(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
