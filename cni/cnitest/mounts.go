package cnitest

// run runs an executable of the case, with the mounts of the case if it has its own.
func (p *probe) run(cmd *Cmd) error {
	if p.mounts == nil {
		return cmd.Run()
	}
	if err := p.mounts.do(p.node, cmd.Cmd.Start); err != nil {
		return err
	}
	return cmd.Wait()
}
