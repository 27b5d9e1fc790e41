package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"github.com/cnikit/cnikit/cni/install"
)

// readTemplate reads the template for conflists, if one is named. One that is not there
// counts as none, for it comes from an optional ConfigMap where Kubernetes deploys the
// agent. What is wrong with it is left in badTemplate: an agent works without.
func (o *options) readTemplate(env environment) {
	if o.templateFile == "" {
		return
	}
	text, err := os.ReadFile(o.templateFile)
	if errors.Is(err, fs.ErrNotExist) {
		env.log().Info("no template for the conflist there, so it is the default", "path", o.templateFile)
		return
	}
	if err == nil {
		o.template, err = install.ParseTemplate(string(text))
	}
	o.badTemplate = o.ofTemplate(err)
}

func (o options) ofTemplate(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("-conflist-template=%q: %w", o.templateFile, err)
}

// validateTemplate is for the command that writes a conflist and ends.
func (o options) validateTemplate() error {
	if o.badTemplate != nil || len(o.podCIDRs) == 0 {
		return o.badTemplate
	}
	_, err := o.render(o.podCIDRs, o.mtu)
	return err
}

// render makes the conflist of a node.
func (o options) render(podCIDRs []netip.Prefix, mtu int) ([]byte, error) {
	network := o.pods(podCIDRs, mtu)
	if o.badTemplate != nil {
		return nil, o.badTemplate
	}
	if o.template != nil {
		content, err := o.template.Render(network)
		return content, o.ofTemplate(err)
	}
	content, err := install.Conflist(network)
	if err != nil {
		return nil, fmt.Errorf("conflist: %w", err)
	}
	return content, nil
}

// present returns the conflist that is there, for when none can be made, which err says. An
// update that brings a bad template must cost no node its pods, not even new ones. It will
// not do when it is not ours, or known to be for other Pod CIDRs.
func (a *agent) present(podCIDRs []netip.Prefix, err error) ([]byte, error) {
	if a.kept == nil {
		a.kept = a.opts.ownConflist()
	}
	switch {
	case a.kept == nil:
		return nil, err
	case a.madeFor != nil && !slices.Equal(a.madeFor, podCIDRs):
		return nil, fmt.Errorf("%w; the conflist that is there is for the Pod CIDRs %v", err, a.madeFor)
	}
	if a.flaw != err.Error() {
		a.flaw = err.Error()
		a.log.Error("no new conflist can be made, so the one that is there stays", "error", err)
	}
	return a.kept, nil
}
