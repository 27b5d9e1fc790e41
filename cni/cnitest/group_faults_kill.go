package cnitest

func killCases() []kase {
	return []kase{
		{
			CaseInfo: CaseInfo{
				Name: "killed-add", Rows: []int{49, 53, 95, 112}, Strength: Should,
				About: "When ADD is killed, at whichever change it makes, DEL and GC leave nothing of it, and ADD works again.",
				Fix: "let DEL and GC find what an ADD made by names, aliases or comments that follow from container ID and interface name, not by a record that is written later; " +
					"give files their names when they are complete (write a temporary one, then link or rename it), and remove forgotten temporary ones",
			},
			needs: []need{aProcess},
			run:   func(p *probe) { p.killEach(killedAdd) },
		},
		{
			CaseInfo: CaseInfo{
				Name: "killed-del", Rows: []int{49, 53, 57, 113}, Strength: Should,
				About: "When DEL is killed, at whichever change it makes, another DEL, and GC, leave nothing.",
				Fix:   "remove what leads to other things, such as a record or the reserved address, last; take for done whatever is gone already",
			},
			needs: []need{aProcess},
			run:   func(p *probe) { p.killEach(killedDel) },
		},
	}
}
