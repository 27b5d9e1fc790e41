package netif

import (
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/internal/nl"
)

// Setting reads what the kernel calls a sysctl of one interface, such as
// "ipv4/conf/rp_filter" (see Documentation/networking/ip-sysctl.rst). White space
// between the words of a value is a single blank. The error matches [ErrNotFound] when
// there is no such interface, and [errors.ErrUnsupported] when the kernel has no such
// setting.
func (n *Namespace) Setting(name, setting string) (string, error) {
	key, err := settingKey(name, setting)
	if err != nil {
		return "", fmt.Errorf("read setting: %w", err)
	}
	value, err := n.conn.Sysctl(key)
	return value, n.explainSetting(name, err)
}

// SetSetting gives a setting of one interface a value, and reports whether it had
// another. Errors are those of [Namespace.Setting], and the kernel's for a value that it
// does not take.
func (n *Namespace) SetSetting(name, setting, value string) (changed bool, err error) {
	key, err := settingKey(name, setting)
	if err != nil {
		return false, fmt.Errorf("write setting: %w", err)
	}
	changed, err = n.conn.SetSysctl(key, value)
	return changed, n.explainSetting(name, err)
}

// explainSetting tells an interface that is absent from a setting that is.
func (n *Namespace) explainSetting(name string, err error) error {
	if !errors.Is(err, nl.ErrNotFound) {
		return err
	}
	if _, linkErr := n.Link(name); linkErr != nil {
		return linkErr
	}
	return fmt.Errorf("%w: the kernel has no such setting: %w", err, errors.ErrUnsupported)
}
