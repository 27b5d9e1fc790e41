package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// options are what the command line says.
type options struct {
	plugin, typ, conf, profile string
	path, dirs, share          stringList
	args, capabilities         string
	runs, skips                string
	list                       bool
	seed                       uint64
	timeout, budget            time.Duration
	json, junit                string
	parallel                   bool
	strict, verbose, plain     bool
}

// stringList is a flag that may be repeated, or hold several separated by colons.
type stringList []string

func (l *stringList) String() string { return strings.Join(*l, string(os.PathListSeparator)) }

// Set implements [flag.Value].
func (l *stringList) Set(s string) error {
	for part := range strings.SplitSeq(s, string(os.PathListSeparator)) {
		if part == "" {
			return errors.New("names no directory")
		}
		*l = append(*l, part)
	}
	return nil
}

const usage = `Usage: cnisanity -plugin PATH [-conf FILE] [flags]

Examines a CNI plugin: does it keep the specification, and what does it leave when the
world around it misbehaves? Exit status: 0 kept, 1 broken, 2 could not be examined.

  cnisanity -plugin /opt/cni/bin/bridge               a well-known type, by default configuration
  cnisanity -plugin ./mine -conf mine.conf            any plugin; FILE is a plugin object or a list
  cnisanity -plugin ./mine -conf mine.conf -run ^del/ some cases, see -list

Default configurations: %s

`

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("cnisanity", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed by the caller
	o.register(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stderr, usage, strings.Join(cnitest.KnownTypes(), " "))
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see cnisanity -help", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("argument %q: only flags are taken; see cnisanity -help", flags.Arg(0))
	}
	return o, o.check()
}

func (o *options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.plugin, "plugin", "", "`path` of the executable; a name alone is looked for in -path, $CNI_PATH and /opt/cni/bin, not in the working directory")
	flags.StringVar(&o.conf, "conf", "", "`file` with a plugin object, or a list in which the plugin is, - is standard input; not needed for well-known types")
	flags.StringVar(&o.typ, "type", "", "type of the plugin, if it is not the `name` of the executable")
	flags.StringVar(&o.profile, "profile", "", "`kind` of plugin: interface, chained, ipam or meta; default: what is known of the type, else interface")
	flags.Var(&o.path, "path", "further `directory` with plugins it delegates to; may be repeated")
	flags.Var(&o.dirs, "dir", "`directory` in which the plugin keeps state, to be watched and misused; may be repeated")
	flags.Var(&o.share, "share", "`directory` of /run or /var/lib that the plugin needs, such as that of a daemon's socket; may be repeated")
	flags.StringVar(&o.args, "args", "", "CNI_ARGS of every attachment, as `K=V;K=V`")
	flags.StringVar(&o.capabilities, "capabilities", "", "what the runtime provides for the capabilities of the configuration, as a JSON `object`")
	flags.StringVar(&o.runs, "run", "", "run only the cases whose group/name matches the regular `expression`")
	flags.StringVar(&o.skips, "skip", "", "leave out those whose group/name matches the regular `expression`")
	flags.BoolVar(&o.list, "list", false, "list the cases with the numbers of their rules, with -v also the rules, and exit; with -json as JSON")
	flags.Uint64Var(&o.seed, "seed", 0, "`number` that random choices follow from; default: another one each time")
	flags.DurationVar(&o.timeout, "timeout", cnitest.DefaultTimeout, "how long the plugin may take for one call")
	flags.DurationVar(&o.budget, "budget", 0, "begin no further case after that long; default: no limit")
	flags.BoolVar(&o.parallel, "parallel", false, "examine several cases at once; for a plugin that keeps nothing outside its network namespaces and {{dir}}")
	flags.StringVar(&o.json, "json", "", "write the report as JSON to the `file`; - is standard output, instead of the report for people")
	flags.StringVar(&o.junit, "junit", "", "write the report for CI systems to the `file`; - is standard output, instead of the report for people")
	flags.BoolVar(&o.strict, "strict", false, "let a broken rule that should be kept count as one that must")
	flags.BoolVar(&o.verbose, "v", false, "tell of every case, and more of long documents; with -list, tell of every rule")
	flags.BoolVar(&o.plain, "no-color", false, "no colors, and a line of progress every few seconds instead of one that moves; the default when no terminal is there")
}

func (o *options) check() error {
	switch {
	case o.plugin == "" && !o.list:
		return errors.New("flag -plugin is missing: name the executable, as in cnisanity -plugin /opt/cni/bin/bridge")
	case o.json == "-" && o.junit == "-":
		return errors.New("flags -json and -junit cannot both have standard output; give one a file")
	case o.parallel && len(o.dirs) > 0:
		return errors.New("flags -parallel and -dir: cases would share the directory; leave one of the two out, or have the configuration name {{dir}}")
	case o.timeout <= 0:
		return fmt.Errorf("flag -timeout: %s is no time to answer in", o.timeout)
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32()) + 1 // short enough to be typed
	}
	return nil
}

// kit are the options for the kit.
func (o *options) kit(progress io.Writer) cnitest.Options {
	return cnitest.Options{
		Run: o.runs, Skip: o.skips, Seed: o.seed, Timeout: o.timeout, Budget: o.budget, Progress: progress, Strict: o.strict, Parallel: o.parallel,
	}
}
