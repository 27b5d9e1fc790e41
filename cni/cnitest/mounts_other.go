//go:build !linux

package cnitest

import "errors"

type mounts struct{}

func newMounts(*Namespace, func() error) (*mounts, error) { return nil, errors.ErrUnsupported }
func (m *mounts) do(*Namespace, func() error) error       { return errors.ErrUnsupported }
func (m *mounts) close()                                  {}
func readOnly([]string) error                             { return errors.ErrUnsupported }
func small([]string) error                                { return errors.ErrUnsupported }
func noRoom(error) bool                                   { return false }
