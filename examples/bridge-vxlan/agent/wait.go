package main

import (
	"context"
	"flag"
)

func waitCommand() command {
	return command{
		name:  "wait",
		usage: "",
		about: "do nothing until it is ended, for the pods that uninstall",
		text: `
Does nothing until it is ended, and then exits with 0. A pod of a DaemonSet has to stay
when its work is done, and the image has nothing else that could.`,
		flags: func(*options, *flag.FlagSet, environment) {},
		run: func(ctx context.Context, _ options, _ environment) error {
			<-ctx.Done()
			return nil
		},
	}
}
