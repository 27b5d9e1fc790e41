//go:build !linux

package main

import "errors"

func masquerade(string) error { return errors.ErrUnsupported }

func unmasquerade(string) error { return errors.ErrUnsupported }
