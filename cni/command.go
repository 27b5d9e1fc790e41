package cni

// Command is a CNI verb, the value of CNI_COMMAND.
type Command string

// The verbs of the specification (section 2).
const (
	CommandAdd     Command = "ADD"
	CommandDel     Command = "DEL"
	CommandCheck   Command = "CHECK"   // since 0.4.0
	CommandStatus  Command = "STATUS"  // since 1.1.0
	CommandGC      Command = "GC"      // since 1.1.0
	CommandVersion Command = "VERSION" // since 0.2.0
)

// attaches reports whether the command is about one attachment, and so carries a
// container ID and an interface name.
func (c Command) attaches() bool {
	return c == CommandAdd || c == CommandDel || c == CommandCheck
}

// cleans reports whether the command only removes. Such a command is served as
// far as its input can be understood: what refuses to clean up stays for ever.
func (c Command) cleans() bool { return c == CommandDel || c == CommandGC }

func (c Command) known() bool {
	switch c {
	case CommandAdd, CommandDel, CommandCheck, CommandStatus, CommandGC, CommandVersion:
		return true
	}
	return false
}
