package cni

import "slices"

// SupportedVersions returns the versions of the specification that this package
// speaks, the lowest first.
func SupportedVersions() []string {
	return []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}
}

func newest(versions []string) string { return slices.Max(versions) }
