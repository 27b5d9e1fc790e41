package vxlan

import "github.com/cnikit/cnikit/internal/nl"

// Writes is the number of requests that the backend has sent so far.
func (b *Backend) Writes() uint64 { return b.conn().Writes() }

func (b *Backend) conn() *nl.Conn {
	conn, err := b.kernel.connect()
	if err != nil {
		panic(err)
	}
	return conn
}
