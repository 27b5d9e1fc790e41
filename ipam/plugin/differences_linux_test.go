package plugin_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

// difference is a way in which the two differ, on purpose.
type difference struct {
	title, reason string
	is            func(observed) bool
}

func (o observed) add() bool    { return o.command == cni.CommandAdd }
func (o observed) within() bool { return o.theirs.answer == "error" && o.ours.answer != "error" } // ours alone succeeds
func (o observed) beyond() bool { return o.theirs.answer != "error" && o.ours.answer == "error" } // theirs alone succeeds

// adding says that the call is an ADD in one of these setups.
func adding(setups ...string) func(observed) bool {
	return func(o observed) bool { return o.add() && slices.Contains(setups, o.setup.name) }
}

// differences are tried in this order, the special before the general.
var differences = []difference{
	{
		"A namespace that does not exist",
		"Neither enters it. Package cni refuses an ADD for a container that is not there before it asks any plugin; host-local reserves an address for it. DEL does without the namespace in both.",
		func(o observed) bool { return o.add() && o.netns != "" && o.beyond() },
	},
	{
		"GC without a list frees nothing",
		"The runtime must say which attachments are valid. host-local takes a key that is missing, or null, for an empty list, and gives the addresses of all running containers away. Package cni refuses such a call; an empty list frees everything with both, and so does null under both names, which libcni sends for a runtime that has nothing attached.",
		func(o observed) bool {
			return (o.call.name == "GC without a list" || o.call.name == "GC with null for a list") && o.beyond()
		},
	},
	{
		"A prefix length with a leading zero",
		"Written /024 it is refused, since other programs read such a number as octal. Write /24; DEL and GC do not depend on it.",
		func(o observed) bool { return o.setup.name == "a prefix length with a leading zero" && o.beyond() },
	},
	{
		"A route without a destination",
		"host-local reports a route whose destination is the text `<nil>`, which is no subnet to whoever reads the result. Ours refuses the configuration; DEL and GC do not depend on it.",
		func(o observed) bool { return o.setup.name == "a route without a destination" && o.beyond() },
	},
	{
		"A failed ADD frees only what it took",
		"host-local gives back everything that the attachment has when one of several range sets fails, or when a requested address lies in no range. The addresses of the first ADD are in use: " +
			"the next container gets one of them, and two have the same. Ours gives back what this very call reserved.",
		func(o observed) bool { return o.add() && strings.Contains(o.theirs.files, "removes ") },
	},
	{
		"A failed ADD does not move the round robin",
		"last_reserved_ip.N is where the next search begins. host-local writes it with each reservation, and leaves it when it gives the reservation back.",
		func(o observed) bool {
			return o.add() && o.theirs.answer == "error" && o.ours.answer == "error" && strings.Contains(o.theirs.files, "notes ")
		},
	},
	{
		"Subnets of one and of two addresses",
		"host-local refuses a /31 and a /32 as too small. Both addresses of a /31 can be used (RFC 3021; RFC 6164 for a /127), and a /32 or /128 is the one address for a network that is routed to its one container.",
		adding("a /31", "a /32"),
	},
	{
		"Keys of CNI_ARGS that are for others",
		"CNI_ARGS carries what the runtime has to say to all plugins. host-local refuses what it does not know unless IgnoreUnknown is there, too; ours reads IP and leaves the rest to those that it is for.",
		func(o observed) bool { return o.add() && o.within() && o.call.name == "ADD with CNI_ARGS of others" },
	},
	{
		"CNI_ARGS that end in a semicolon",
		"Runtimes that write each pair with its separator end so. host-local takes what follows for a pair without a value.",
		func(o observed) bool {
			return o.add() && o.within() && o.call.name == "ADD with CNI_ARGS that end in a semicolon"
		},
	},
	{
		"An empty file is free again",
		"host-local creates a file and then writes to it: a crash, or a full disk, between the two leaves an empty file that belongs to nobody and that no DEL frees, until the range is used up. " +
			"Ours takes it for free once it is ten seconds old; its own files appear with their content.",
		adding("an empty file that is old"),
	},
	{
		"The line end of a record",
		"Both write CR and LF. A record with LF alone, which an editor or a script leaves, belongs to nobody for host-local: GC gives a live address away, and DEL does not free it.",
		func(o observed) bool {
			return o.setup.name == "a record with a line feed alone" && o.theirs.answer != "error"
		},
	},
	{
		"Network and broadcast addresses are never given out",
		"host-local leaves them out of the default range, and gives them out when rangeStart or rangeEnd includes them. An interface with the broadcast address of its own subnet does not work.",
		adding("a range from network to broadcast address"),
	},
	{
		"A gateway is given out by no range",
		"host-local leaves out the gateway of the range that it searches; another range of the same subnet gives it to a container.",
		func(o observed) bool {
			return o.add() && o.id == "new" && o.setup.name == "the gateway of one range inside another"
		},
	},
	{
		"Keys that host-local does not have",
		"exclude and quarantine, see docs/ipam.md, are ignored by host-local. While it works in a directory, excluded addresses are given out, and none rests.",
		adding("the keys exclude and quarantine"),
	},
	{
		"Unknown keys of routes",
		"A plugin does not know what the next one in the chain, or a later version of the specification, understands; ours keeps them.",
		adding("routes with unknown keys"),
	},
	{
		"An ADD can be repeated",
		"A runtime that did not get the answer asks again. host-local refuses for as long as the attachment is there, so the container never starts; ours gives the same addresses, and reserves those of new range sets. " +
			"With \"refuseDuplicate\": true it refuses as host-local does.",
		func(o observed) bool { return o.add() && o.id == "a" && o.within() },
	},
	{
		"An attachment gets no second address of a set",
		"When an address is requested, host-local does not look at what the attachment has. The result names the new address only, and the first one is in use by nobody until DEL. Ours refuses: the attachment has to be deleted first.",
		func(o observed) bool { return o.add() && o.id == "a" && o.beyond() },
	},
	{
		"STATUS is answered",
		"host-local has no STATUS: it succeeds whatever the state. Ours answers code 50 when a range set has no free address left, or its directory cannot be written to, so that the runtime stops sending pods; and code 7 for a configuration that no ADD would accept.",
		func(o observed) bool { return o.command == cni.CommandStatus },
	},
	{
		"CHECK compares addresses",
		"host-local is content when the attachment has any address. Ours fails with code 100 when an address of the previous result that lies in the ranges is not held any more: somebody else may have it by now.",
		func(o observed) bool { return o.command == cni.CommandCheck && o.beyond() },
	},
	{
		"CHECK needs no range",
		"Whether an attachment holds what it was given does not depend on the ranges, which may have come from the runtime with the ADD.",
		func(o observed) bool { return o.command == cni.CommandCheck && o.within() },
	},
	{
		"Cleaning up does not depend on the configuration",
		"host-local reads the configuration first, and a DEL or GC fails with it: an address is lost for each container that was attached before somebody edited the file. Releasing takes the attachment and the directory, nothing else.",
		func(o observed) bool {
			return (o.command == cni.CommandDel || o.command == cni.CommandGC) && o.within()
		},
	},
	{
		"A refused DEL frees all the same",
		"Before CNI 0.3.0 a result has places for one address of each family. With more range sets of one, host-local refuses ADD and DEL alike, and a container that was attached before somebody edited the file keeps its addresses. " +
			"DEL of ours frees them first, and then fails in the same words: the network cannot attach anything until somebody changes the file.",
		func(o observed) bool {
			return o.command == cni.CommandDel && o.theirs.answer == "error" && o.ours.answer == "error"
		},
	},
	{
		"GC leaves alone what is no lease",
		"host-local removes every regular file of the directory but its own two kinds. Ours removes files that are named after an address.",
		func(o observed) bool { return o.command == cni.CommandGC && o.setup.name == "a file that is no lease" },
	},
	{
		"GC reports what only a person can clear away",
		"A directory, a link that leads nowhere, or a large file in a lease's place keeps the address taken. host-local passes over it in silence; GC of ours goes on, and then fails with its path, until somebody has removed it.",
		func(o observed) bool { return o.command == cni.CommandGC && o.beyond() },
	},
	{
		"Looking creates nothing",
		"host-local creates directory and lock with every command. DEL, CHECK, GC and STATUS of ours do not, so that they work on a read-only file system, and leave no trace of a network that is gone.",
		func(o observed) bool {
			return o.setup.name == "nothing there" && o.theirs.answer == o.ours.answer && o.ours.files == ""
		},
	},
}

