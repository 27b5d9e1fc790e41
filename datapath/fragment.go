package datapath

import (
	"iter"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// fragment is a program made ready to become part of another one: its maps are merged, its functions have names that are unique there.
// Nothing of it is shared with the program that it comes from, but for type information, which is only read.
type fragment struct {
	facts
	functions []*function
	names     []string // of functions, in the program that they become part of

	// subs are all functions but the main one. They follow the function that the main one is pasted into, or becomes.
	subs asm.Instructions
}

// newFragment names functions and copies those below the main one.
func newFragment(program asm.Instructions, prefix string) (*fragment, error) {
	functions, err := split(program)
	if err != nil {
		return nil, err
	}
	f := &fragment{functions: functions}
	if f.facts, err = inspectFunctions(functions, measureStack(functions[0])); err != nil {
		return nil, err
	}
	f.names = nameFunctions(functions, prefix)
	for n := 1; n < len(functions); n++ {
		code, err := f.emit(n, f.names[n], nil)
		if err != nil {
			return nil, err
		}
		code[0] = describe(code[0], f.names[n], btf.FuncMetadata(&functions[n].code[0]))
		f.subs = append(f.subs, code...)
	}
	return f, nil
}

// called returns the main function as a function of its own, that a call of symbol runs. The kernel verifies it by itself, as the
// prototype says, because it is global: what it returns is unknown to callers, which must be so when it makes tail calls. It must be a
// number, which is not asked of programs that may return anything (check_return_code of kernel/bpf/verifier.c, for XDP and TC).
func (f *fragment) called(symbol string, proto *btf.FuncProto) (asm.Instructions, error) {
	fn := f.functions[0]
	targeted := fn.targeted()
	code, err := f.emit(0, symbol, func(b *body, i int) {
		if targeted[i] || i == 0 || !setsNumber(&fn.code[i-1]) {
			b.emit(asm.Mov.Reg32(asm.R0, asm.R0))
		}
	})
	if err != nil {
		return nil, err
	}
	code[0] = describe(code[0], symbol, &btf.Func{Name: symbol, Type: proto, Linkage: btf.GlobalFunc})
	return code, nil
}

// following returns the main function as the end of another one: its exits stay, and so does its stack, which must be free by then.
func (f *fragment) following() (asm.Instructions, error) { return f.emit(0, "", nil) }

// emit copies function n under a name, or without one. What is to stand before an exit can be added, given its index.
func (f *fragment) emit(n int, name string, beforeExit func(b *body, i int)) (asm.Instructions, error) {
	fn := f.functions[n]
	b := newBody(len(fn.code))
	for i := range fn.code {
		b.at[i] = len(b.out)
		ins := withoutNames(fn.code[i])
		if isExit(&ins) && beforeExit != nil {
			beforeExit(b, i)
		}
		switch {
		case fn.targets[i] >= 0:
			b.emitJump(ins, fn.targets[i])
		case fn.calls[i] >= 0:
			b.emit(withCallee(ins, f.names[fn.calls[i]]))
		default:
			b.emit(ins)
		}
	}
	code, err := b.finish()
	if err != nil {
		return nil, err
	}
	if name != "" {
		code[0] = code[0].WithSymbol(name)
	}
	return code, nil
}

// setsNumber says that the instruction, which does not end the flow, leaves a number in r0 for sure.
func setsNumber(ins *asm.Instruction) bool {
	return ins.Dst == asm.R0 && (ins.OpCode.Class() == asm.ALUClass || ins.OpCode == asm.Mov.Op(asm.ImmSource))
}

// mapLoads yields the instructions that load a map, or the place of a value in one.
func (f *fragment) mapLoads() iter.Seq[*asm.Instruction] {
	return func(yield func(*asm.Instruction) bool) {
		for _, fn := range f.functions {
			for i := range fn.code {
				if fn.code[i].IsLoadFromMap() && !yield(&fn.code[i]) {
					return
				}
			}
		}
	}
}

// describe gives the first instruction of a function what the kernel wants of each: type information, as soon as one function has it
// (check_btf_func), and a line of source, as soon as one instruction has it (check_btf_line). A function without types becomes a static
// one that returns an int, which is what tail calls and callbacks ask for; the kernel does not look at a static function's arguments.
func describe(first asm.Instruction, name string, fn *btf.Func) asm.Instruction {
	if fn == nil {
		fn = &btf.Func{Type: &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}, Linkage: btf.StaticFunc}
	}
	named := *fn
	named.Name = name
	first = btf.WithFuncMetadata(first, &named)
	if first.Source() == nil {
		first = first.WithSource(asm.Comment(name))
	}
	return first
}

// withoutNames drops from an instruction what belongs to the place where it was: symbol and function.
func withoutNames(ins asm.Instruction) asm.Instruction {
	if ins.Symbol() != "" {
		ins = ins.WithSymbol("")
	}
	if btf.FuncMetadata(&ins) != nil {
		ins = btf.WithFuncMetadata(ins, nil)
	}
	return ins
}

// withCallee makes a call or a function pointer lead to a function by name.
func withCallee(ins asm.Instruction, name string) asm.Instruction {
	ins.Constant = -1
	return ins.WithReference(name)
}

// nameFunctions returns names that are unique under the prefix and that the kernel accepts for functions: letters, digits and underscores
// (kernel/bpf/btf.c, btf_name_valid_identifier). Without a prefix, valid names stay.
func nameFunctions(functions []*function, prefix string) []string {
	names := make([]string, len(functions))
	taken := make(map[string]bool, len(functions))
	for n, fn := range functions {
		base := fn.name
		if base == "" {
			base = "function"
		}
		base = shorten(prefix + identifier(base))
		name := base
		for suffix := n; taken[name]; suffix++ {
			name = base + "_" + strconv.Itoa(suffix)
		}
		names[n], taken[name] = name, true
	}
	return names
}

// shorten keeps a name within KSYM_NAME_LEN of kernels before 6.1, with room for a suffix.
func shorten(name string) string {
	const most = 112
	if len(name) > most {
		return name[:most]
	}
	return name
}

func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
