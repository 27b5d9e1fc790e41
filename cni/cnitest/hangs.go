package cnitest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cnikit/cnikit/cni"
)

// patience is how often in a row a command that has answered before may give no answer
// until it is taken to hang. One that never has answered is taken to hang at once.
const patience = 3

// hangs knows which commands give no answer, so that not every case waits for them. A
// call is named as [reply.what] does. It is safe for concurrent use.
type hangs struct {
	mu       sync.Mutex
	answered map[string]bool
	late     map[string]int // in a row
}

// saw takes note of a call that a plugin has to answer as long as nothing is the matter.
func (h *hangs) saw(r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late == nil {
		h.answered, h.late = map[string]bool{}, map[string]int{}
	}
	if !r.late {
		h.answered[r.what()], h.late[r.what()] = true, 0
		return
	}
	h.late[r.what()]++
}

// once reports whether a call has been answered once.
func (h *hangs) once(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[what]
}

// hanging reports whether a call is not worth another try.
func (h *hangs) hanging(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := 1
	if h.answered[what] {
		limit = patience
	}
	return h.late[what] >= limit
}

// worthwhile returns how the case ends before a call that hangs, nil if it does not. The
// case that looks at the call always makes it.
func (p *probe) worthwhile(r reply) error {
	if p.hangs.hanging(r.what()) && p.id != p.looksAt(r) {
		return p.unanswered(r)
	}
	return nil
}

func (x *exam) unanswered(r reply) ending {
	reason := fmt.Sprintf("needs %s to work, and it hangs: no answer within %s", r.what(), x.o.Timeout)
	if id := x.looksAt(r); id != "" {
		reason += "; see " + id
	}
	return ending{Skipped, reason}
}

// hung is how the case ends that finds that a call hangs. It is skipped like all others if
// there is one that fails for it; else nobody would see that the plugin was not examined.
func (x *exam) hung(r reply) ending {
	end := x.unanswered(r)
	if x.looksAt(r) == "" || x.hangs.once(r.what()) {
		end.verdict = FailedToRun
	}
	return end
}

// looksAt is the case of this examination that fails if the call gets no answer.
func (x *exam) looksAt(r reply) string {
	id := map[cni.Command]string{
		cni.CommandAdd: "protocol/result", cni.CommandDel: "del/succeeds", cni.CommandCheck: "check/after-add",
		cni.CommandStatus: "status/ready", cni.CommandGC: "gc/succeeds",
	}[cni.Command(r.command)]
	if r.plugin == x.target.Plugin && slices.ContainsFunc(x.cases, func(c kase) bool { return c.ID() == id }) {
		return id
	}
	return ""
}
