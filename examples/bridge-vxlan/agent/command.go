package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const programName = "cnikit-agent"

// environment is what the program gets from outside.
type environment struct {
	getenv         func(string) string
	executable     func() (string, error) // path of the program itself
	stdout, stderr io.Writer
}

func (e environment) log() *slog.Logger { return slog.New(slog.NewTextHandler(e.stderr, nil)) }

// A command is one thing that the program does.
type command struct {
	name   string
	usage  string // arguments, as in "-node name [flags]"
	about  string // in one line
	text   string // what else to know
	flags  func(*options, *flag.FlagSet, environment)
	checks []func(options) error
	run    func(context.Context, options, environment) error
}

func commands() []command {
	return []command{runCommand(), installCommand(), uninstallCommand(), readyCommand(), waitCommand(), versionCommand()}
}

// program does what the arguments say and returns the exit code.
func program(ctx context.Context, args []string, env environment) int {
	err := dispatch(ctx, args, env)
	if err == nil {
		return 0
	}
	fmt.Fprintf(env.stderr, "%s: %v\n", programName, err)
	return 1
}

// dispatch finds the command, which is run when the first argument is a flag.
func dispatch(ctx context.Context, args []string, env environment) error {
	name := "run"
	switch {
	case len(args) > 0 && isHelp(args[0]):
		name, args = "help", args[1:]
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		name, args = args[0], args[1:]
	}
	if name == "help" {
		return help(args, env)
	}
	c, err := findCommand(name)
	if err != nil {
		return err
	}
	o, err := c.parse(args, env)
	if errors.Is(err, flag.ErrHelp) {
		c.help(env)
		return nil
	}
	if err != nil {
		return err
	}
	return c.run(ctx, o, env)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

func findCommand(name string) (command, error) {
	var known []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		known = append(known, c.name)
	}
	return command{}, fmt.Errorf("command %q: is not known; use %s or help", name, strings.Join(known, ", "))
}

// help prints what the program can do, or how a command is used.
func help(args []string, env environment) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("argument %q: is one too many; name one command", args[1])
	case len(args) == 1 && !isHelp(args[0]) && args[0] != "help":
		c, err := findCommand(args[0])
		if err == nil {
			c.help(env)
		}
		return err
	}
	fmt.Fprintf(env.stdout, "%s keeps one node of a bridge + VXLAN network as its topology says.\n\n", programName)
	fmt.Fprintf(env.stdout, "Usage: %s [command] [flags]\n\nCommands:\n", programName)
	for _, c := range commands() {
		fmt.Fprintf(env.stdout, "  %-9s  %s\n", c.name, c.about)
	}
	fmt.Fprintf(env.stdout, "  %-9s  %s\n\n", "help", "print this, or how a command is used")
	fmt.Fprintf(env.stdout, "Without a command it is run. For flags see \"%s help run\".\n", programName)
	return nil
}

// help prints how the command is used.
func (c command) help(env environment) {
	usage := strings.TrimSpace(programName + " " + c.name + " " + c.usage)
	fmt.Fprintf(env.stdout, "Usage: %s\n\n%s\n", usage, strings.TrimSpace(c.text))
	var o options
	f := c.flagSet(&o, env)
	var count int
	f.VisitAll(func(*flag.Flag) { count++ })
	if count == 0 {
		return
	}
	fmt.Fprint(env.stdout, "\nFlags:\n")
	f.SetOutput(env.stdout)
	f.PrintDefaults()
}

func (c command) flagSet(o *options, env environment) *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // it would print each error, and all flags with it
	c.flags(o, f, env)
	return f
}

// parse returns the options that are in the arguments. The error is [flag.ErrHelp] when
// help is asked for.
func (c command) parse(args []string, env environment) (options, error) {
	var o options
	f := c.flagSet(&o, env)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see %s", err, c.helpCommand())
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: is not a flag; see %s", f.Arg(0), c.helpCommand())
	}
	o.given = map[string]bool{}
	f.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	if err := o.complete(env); err != nil {
		return o, err
	}
	for _, check := range c.checks {
		if err := check(o); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (c command) helpCommand() string { return fmt.Sprintf("\"%s help %s\"", programName, c.name) }
