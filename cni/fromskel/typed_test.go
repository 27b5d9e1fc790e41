package fromskel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cnikit/cnikit/cni"
)

// typed is the configuration of the subject as a cni.Plugin has it.
type typed struct {
	Do string `json:"do"`
}

// typedSubject behaves like the callbacks, as far as that does not depend on what
// they print.
func typedSubject() cni.Plugin[typed] {
	fn := func(_ context.Context, r *cni.Request[typed]) error {
		fmt.Fprintln(os.Stderr, "ran", r.Command)
		return r.Config.fail()
	}
	return cni.Plugin[typed]{
		Type: "subject", About: "about",
		Add: func(ctx context.Context, r *cni.Request[typed]) (*cni.Result, error) {
			if err := fn(ctx, r); err != nil {
				return nil, err
			}
			return r.Config.result(r.PrevResult)
		},
		Del: fn, Check: fn, Status: fn, GC: fn,
		AllowHostNetNS: os.Getenv("CNI_NETNS_OVERRIDE") == "1",
	}
}

func (c typed) result(prev *cni.Result) (*cni.Result, error) {
	switch {
	case c.Do == "no result":
		return nil, nil
	case c.Do == "parse prevResult" && prev != nil:
		return prev, nil
	case strings.HasPrefix(c.Do, "print "):
		fmt.Println("text")
	}
	return cni.FromTypes(subjectResult())
}

func (c typed) fail() error {
	switch c.Do {
	case "fail":
		return errors.New("failed")
	case "fail with EBUSY":
		return fmt.Errorf("set up: %w", syscall.EBUSY)
	case "fail with ENOSPC":
		return fmt.Errorf("set up: %w", syscall.ENOSPC)
	case "fail with a wrapped code 11":
		return fmt.Errorf("set up: %w", cni.Errorf(cni.CodeTryAgain, "failed"))
	case "panic":
		panic("panicked")
	}
	if number, ok := strings.CutPrefix(c.Do, "fail with code "); ok {
		code, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return err
		}
		return cni.Errorf(cni.Code(code), "failed")
	}
	return nil
}
