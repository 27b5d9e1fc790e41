// Command pause is what a pod's sandbox runs: it does nothing until it is told to end,
// and reaps the processes that a pod's containers leave to it where they share its PID
// namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Signals that find a channel full are lost: those to end have one of their own.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	reap() // nobody was told of those that ended before
	for {
		select {
		case <-end:
			return
		case <-child:
			reap()
		}
	}
}

// reap collects every child that has ended; one signal may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}
