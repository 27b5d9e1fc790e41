package cni

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// find looks for the executable of a plugin in the directories, in order.
func find(plugin string, dirs []string) (string, error) {
	if fault := pluginNameFault(plugin); fault != "" {
		return "", Errorf(CodeInvalidConfig, "execute plugin: type %q %s", plugin, fault)
	}
	notExecutable := ""
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir) // a bare name would be looked up in $PATH
		if err != nil {
			return "", fmt.Errorf("execute plugin %q: %w", plugin, err)
		}
		for _, suffix := range executableSuffixes() {
			path := filepath.Join(dir, plugin) + suffix
			info, err := os.Stat(path)
			switch {
			case err != nil || info.IsDir():
			case executable(info):
				return path, nil
			case notExecutable == "":
				notExecutable = path
			}
		}
	}
	if notExecutable != "" {
		return "", fmt.Errorf("execute plugin %q: %w: %s is not executable", plugin, ErrPluginNotFound, notExecutable)
	}
	if len(dirs) == 0 {
		return "", fmt.Errorf("execute plugin %q: %w: CNI_PATH is empty", plugin, ErrPluginNotFound)
	}
	return "", fmt.Errorf("execute plugin %q: %w: it is in no directory of CNI_PATH (%s)", plugin, ErrPluginNotFound, strings.Join(dirs, ", "))
}
