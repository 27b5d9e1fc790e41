package guest

import "time"

// Options says what runs in a guest, and on what.
type Options struct {
	Kernel  string            // a line of kernels or a version: "6.1", "6.12", "newest"
	Program string            // path of a static executable
	Args    []string          // without the program's name
	Env     []string          // NAME=value, beside what every guest has
	Files   map[string][]byte // what the program finds, by absolute path; all is executable
	Modules []string          // kernel modules; what they need is loaded with them
	Memory  int               // MiB; 0 is 512
	CPUs    int               // 0 is 1, which is the quickest
	Timeout time.Duration     // from the start of the machine to its end; 0 is 8 minutes, as busy machines take ten times as long
}

func (o Options) withDefaults() Options {
	if o.Memory == 0 {
		o.Memory = 512
	}
	if o.CPUs == 0 {
		o.CPUs = 1
	}
	if o.Timeout == 0 {
		o.Timeout = 8 * time.Minute
	}
	return o
}

// Result is what a guest has reported.
type Result struct {
	Release string            // of the kernel, as uname -r tells it
	Status  int               // the program's exit status; 128 and the number of a signal that ended it
	Output  []byte            // what the program wrote to its standard output and error
	Console []byte            // what the kernel said
	Files   map[string][]byte // what the program left in $CNIKIT_GUEST_OUT, by path in it
}
