package chain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

const (
	firstVersion    = "0.1.0" // what a configuration that names no version means
	chainedDEL      = "0.4.0" // CHECK, and prevResult on DEL
	noSingleConfigs = "1.0.0" // the specification has conflists only
	statusAndGC     = "1.1.0" // STATUS, GC, cniVersions
)

// semver matches a version of https://semver.org, pre-releases included: they are valid, if never supported.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// atLeast reports whether version, one that package cni supports, is not older than oldest.
func atLeast(version, oldest string) bool {
	supported := cni.SupportedVersions()
	return slices.Index(supported, version) >= slices.Index(supported, oldest)
}

// declaredVersions returns the union of cniVersion and cniVersions as far as package cni speaks them, the highest first. Versions it does not
// know are left out, as a configuration may serve newer runtimes too; when none is left, that is an error.
func declaredVersions(o object) ([]string, error) {
	declared, err := versionKeys(o)
	if err != nil {
		return nil, err
	}
	if len(declared) == 0 {
		declared = []string{firstVersion}
	}
	var usable []string
	for _, v := range slices.Backward(cni.SupportedVersions()) {
		if slices.Contains(declared, v) {
			usable = append(usable, v)
		}
	}
	if len(usable) == 0 {
		return nil, &cni.FieldError{
			Key: "cniVersion", Value: declared, Reason: "no such version of the CNI specification is supported",
			Fix: "add one of " + strings.Join(cni.SupportedVersions(), ", ") + " to cniVersions",
		}
	}
	return usable, nil
}

func versionKeys(o object) ([]string, error) {
	one, err := stringKey(o, "cniVersion")
	if err != nil {
		return nil, err
	}
	declared, err := stringsKey(o, "cniVersions")
	if err != nil {
		return nil, err
	}
	for _, v := range declared {
		if !semver.MatchString(v) {
			return nil, notSemver("cniVersions", v)
		}
	}
	if one == "" {
		return declared, nil
	}
	if !semver.MatchString(one) {
		return nil, notSemver("cniVersion", one)
	}
	return append(declared, one), nil
}

func notSemver(key, value string) error {
	return &cni.FieldError{Key: key, Value: value, Reason: "is no semantic version", Fix: `write three numbers, as in "1.0.0"`}
}
