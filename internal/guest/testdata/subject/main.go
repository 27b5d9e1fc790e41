// Command subject does in a guest what its first argument says.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "exit":
		status, _ := strconv.Atoi(os.Args[2])
		fmt.Println("leaving")
		os.Exit(status)
	case "panic":
		fmt.Println("about to crash")
		_ = os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
	case "hang":
		fmt.Println("hanging")
		time.Sleep(time.Hour)
	case "loud":
		loud()
	case "files":
		files()
	}
}

// loud writes every byte value and more than a port's buffers hold (a page), and ends by a signal.
func loud() {
	line := make([]byte, 256)
	for i := range line {
		line[i] = byte(i)
	}
	for range 128 {
		_, _ = os.Stdout.Write(line)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Minute)
}

// files answers with what it was given: files, arguments, environment, loaded modules.
func files() {
	given, err := os.ReadFile("/etc/given/deep")
	if err != nil {
		panic(err)
	}
	out := os.Getenv("CNIKIT_GUEST_OUT")
	_ = os.MkdirAll(filepath.Join(out, "sub"), 0o755)
	_ = os.WriteFile(filepath.Join(out, "sub", "copy"), given, 0o600)
	_ = os.WriteFile(filepath.Join(out, "empty"), nil, 0o600)
	modules, _ := os.ReadFile("/proc/modules")
	_ = os.WriteFile(filepath.Join(out, "modules"), modules, 0o600)
	fmt.Println(os.Args[2:], os.Getenv("GIVEN"), os.Getenv("CI"), os.Getenv("CNIKIT_GUEST"), os.Getpid())
}
