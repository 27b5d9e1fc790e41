package cnitest

import (
	"bytes"
	"fmt"
	"strings"
)

func protocolCases() []kase {
	return inGroup("protocol", append(protocolDocuments(), protocolParameters()...)...)
}

func protocolDocuments() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "result", Rows: []int{29, 30, 38, 41}, Strength: Must,
				About: "ADD that succeeds exits with 0 and prints one JSON object on standard output, and nothing else.",
				Fix:   "if ADD fails, remove the cause that its error names, in the configuration or in the plugin; if it succeeds, print the result once, as the last thing, and send logs, and what libraries and children print, to standard error",
			},
			run: protocolResult,
		},
		{
			CaseInfo: CaseInfo{
				Name: "exit-status", Rows: []int{38}, Strength: Must,
				About: "A plugin that fails does not exit with 0.",
				Fix:   "refuse a command that is not known, a configuration that cannot be read and a CNI_NETNS that is no network namespace, and exit with a status other than 0 whenever an error is reported",
			},
			run: protocolExit,
		},
		{
			CaseInfo: CaseInfo{
				Name: "error", Rows: []int{39, 179}, Strength: Should,
				About: "A plugin that fails prints one error object, with code and msg, on standard output.",
				Fix:   `print {"cniVersion": …, "code": …, "msg": …} on standard output, once, also for input that cannot be read`,
			},
			run: protocolError,
		},
		{
			CaseInfo: CaseInfo{
				Name: "error-version", Rows: []int{179}, Strength: Should,
				About: "An error object has the cniVersion of the protocol in use.",
				Fix:   "copy the configuration's cniVersion into error objects",
			},
			run: protocolErrorVersion,
		},
		{
			CaseInfo: CaseInfo{
				Name: "error-code", Rows: []int{180, 181}, Strength: Must,
				About: "Error codes up to 99 are used as the specification defines them only.",
				Fix:   "use the codes of the specification, and 100 or above for the plugin's own errors; 0 and 8 are not defined",
			},
			run: protocolErrorCode,
		},
		{
			CaseInfo: CaseInfo{
				Name: "undecodable", Rows: []int{187}, Strength: Should,
				About: "A configuration that is not JSON is refused with code 6.",
				Fix:   "answer with code 6 (cannot decode) when standard input is no JSON object",
			},
			run: protocolUndecodable,
		},
	}
}

func protocolParameters() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "unknown-command", Rows: []int{185}, Strength: Must,
				About: "An unknown CNI_COMMAND is refused with code 4 and a message that names the variable.",
				Fix:   "check CNI_COMMAND, and answer with code 4 and a message that contains CNI_COMMAND",
			},
			run: protocolUnknownCommand,
		},
		{
			CaseInfo: CaseInfo{
				Name: "no-command", Rows: []int{185}, Strength: Should,
				About: "A missing CNI_COMMAND is refused with code 4 and a message that names the variable.",
				Fix:   "report a missing CNI_COMMAND as an error with code 4; help for a person goes to standard error beside it",
			},
			run: protocolNoCommand,
		},
		{
			CaseInfo: CaseInfo{
				Name: "missing-variables", Rows: []int{185}, Strength: Must,
				About: "ADD without a variable that it needs is refused with code 4 and a message that names the variable.",
				Fix:   "check CNI_CONTAINERID, CNI_NETNS and CNI_IFNAME before anything is set up, and name the missing ones in an error with code 4",
			},
			run: protocolMissing,
		},
		{
			CaseInfo: CaseInfo{
				Name: "container-id", Rows: []int{33, 185}, Strength: Should,
				About: "A CNI_CONTAINERID with characters that it must not have is refused.",
				Fix:   "refuse container IDs that do not match [a-zA-Z0-9][a-zA-Z0-9_.-]*, before they become part of a file name",
			},
			run: protocolContainerID,
		},
		{
			CaseInfo: CaseInfo{
				Name: "network-name", Rows: []int{4, 5, 188}, Strength: Should,
				About: "A configuration whose name has characters that it must not have is refused.",
				Fix:   "refuse names of networks that do not match [a-zA-Z0-9][a-zA-Z0-9_.-]*, before they become part of a file name, with code 7",
			},
			run: protocolNetworkName,
		},
		{
			CaseInfo: CaseInfo{
				Name: "interface-name", Rows: []int{35}, Strength: Must,
				About: "ADD fails when CNI_IFNAME cannot be the name of an interface.",
				Fix:   `refuse names that are longer than 15 bytes, contain "/", ":" or white space, or are "." or ".."; never shorten or change them`,
			},
			profiles: []Profile{ProfileInterface, ProfileMeta},
			run:      protocolInterfaceName,
		},
		{
			CaseInfo: CaseInfo{
				Name: "arguments", Rows: []int{36, 48}, Strength: Should,
				About: "CNI_ARGS with arguments that the plugin does not know, as Kubernetes runtimes send them, are no error.",
				Fix:   "ignore unknown arguments, at the least when IgnoreUnknown=1 is among them, in whatever order they come",
			},
			run: protocolArguments,
		},
		{
			CaseInfo: CaseInfo{
				Name: "optional-variables", Rows: []int{48}, Strength: Must,
				About: "ADD works when CNI_ARGS and CNI_PATH are absent.",
				Fix:   "do not demand CNI_ARGS or CNI_PATH; look at CNI_PATH when a delegate has to be found, and not before",
			},
			needs: []need{noDelegate},
			run:   protocolOptional,
		},
		{
			CaseInfo: CaseInfo{
				Name: "unknown-keys", Rows: []int{18, 27}, Strength: Should,
				About: "Keys of the runtime that a plugin does not know do not make it fail.",
				Fix:   `ignore unknown keys that begin with "cni.dev/", and unknown members of runtimeConfig and args: later versions of the protocol add some`,
			},
			run: protocolUnknownKeys,
		},
	}
}

