package kernels

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// modules reads what the modules in a kernel's directory say about themselves. Packages
// bring no modules.dep: depmod makes it where they are installed, from the same texts.
func modules(dir string) (map[string]Module, error) {
	all := map[string]Module{}
	builtin, err := os.ReadFile(filepath.Join(dir, builtinName))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(builtin)) {
		all[nameOf(strings.TrimSpace(line))] = Module{}
	}
	files, err := filepath.Glob(filepath.Join(dir, modulesName, "*.ko"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		depends, err := dependencies(file)
		if err != nil {
			return nil, fmt.Errorf("read module %s: %w", filepath.Base(file), err)
		}
		all[nameOf(file)] = Module{File: path.Join(modulesName, filepath.Base(file)), Depends: depends}
	}
	return all, nil
}

func nameOf(file string) string {
	return moduleName(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".ko"))
}

// dependencies reads the section .modinfo: texts KEY=VALUE, each ended by a zero byte.
// "depends" has names without spaces between commas.
func dependencies(file string) ([]string, error) {
	object, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()
	section := object.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	content, err := section.Data()
	if err != nil {
		return nil, err
	}
	var depends []string
	for text := range strings.SplitSeq(string(content), "\x00") {
		if value, ok := strings.CutPrefix(text, "depends="); ok && value != "" {
			depends = append(depends, strings.Split(value, ",")...)
		}
	}
	return depends, nil
}