func classify(o observed) *difference {
	for i := range differences {
		if differences[i].is(o) {
			return &differences[i]
		}
	}
	return nil
}

// describe renders what was found as sections of the document.
func describe(found map[*difference][]observed, calls int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\nFound among %d calls: %d commands, each with %d configurations and directories.\n", calls, len(invocations), len(setups))
	for i := range differences {
		d := &differences[i]
		all := found[d]
		slices.SortFunc(all, func(a, b observed) int { return cmp.Compare(a.number, b.number) })
		fmt.Fprintf(&text, "\n### %s\n\n%s\n\n| command | calls | for example | host-local | ours |\n|---|---|---|---|---|\n", d.title, d.reason)
		for _, command := range []cni.Command{cni.CommandAdd, cni.CommandCheck, cni.CommandDel, cni.CommandGC, cni.CommandStatus} {
			those := slices.DeleteFunc(slices.Clone(all), func(o observed) bool { return o.command != command })
			if len(those) > 0 {
				o := those[0]
				fmt.Fprintf(&text, "| %s | %d | %s | %s | %s |\n", command, len(those), o.where(), quoted(o.theirs), quoted(o.ours))
			}
		}
	}
	text.WriteString("\n")
	return text.String()
}

// quoted renders an outcome for a cell of a table.
func quoted(o outcome) string {
	answer := o.answer
	if strings.HasPrefix(answer, "{") {
		answer = "`" + answer + "`"
	}
	if o.files == "" {
		return answer
	}
	return answer + "; " + o.files
}

// compareDocument compares the document's part with what was found, or writes it.
func compareDocument(t *testing.T, text string) {
	was, replace := testenv.Section(t, document, documentBegin, documentEnd)
	if *update {
		replace(text)
		return
	}
	assert.Equal(t, text, was, "%s is out of date; run: go test ./ipam/plugin -run TestDifferences -update", document)
}
