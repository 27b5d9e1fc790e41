package cni

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
)

// SupportedVersions returns the versions of the specification that this package
// speaks, the lowest first.
func SupportedVersions() []string {
	return []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}
}

func newestVersion() string {
	versions := SupportedVersions()
	return versions[len(versions)-1]
}

// sortVersions returns the versions with the lowest first.
func sortVersions(versions []string) []string {
	all := SupportedVersions()
	return slices.SortedFunc(slices.Values(versions), func(a, b string) int {
		return slices.Index(all, a) - slices.Index(all, b)
	})
}

// perFamily reports whether results of the version have ip4 and ip6 objects
// instead of lists.
func perFamily(version string) bool { return version == "0.1.0" || version == "0.2.0" }

// orOldest gives the version that a document without one has.
func orOldest(version string) string {
	if version == "" {
		return "0.1.0"
	}
	return version
}

// atLeast compares versions of SupportedVersions.
func atLeast(version, minimum string) bool {
	all := SupportedVersions()
	return slices.Index(all, version) >= slices.Index(all, minimum)
}

// checkVersion says whether a plugin of the given versions serves the command for
// a configuration of the given version. DEL is served for every version: an
// attachment must not outlive the plugin that could remove it. What to do about a command
// that the version does not have is logged.
func checkVersion(command Command, version string, versions []string, log *slog.Logger) error {
	if command == CommandDel {
		return nil
	}
	if !hasCommand(version, command) {
		log.Error("cniVersion is too low for the command", "cniVersion", version, "needed", firstVersionOf(command)+" or later")
		return Errorf(CodeIncompatibleVersion, "config version does not allow %s", command) // skel's words, which callers compare
	}
	if !slices.Contains(versions, version) {
		return Errorf(CodeIncompatibleVersion, "cniVersion=%q is not supported; use one of %v", version, versions)
	}
	return nil
}

// hasCommand reports whether a version of the specification has the command. One that is
// not known may have it.
func hasCommand(version string, command Command) bool {
	return !slices.Contains(SupportedVersions(), version) || atLeast(version, firstVersionOf(command))
}

// firstVersionOf is the version that brought a command; ADD and DEL were there always.
func firstVersionOf(command Command) string {
	return orOldest(map[Command]string{CommandCheck: "0.4.0", CommandStatus: "1.1.0", CommandGC: "1.1.0"}[command])
}

// versionDocument answers VERSION: the version as it came in, and what is spoken.
func versionDocument(config []byte, versions []string) ([]byte, error) {
	version := versions[len(versions)-1]
	if len(config) > 0 {
		f, err := readFields("", config)
		if err != nil {
			return nil, Errorf(CodeDecode, "read request from standard input: %w", err)
		}
		if given := f.text("cniVersion"); given != "" {
			version = given
		}
		if f.err != nil {
			return nil, Errorf(CodeDecode, "read request from standard input: %w", f.err)
		}
	}
	return json.Marshal(struct {
		CNIVersion        string   `json:"cniVersion"`
		SupportedVersions []string `json:"supportedVersions"`
	}{version, versions})
}

// readVersions reads the versions out of the answer to VERSION.
func readVersions(out []byte) ([]string, error) {
	f, err := readFields("", out)
	if err != nil {
		return nil, fmt.Errorf("read the answer to VERSION: %w", err)
	}
	var versions []string
	f.take("supportedVersions", &versions, "a list of strings")
	if f.err != nil {
		return nil, fmt.Errorf("read the answer to VERSION: %w", f.err)
	}
	return versions, nil
}
