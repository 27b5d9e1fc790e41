package cni

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// ignoreUnknown is the argument by which a runtime says that plugins may meet
// arguments that are not for them.
const ignoreUnknown = "IgnoreUnknown"

// DecodeArgs reads arguments into a struct of type T:
//
//	type podArgs struct {
//		Namespace string     `cni:"K8S_POD_NAMESPACE"`
//		Name      string     `cni:"K8S_POD_NAME"`
//		Address   netip.Addr `cni:"IP"`
//	}
//	args, err := cni.DecodeArgs[podArgs](r.Args)
//
// An argument belongs to the exported field with its key as the tag, or as the name
// if the field has no tag; the tag "-" leaves a field out. Fields are strings,
// numbers, booleans (true, false, 1, 0), an [encoding.TextUnmarshaler], or pointers
// to those, which stay nil without the argument. Fields of embedded structs count,
// too. The order of the arguments does not matter; of two with the same key the first
// counts, as for [Args.Get].
//
// An argument without a field is an error unless IgnoreUnknown is true, which it may
// be anywhere in the list. All faults are reported at once, with
// [CodeInvalidEnvironment], and name CNI_ARGS, key and value.
func DecodeArgs[T any](args Args) (T, error) {
	var into T
	d := argsDecoder{fields: map[string]reflect.Value{}}
	if err := d.collect(reflect.ValueOf(&into).Elem()); err != nil {
		return into, Errorf(CodeInternal, "decode arguments into %T: %w", into, err)
	}
	d.decode(args)
	if len(d.faults) > 0 {
		return into, Errorf(CodeInvalidEnvironment, "invalid CNI_ARGS: %s", strings.Join(d.faults, "; "))
	}
	return into, nil
}

type argsDecoder struct {
	fields map[string]reflect.Value
	faults []string
}

// collect finds the fields of a struct by the keys that they take.
func (d *argsDecoder) collect(v reflect.Value) error {
	if v.Kind() != reflect.Struct {
		return fmt.Errorf("it is no struct")
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, tagged := field.Tag.Lookup("cni")
		switch {
		case key == "-":
		case field.Anonymous && !tagged && field.Type.Kind() == reflect.Struct:
			if err := d.collect(v.Field(i)); err != nil {
				return err
			}
		case !field.IsExported():
		case !decodable(field.Type):
			return fmt.Errorf("field %s is of type %v, which no argument is", field.Name, field.Type)
		case tagged:
			d.fields[key] = v.Field(i)
		default:
			d.fields[field.Name] = v.Field(i)
		}
	}
	return nil
}

func decodable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

func (d *argsDecoder) decode(args Args) {
	lenient := d.lenient(args)
	seen := map[string]bool{}
	for _, arg := range args {
		field, known := d.fields[arg.Key]
		switch {
		case seen[arg.Key]:
		case known:
			if err := setText(field, arg.Value); err != nil {
				d.fault(arg, err.Error())
			}
		case arg.Key != ignoreUnknown && !lenient:
			d.fault(arg, "is unknown to this plugin; leave it out, or add "+ignoreUnknown+"=true")
		}
		seen[arg.Key] = true
	}
}

// lenient says whether unknown arguments are ignored.
func (d *argsDecoder) lenient(args Args) bool {
	value, ok := args.Get(ignoreUnknown)
	if !ok {
		return false
	}
	lenient, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		d.fault(Arg{ignoreUnknown, value}, "is not true or false")
	}
	return lenient
}

func (d *argsDecoder) fault(arg Arg, reason string) {
	d.faults = append(d.faults, fmt.Sprintf("%s=%q: %s", arg.Key, shorten(arg.Value, 200), reason))
}

func setText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return fmt.Errorf("is not true or false")
		}
		v.SetBool(b)
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("is not a whole number (%v)", v.Kind())
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("is not a whole number (%v)", v.Kind())
		}
		v.SetUint(n)
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("is not a number")
		}
		v.SetFloat(n)
	}
	return nil
}
