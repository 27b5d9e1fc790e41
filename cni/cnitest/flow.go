package cnitest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// messageSize is the size of one message in bytes; it starts with its number.
	messageSize = 64
	// drain is how long [Flow.Run] waits for the last answers.
	drain = 5 * time.Second
	// connecting is how long a stream may take to be opened: the kernel repeats a request
	// that is lost after one second, and after two more.
	connecting = 30 * time.Second
)

// Flow sends numbered messages from one namespace to an echo server in another at a
// steady rate and keeps count of what comes back. Open one with [OpenUDP] or [OpenTCP],
// call Run once, and look at Report meanwhile from any goroutine. Flow shows whether
// traffic survives an event: start it before, end it after.
type Flow struct {
	interval time.Duration
	conn     net.Conn // the client's
	serve    func()   // echoes until the server's socket is closed
	close    func()

	mu      sync.Mutex
	report  FlowReport
	waiting map[uint64]bool // messages without an answer
	last    time.Time       // of the last answer
}

// FlowReport is what became of a flow's messages.
type FlowReport struct {
	Sent   int
	Back   int           // answered, each counted once
	MaxGap time.Duration // the longest time between two answers
	Err    error         // what ended a TCP stream early (a reset); nil for UDP
}

// Lost is the number of messages that were not answered (yet).
func (r FlowReport) Lost() int { return r.Sent - r.Back }

// String is the report on one line.
func (r FlowReport) String() string {
	text := fmt.Sprintf("%d sent, %d lost, longest gap %s", r.Sent, r.Lost(), r.MaxGap.Round(time.Millisecond))
	if r.Err != nil {
		text += ": " + r.Err.Error()
	}
	return text
}

// Run sends one message each interval until ctx ends, waits up to five seconds for the
// answers that are still missing, closes the flow and returns the final report. A TCP
// stream that breaks ends Run early. It runs goroutines and none is left when it
// returns.
func (f *Flow) Run(ctx context.Context) FlowReport {
	var workers sync.WaitGroup
	workers.Go(f.serve)
	broken := make(chan struct{})
	workers.Go(func() {
		defer close(broken)
		f.receive()
	})
	f.send(ctx, broken)
	f.await(broken)
	f.close()
	workers.Wait()
	return f.Report()
}

// Report is the count so far.
func (f *Flow) Report() FlowReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// Close ends a flow whose Run was never called.
func (f *Flow) Close() { f.close() }

// send writes a message each interval.
func (f *Flow) send(ctx context.Context, broken <-chan struct{}) {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for number := uint64(0); ; number++ {
		f.mu.Lock()
		f.report.Sent++
		f.waiting[number] = true
		f.mu.Unlock()
		if err := f.write(number); err != nil {
			f.fail(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-broken:
			return
		case <-tick.C:
		}
	}
}

// write sends one message. A UDP message that the kernel refuses is lost, no more; a
// stream that does not take one within the drain time is broken.
func (f *Flow) write(number uint64) error {
	message := make([]byte, messageSize)
	binary.BigEndian.PutUint64(message, number)
	if err := f.conn.SetWriteDeadline(time.Now().Add(drain)); err != nil {
		return err
	}
	_, err := f.conn.Write(message)
	if f.datagram() {
		return nil
	}
	return err
}

// receive counts answers until the connection is closed or breaks. An ICMP error on
// UDP says that a message was lost, and the next may not be.
func (f *Flow) receive() {
	message := make([]byte, messageSize)
	for {
		_, err := io.ReadFull(f.conn, message)
		switch {
		case err == nil:
			f.count(binary.BigEndian.Uint64(message))
		case errors.Is(err, net.ErrClosed):
			return
		case !f.datagram():
			f.fail(err)
			return
		}
	}
}

func (f *Flow) count(number uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !f.last.IsZero() {
		f.report.MaxGap = max(f.report.MaxGap, now.Sub(f.last))
	}
	f.last = now
	if f.waiting[number] {
		delete(f.waiting, number)
		f.report.Back++
	}
}

func (f *Flow) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report.Err == nil {
		f.report.Err = err
	}
}

// await waits until every message is answered or given up.
func (f *Flow) await(broken <-chan struct{}) {
	limit := time.NewTimer(drain)
	defer limit.Stop()
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for f.Report().Lost() > 0 {
		select {
		case <-limit.C:
			return
		case <-broken:
			return
		case <-tick.C:
		}
	}
}

func (f *Flow) datagram() bool {
	_, ok := f.conn.(*net.UDPConn)
	return ok
}