func protocolResult(p *probe) {
	got := p.expected(p.add(p.container()))
	switch {
	case !got.succeeded():
		p.wanting(got)
		p.broken("ADD: %s", got)
	case got.document() == nil:
		p.broken("standard output of ADD is no single JSON object: %s", got)
	}
}

// mistakes are requests that every plugin has to refuse.
func (p *probe) mistakes() []*request {
	bogus := p.request("ADD", p.container())
	bogus.env["CNI_COMMAND"] = "BOGUS"
	garbage := p.request("ADD", p.container())
	garbage.stdin = []byte(`{"cniVersion": "`)
	anonymous := p.request("ADD", p.container())
	delete(anonymous.env, "CNI_CONTAINERID")
	file := p.request("ADD", p.container())
	file.env["CNI_NETNS"] = p.file("no-namespace", "")
	return []*request{bogus, garbage, anonymous, file}
}

// mistake names what is wrong with one of them.
func (p *probe) mistake(i int) string {
	return []string{
		"CNI_COMMAND=BOGUS", "ADD with half a JSON object on standard input",
		"ADD without CNI_CONTAINERID", "ADD with a plain file as CNI_NETNS",
	}[i]
}

func protocolExit(p *probe) {
	for i, r := range p.mistakes() {
		if i == 3 && (p.target.Profile == ProfileIPAM || p.target.Profile == ProfileChained) {
			continue // not all of them look at the namespace
		}
		got := p.do(r)
		if _, _, reported := got.failure(); i == 2 && !reported {
			continue // whether it is refused, missing-variables says
		}
		if got.exit == 0 {
			p.fault("%s: %s", p.mistake(i), got)
		}
	}
}

func protocolError(p *probe) {
	for i, r := range p.mistakes() {
		got := p.do(r)
		if got.exit == 0 {
			continue
		}
		if _, msg, ok := got.failure(); !ok || msg == "" {
			p.fault("%s: %s", p.mistake(i), got)
		}
	}
}

func protocolErrorVersion(p *probe) {
	for i, r := range p.mistakes() {
		if r.stdin != nil {
			continue // there is no version to be read
		}
		got := p.do(r)
		if _, _, ok := got.failure(); !ok {
			continue
		}
		if v := got.document().text("cniVersion"); v != p.version {
			p.fault("%s: the configuration has cniVersion %q, the error %q: %s", p.mistake(i), p.version, v, got)
		}
	}
}

func protocolErrorCode(p *probe) {
	for i, r := range p.mistakes() {
		got := p.do(r)
		code, _, ok := got.failure()
		if !ok || got.exit == 0 || defined(code) {
			continue
		}
		p.fault("%s: code %d: %s", p.mistake(i), code, got)
	}
}

// defined reports whether a plugin may use the code.
func defined(code int64) bool {
	return code >= 1 && code <= 7 || code == 11 || code == 50 || code == 51 || code >= 100
}

