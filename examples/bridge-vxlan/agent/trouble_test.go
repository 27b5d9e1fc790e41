package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFlattenSplitsJoinedErrorsOnly(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	both := fmt.Errorf("%w, %w", a, b)
	around := fmt.Errorf("around: %w", errors.Join(a, b))
	assert.Empty(t, flatten(nil))
	assert.Equal(t, []error{a}, flatten(a))
	assert.Equal(t, []error{a, b, c}, flatten(errors.Join(errors.Join(a, b), c)))
	assert.Equal(t, []error{both}, flatten(both), "it says more than its parts")
	assert.Equal(t, []error{around, c}, flatten(errors.Join(around, c)), "so does what is around them")
}
