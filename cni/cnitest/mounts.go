package cnitest

// run runs an executable of the case.
func (p *probe) run(cmd *Cmd) error {
	if err := p.inNode(cmd.Cmd.Start); err != nil {
		return notExecuted(cmd.Path, err)
	}
	return cmd.Wait()
}

// inNode runs fn in the node, with the mounts of the case if it has its own.
func (p *probe) inNode(fn func() error) error {
	if p.mounts == nil {
		return p.node.Do(fn)
	}
	return p.mounts.do(p.node, fn)
}
