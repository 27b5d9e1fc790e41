package cnitest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// delegateType is the type of the scripted delegate. No plugin has it built in.
const delegateType = "cnitest-delegate"

// What the scripted delegate gives out, and how it fails.
const (
	trialAddress    = "198.18.0.4/24" // for the container that shows whether it is called
	delegateAddress = "198.18.0.5/24"
	delegateGateway = "198.18.0.1"
	delegateTrouble = "scripted trouble"
	delegateCode    = 123
	delegateWords   = "words of the delegate\n"
)

// delegated puts a scripted delegate in the place of the configured ones. CNI_PATH has it
// behind a directory without it. The case is skipped if the plugin does not call it.
func (p *probe) delegated(replies map[cni.Command]Reply) *Scripted {
	s := p.script(map[cni.Command]Reply{cni.CommandAdd: {Stdout: delegateResult(p.version, trialAddress, delegateGateway, nil)}})
	if got := p.add(p.container()); len(p.calls(s, cni.CommandAdd)) == 0 {
		p.skip("needs a plugin that calls the delegate that the configuration names; ADD with a delegate of type %s, which CNI_PATH has, calls none: %s", delegateType, got)
	}
	return p.script(replies)
}

// script puts a scripted delegate in the place of the configured ones, with nothing
// recorded.
func (p *probe) script(replies map[cni.Command]Reply) *Scripted {
	if _, err := os.Stat("/bin/sh"); err != nil {
		p.skip("needs a shell for the scripted delegate: %v", err)
	}
	s := &Scripted{Replies: map[cni.Command]Reply{cni.CommandAdd: {Stdout: delegateResult(p.version, delegateAddress, delegateGateway, nil)}}}
	maps.Copy(s.Replies, replies)
	dir := p.directory("delegates")
	p.can(os.RemoveAll(filepath.Join(dir, "."+delegateType+".scripted")))
	p.can(s.Install(dir, delegateType))
	p.path = append([]string{p.directory("empty"), dir}, p.target.Path...)
	for _, object := range delegations(p.config, p.target.Profile) {
		object["type"] = delegateType
	}
	return s
}

// delegations are the objects of a configuration that name a delegate: ipam, and for a
// meta plugin whatever has a type, below the top.
func delegations(config document, profile Profile) []document {
	if profile == ProfileIPAM {
		return nil
	}
	if profile != ProfileMeta {
		if ipam := config.object("ipam"); ipam.text("type") != "" {
			return []document{ipam}
		}
		return nil
	}
	var found []document
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if document(v).text("type") != "" {
				found = append(found, v)
				return
			}
			for _, key := range document(v).keys() {
				walk(v[key])
			}
		case []any:
			for _, entry := range v {
				walk(entry)
			}
		}
	}
	for _, key := range config.keys() {
		walk(config[key])
	}
	return found
}

// delegateResult is what the delegate answers to ADD.
func delegateResult(version, address, gateway string, routes []any) string {
	if version < "0.3.0" {
		ip := map[string]any{"ip": address, "gateway": gateway, "routes": routes}
		return string(document{"cniVersion": version, "ip4": ip}.encode())
	}
	ip := map[string]any{"address": address, "gateway": gateway}
	if version < "1.0.0" {
		ip["version"] = "4"
	}
	d := document{"cniVersion": version, "ips": []any{ip}}
	if routes != nil {
		d["routes"] = routes
	}
	return string(d.encode())
}

// trouble is a reply that is an error.
func (p *probe) trouble() Reply {
	doc, err := json.Marshal(map[string]any{"cniVersion": p.version, "code": delegateCode, "msg": delegateTrouble})
	p.can(err)
	return Reply{Stdout: string(doc), Exit: 1, Stderr: delegateWords}
}

// calls are the recorded calls of a command.
func (p *probe) calls(s *Scripted, command cni.Command) []Call {
	all, err := s.Calls()
	p.can(err)
	var calls []Call
	for _, call := range all {
		if call.Command == command {
			calls = append(calls, call)
		}
	}
	return calls
}

// record lists the commands that were called, for a message.
func (p *probe) record(s *Scripted) string {
	all, err := s.Calls()
	p.can(err)
	if len(all) == 0 {
		return "the delegate was not called"
	}
	commands := make([]string, len(all))
	for i, call := range all {
		commands[i] = string(call.Command)
	}
	return "the delegate was called with " + strings.Join(commands, ", ")
}
