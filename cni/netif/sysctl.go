package netif

import (
	"fmt"
	"strings"
)

// CheckSetting reports why a text is no setting of an interface for
// [Namespace.Setting]; nil when it is.
func CheckSetting(setting string) error {
	parts := strings.Split(setting, "/")
	if len(parts) != 3 || parts[0] != "ipv4" && parts[0] != "ipv6" || parts[1] != "conf" && parts[1] != "neigh" {
		return fmt.Errorf(`is no setting of an interface; write one as "ipv4/conf/rp_filter" or "ipv6/neigh/gc_stale_time"`)
	}
	for _, c := range []byte(parts[2]) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return fmt.Errorf("contains %q behind the second slash", c)
		}
	}
	if parts[2] == "" {
		return fmt.Errorf("has no name behind the second slash")
	}
	return nil
}

// settingKey is the path of a setting below /proc/sys. Names of interfaces may contain
// dots, so the separators are slashes.
func settingKey(name, setting string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", fmt.Errorf("interface name %q: %w", name, err)
	}
	if err := CheckSetting(setting); err != nil {
		return "", fmt.Errorf("setting %q: %w", setting, err)
	}
	last := strings.LastIndexByte(setting, '/')
	return "net/" + setting[:last+1] + name + setting[last:], nil
}
