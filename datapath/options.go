package datapath

// Options change how a plan is made. The zero value suits every kernel from 6.1 on.
type Options struct {
	// Features are those of the kernel that will load the programs, which [KernelFeatures] tells from its
	// version. Where more stack is left, more hooks fit.
	Features Features

	// Counters adds a per-CPU array map that counts, for each hook, its verdicts and how often it ended the
	// run. See [Plan.ReadCounters].
	Counters bool

	// SlotsFailOpen makes a slot that nobody fills proceed. By default it ends the run with the verdict that
	// denies, where the type has one: a slot is emptied whenever its filler goes away.
	SlotsFailOpen bool

	// PasteLimit is the size, in instructions, up to which code is pasted when the choice is free; zero means
	// 512, a negative one that none is.
	PasteLimit int

	// CallOriginal makes the originals functions that are called, whatever they are. By default they are when
	// they make tail calls or are large.
	CallOriginal bool
}
