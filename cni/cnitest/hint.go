package cnitest

import "strings"

// wantsPrevious is what to do about a plugin that is examined as one that it is not.
const wantsPrevious = "The plugin wants a prevResult: if it is chained, examine it with -profile chained " +
	"(Target.Profile: cnitest.ProfileChained), or put the plugin before it in a list."

// wanting looks at an ADD that failed: if a plugin that got no prevResult speaks of it,
// that is told before anything that the plugin may do wrong.
func (p *probe) wanting(got reply) {
	given := p.net.index > 0 || p.target.Profile == ProfileChained
	if got.succeeded() || given || got.plugin != p.target.Plugin {
		return
	}
	said := strings.ToLower(string(got.stdout) + string(got.stderr))
	if strings.Contains(said, "prevresult") || strings.Contains(said, "chained plugin") { // those of CNI say the latter
		p.hint = wantsPrevious
		p.note("%s", wantsPrevious)
	}
}