func protocolUndecodable(p *probe) {
	for _, input := range []string{`{"cniVersion": "`, "", "[1, 2]"} {
		r := p.request("ADD", p.container())
		r.stdin = []byte(input)
		got := p.do(r)
		if code, _, ok := got.failure(); got.exit == 0 || !ok || code != 6 {
			p.fault("ADD with %q on standard input: %s", input, got)
		}
	}
}

func protocolUnknownCommand(p *probe) {
	r := p.request("ADD", p.container())
	r.env["CNI_COMMAND"] = "BOGUS"
	p.refusal("CNI_COMMAND=BOGUS", "CNI_COMMAND", p.do(r))
}

func protocolNoCommand(p *probe) {
	r := p.request("ADD", p.container())
	delete(r.env, "CNI_COMMAND")
	p.refusal("without CNI_COMMAND", "CNI_COMMAND", p.do(r))
}

// refusal notes unless an error has code 4 and names the variable.
func (p *probe) refusal(what, variable string, got reply) {
	code, _, ok := got.failure()
	switch {
	case got.exit == 0:
		p.fault("%s: is not refused: %s", what, got)
	case !ok || code != 4:
		p.fault("%s: the error has no code 4: %s", what, got)
	case !strings.Contains(got.complaint(), variable):
		p.fault("%s: the error does not name %s: %s", what, variable, got)
	}
}

func protocolMissing(p *probe) {
	for _, variable := range []string{"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"} {
		r := p.request("ADD", p.container())
		delete(r.env, variable)
		p.refusal("ADD without "+variable, variable, p.do(r))
	}
}

func protocolContainerID(p *probe) {
	for _, id := range []string{"../victim", "-starts-with-a-dash", "has space", "semi;colon"} {
		r := p.request("ADD", p.container())
		r.env["CNI_CONTAINERID"] = id
		if got := p.do(r); got.exit == 0 {
			p.fault("ADD with CNI_CONTAINERID=%q: %s", id, got)
		}
	}
}

func protocolNetworkName(p *probe) {
	for _, name := range []string{"../victim", "has space", ""} {
		r := p.request("ADD", p.container())
		r.config["name"] = name
		if got := p.do(r); got.exit == 0 {
			p.fault("ADD with the network name %q: %s", name, got)
		}
	}
}

func protocolInterfaceName(p *probe) {
	for _, name := range []string{"sixteen-bytes-ab", "a/b", "..", "white space", "a:b"} {
		a := p.container()
		r := p.request("ADD", a)
		r.env["CNI_IFNAME"] = name
		if got := p.do(r); got.exit == 0 {
			p.fault("ADD with CNI_IFNAME=%q: %s", name, got)
		}
	}
}

func protocolArguments(p *probe) {
	p.attached()
	for _, args := range []string{
		"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=0123;K8S_POD_UID=0-1-2",
		"K8S_POD_NAME=web-0;IgnoreUnknown=1",
	} {
		r := p.request("ADD", p.container())
		r.env["CNI_ARGS"] = args
		if got := p.do(r); !got.succeeded() {
			p.fault("ADD with CNI_ARGS=%q: %s", args, got)
		}
	}
}

func protocolOptional(p *probe) {
	p.attached()
	for _, variable := range []string{"CNI_ARGS", "CNI_PATH"} {
		r := p.request("ADD", p.container())
		delete(r.env, variable)
		if got := p.do(r); !got.succeeded() {
			p.fault("ADD without %s: %s", variable, got)
		}
	}
}

func protocolUnknownKeys(p *probe) {
	p.attached()
	for _, change := range []func(document){
		func(c document) { c["cni.dev/cnitest"] = map[string]any{"a": []any{}} },
		func(c document) { c["runtimeConfig"] = map[string]any{"cnitest.example/capability": true} },
		func(c document) { c["args"] = map[string]any{"cnitest.example": map[string]any{"a": "b"}} },
	} {
		r := p.request("ADD", p.container())
		before := bytes.Clone(r.config.encode())
		change(r.config)
		if got := p.do(r); !got.succeeded() {
			p.fault("ADD with %s: %s", added(before, r.config), got)
		}
	}
}

// added tells the key that was added to a configuration.
func added(before []byte, after document) string {
	was, _ := parseDocument(before)
	for _, key := range after.keys() {
		if was[key] == nil {
			return fmt.Sprintf("%q: %s", key, document{key: after[key]}.encode())
		}
	}
	return "the same configuration"
}
