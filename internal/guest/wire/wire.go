package wire

// Names in the guest's file system.
const (
	Init    = "/init"
	Order   = "/guest/order.json"
	Program = "/guest/program"
	Modules = "/guest/modules" // files named by their place in the order of loading
	Out     = "/out"           // what is written there comes back with the report
)

// The serial ports. The kernel's console has the first.
const (
	OutputPort = "/dev/ttyS1" // what the program writes, as it comes
	ReportPort = "/dev/ttyS2" // a tar archive: Status, then the files of Out
)

// Status is the name of the report's first entry, whose content is the program's exit
// status in decimal. A program that a signal ended has 128 and the signal's number.
const Status = "status"

// ExitPort is the port of qemu's isa-debug-exit device, with which the first process ends
// the machine when the whole report is written: a machine that ends in another way has
// not reported. qemu's own exit status is then twice the value and one.
const (
	ExitPort  = 0xf4
	ExitValue = 0x2a
)

// Variables of the program's environment.
const (
	// ReleaseVariable is set in a guest, and only there: the kernel's release.
	ReleaseVariable = "CNIKIT_GUEST"
	// OutVariable has the name of the directory whose files come back.
	OutVariable = "CNIKIT_GUEST_OUT"
)

// Run is the order: what the first process runs, after it has loaded the modules.
type Run struct {
	Args []string // without the program's name
	Env  []string
}
