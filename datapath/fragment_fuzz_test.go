package datapath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
)

// FuzzFragment takes any bytes for a program: it is refused, or what is made of it is whole.
func FuzzFragment(f *testing.F) {
	for seed := range uint64(8) {
		spec := datapathtest.Random(rand.New(rand.NewPCG(seed, 0)), hosts()[seed%2].random)
		f.Add(encoded(f, spec.Programs[datapathtest.RandomProgram].Instructions), int16(8*seed))
	}
	f.Add(encoded(f, sample()), int16(16))
	f.Add([]byte("\x85\x0000000\xff\x950000000"), int16(0)) // calls a helper that the library cannot encode
	f.Fuzz(func(t *testing.T, code []byte, shift int16) {
		program, err := asm.AppendInstructions(nil, bytes.NewReader(code), binary.LittleEndian, "linux")
		if err != nil {
			return
		}
		fragment, err := newFragment(program, "dp_")
		if err != nil {
			requireRefusal(t, err)
			return
		}
		entry, err := fragment.called("dp_entry", hosts()[0].proto())
		require.NoError(t, err)
		encodes := append(asm.Instructions{}, program...).Marshal(&bytes.Buffer{}, binary.LittleEndian) == nil
		requireWhole(t, append(entry, fragment.subs...), encodes)
		if fragment.unpastable != "" {
			return
		}
		keep := []asm.Register{asm.R6, asm.R7, asm.R8, asm.R9}[:4-fragment.savedRegisters]
		body, err := fragment.pasted(shift&0x1f8, keep...)
		if err != nil {
			requireRefusal(t, err)
			return
		}
		requireWhole(t, append(append(body, asm.Return()), fragment.subs...), encodes)
	})
}

func encoded(t testing.TB, code asm.Instructions) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, append(asm.Instructions{}, code...).Marshal(&b, binary.LittleEndian))
	return b.Bytes()
}

func requireRefusal(t *testing.T, err error) {
	t.Helper()
	var r *refusal
	require.True(t, errors.As(err, &r), "an error without a way out: %v", err)
}

// requireWhole checks that code can be taken apart again, and encoded if what it was made of could be.
func requireWhole(t *testing.T, code asm.Instructions, encodes bool) {
	t.Helper()
	_, err := split(code)
	require.NoError(t, err)
	f, err := inspect(&ebpf.ProgramSpec{Instructions: code})
	require.NoError(t, err)
	require.NotEmpty(t, f.graph)
	if encodes {
		require.NoError(t, append(asm.Instructions{}, code...).Marshal(&bytes.Buffer{}, binary.LittleEndian))
	}
}
