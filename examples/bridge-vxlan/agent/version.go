package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

func versionCommand() command {
	return command{
		name:  "version",
		usage: "",
		about: "print what this program was built from",
		text: `
Prints version, Go release and platform, and the commit when the program was built in a
clone. An image of mkimage has none of these but the last two: it is the same from the same
sources, wherever it is built.`,
		flags: func(*options, *flag.FlagSet, environment) {},
		run: func(_ context.Context, _ options, env environment) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(env.stdout, version(info))
			return err
		},
	}
}

// version puts what the build left in the program into a line.
func version(info *debug.BuildInfo) string {
	words := []string{programName}
	var revision, modified string
	if info != nil {
		words = append(words, info.Main.Version)
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " with changes"
			}
		}
	}
	if revision != "" {
		words = append(words, "commit "+revision+modified)
	}
	return strings.Join(append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), " ")
}
