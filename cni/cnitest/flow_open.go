package cnitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// OpenUDP prepares a UDP echo between two namespaces: the server listens at an address
// of its own, the client sends one datagram each interval. Run or Close it.
func OpenUDP(ctx context.Context, client, server *Namespace, at netip.Addr, interval time.Duration) (*Flow, error) {
	var listener net.PacketConn
	err := server.Do(func() (err error) {
		listener, err = (&net.ListenConfig{}).ListenPacket(ctx, "udp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open UDP echo server in %s: %w", server.name, err)
	}
	conn, err := client.dial(ctx, "udp", listener.LocalAddr())
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	closeBoth := func() { _, _ = conn.Close(), listener.Close() }
	return newFlow(conn, interval, func() { echoDatagrams(listener) }, closeBoth), nil
}

// OpenTCP opens a TCP stream between two namespaces: the server listens at an address
// of its own and echoes, the client writes one message each interval. Run or Close it.
func OpenTCP(ctx context.Context, client, server *Namespace, at netip.Addr, interval time.Duration) (*Flow, error) {
	config := net.ListenConfig{KeepAlive: -1}
	config.SetMultipathTCP(false)
	var listener net.Listener
	err := server.Do(func() (err error) {
		listener, err = config.Listen(ctx, "tcp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open TCP echo server in %s: %w", server.name, err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := client.dial(ctx, "tcp", listener.Addr())
	if err != nil {
		return nil, err
	}
	accepted, err := listener.Accept() // the connection is established: it waits there
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("accept TCP stream in %s: %w", server.name, err)
	}
	closeBoth := func() { _, _ = conn.Close(), accepted.Close() }
	return newFlow(conn, interval, func() { _, _ = io.Copy(accepted, accepted) }, closeBoth), nil
}

func newFlow(conn net.Conn, interval time.Duration, serve, closeBoth func()) *Flow {
	return &Flow{interval: interval, conn: conn, serve: serve, close: closeBoth, waiting: map[uint64]bool{}}
}

// dial connects from inside the namespace.
func (n *Namespace) dial(ctx context.Context, network string, to net.Addr) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connecting, KeepAlive: -1}
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = dialer.DialContext(ctx, network, to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect from %s: %w", n.name, err)
	}
	return conn, nil
}

// echoDatagrams answers until the socket is closed.
func echoDatagrams(socket net.PacketConn) {
	buf := make([]byte, messageSize)
	for {
		size, from, err := socket.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = socket.WriteTo(buf[:size], from)
		}
	}
}
