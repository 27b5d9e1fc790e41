package cnitest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// request is one call to be made. A case changes what it wants before it is made.
type request struct {
	plugin string
	env    map[string]string // the variables of the protocol
	config document
	stdin  []byte // instead of config, if not nil
}

// environ is the environment of the process.
func (p *probe) environ(r *request) []string {
	env := append([]string{"PATH=" + os.Getenv("PATH")}, p.target.Env...)
	for key, value := range r.env {
		env = append(env, key+"="+value)
	}
	slices.Sort(env)
	return env
}

func (r *request) input() []byte {
	if r.stdin != nil {
		return r.stdin
	}
	return r.config.encode()
}

// request derives a request to the plugin under test as a runtime does; a is nil for a
// command without attachment. The plugins before it run first.
func (p *probe) request(command cni.Command, a *attachment) *request {
	if a != nil {
		p.prepare(a)
	}
	r := p.derive(p.config, command, a)
	if a != nil && command != cni.CommandAdd && a.result != nil {
		r.config["prevResult"] = map[string]any(a.result.clone())
	}
	return r
}

func (p *probe) derive(plugin document, command cni.Command, a *attachment) *request {
	r := &request{plugin: plugin.text("type"), env: map[string]string{"CNI_COMMAND": string(command)}}
	if len(p.path) > 0 {
		r.env["CNI_PATH"] = strings.Join(p.path, string(os.PathListSeparator))
	}
	r.config = plugin.replaced(Placeholder, p.stateDir())
	p.keepOut(r.config)
	r.config["cniVersion"], r.config["name"] = p.version, p.net.name
	if a == nil {
		return r
	}
	r.config["cniVersion"] = a.version
	r.env["CNI_CONTAINERID"], r.env["CNI_NETNS"], r.env["CNI_IFNAME"] = a.id, a.netns, a.ifname
	if len(a.args) > 0 {
		r.env["CNI_ARGS"] = a.args.String()
	}
	if provided := p.runtimeConfig(r.config); len(provided) > 0 {
		r.config["runtimeConfig"] = provided
	}
	delete(r.config, "capabilities")
	if a.previous != nil {
		r.config["prevResult"] = map[string]any(a.previous.clone())
	}
	return r
}

// keepOut gives well-known IPAM plugins a directory of the case, so that they do not
// write where those of the machine do.
func (p *probe) keepOut(config document) {
	ipam := config.object("ipam")
	if t := ipam.text("type"); (t == "host-local" || t == "cnikit-ipam") && ipam["dataDir"] == nil {
		ipam["dataDir"] = p.stateDir()
	}
}

// runtimeConfig holds the capabilities that are declared and provided.
func (p *probe) runtimeConfig(config document) map[string]any {
	provided := map[string]any{}
	for name, declared := range config.object("capabilities") {
		if value, ok := p.target.Capabilities[name]; ok && declared == true {
			provided[name] = plain(value)
		}
	}
	return provided
}

// plain turns a value into what a document is made of.
func plain(v any) any {
	data, err := json.Marshal(map[string]any{"v": v})
	if err != nil {
		return fmt.Sprint(v)
	}
	doc, err := parseDocument(data)
	if err != nil {
		return fmt.Sprint(v)
	}
	return doc["v"]
}

// prepare runs the plugins before the one under test, once.
func (p *probe) prepare(a *attachment) {
	if a.prepared {
		return
	}
	a.prepared = true
	before := p.net.plugins[:p.net.index]
	if len(before) == 0 && p.target.Profile == ProfileChained {
		p.can(p.forerun(a))
		return
	}
	for _, plugin := range before {
		r := p.do(p.derive(plugin, cni.CommandAdd, a))
		if p.expected(r); !r.succeeded() || r.document() == nil {
			p.skip("needs plugin %s before it in the list to work, and it failed: %s", plugin.text("type"), r)
		}
		a.previous = r.document()
	}
	a.mentioned = p.mentions(a)
}

// versionRequest asks for versions.
func (p *probe) versionRequest(version string) *request {
	r := p.derive(p.config, cni.CommandVersion, nil)
	r.config = document{"cniVersion": version}
	return r
}

// gcRequest carries the list of valid attachments under both of its names, as libcni
// sends it.
func (p *probe) gcRequest(valid ...*attachment) *request {
	r := p.derive(p.config, cni.CommandGC, nil)
	list := []any{}
	for _, a := range valid {
		list = append(list, map[string]any{"containerID": a.id, "ifname": a.ifname})
	}
	r.config["cni.dev/valid-attachments"], r.config["cni.dev/attachments"] = list, list
	return r
}

// executable is the file to run for a request.
func (p *probe) executable(r *request) (string, error) {
	if path, err := find(r.plugin, p.path); err == nil {
		return path, nil
	}
	return find(r.plugin, p.target.Path)
}
