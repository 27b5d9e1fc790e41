package hostlocal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// pageSize is the unit in which the index is read and written, in bytes.
const pageSize = 4096

// errDamaged says that the index cannot be what was written. It never leaves the
// package: the index is dropped then, and built anew.
var errDamaged = errors.New("lease index is damaged")

// page is a part of the index. Its first four bytes are a checksum of its number and
// of the rest of it.
type page [pageSize]byte

func (p *page) sum(number uint32) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], number)
	return crc32.Update(crc32.Update(0, castagnoli, n[:]), castagnoli, p[4:])
}

func (p *page) seal(number uint32) { binary.LittleEndian.PutUint32(p[:4], p.sum(number)) }

func (p *page) sound(number uint32) bool {
	return binary.LittleEndian.Uint32(p[:4]) == p.sum(number)
}

// pages are the pages of one index, read when they are needed and written together.
type pages struct {
	file    handle // nil: the index is in memory, all of it
	loaded  map[uint32]*page
	changed map[uint32]bool
}

func newPages(file handle) *pages {
	return &pages{file: file, loaded: map[uint32]*page{}, changed: map[uint32]bool{}}
}

// get returns a page to look at.
func (ps *pages) get(number uint32) (*page, error) {
	if p := ps.loaded[number]; p != nil {
		return p, nil
	}
	p := new(page)
	if ps.file != nil {
		if _, err := ps.file.ReadAt(p[:], int64(number)*pageSize); err != nil {
			if errors.Is(err, io.EOF) {
				err = errDamaged
			}
			return nil, fmt.Errorf("read page %d: %w", number, err)
		}
		if !p.sound(number) {
			return nil, fmt.Errorf("page %d: %w", number, errDamaged)
		}
	}
	ps.loaded[number] = p
	return p, nil
}

// edit returns a page to change.
func (ps *pages) edit(number uint32) (*page, error) {
	p, err := ps.get(number)
	if err == nil {
		ps.changed[number] = true
	}
	return p, err
}

// flush writes the changed pages to the file.
func (ps *pages) flush() error {
	for number := range ps.changed {
		p := ps.loaded[number]
		p.seal(number)
		if _, err := ps.file.WriteAt(p[:], int64(number)*pageSize); err != nil {
			return fmt.Errorf("write page %d: %w", number, err)
		}
	}
	clear(ps.changed)
	return nil
}

// image returns the first n pages of an index in memory as the bytes of a file. Page 0
// is the header's and stays empty.
func (ps *pages) image(n uint32) []byte {
	out := make([]byte, int(n)*pageSize)
	var empty page
	for number := uint32(1); number < n; number++ {
		p := ps.loaded[number]
		if p == nil {
			p = &empty
		}
		p.seal(number)
		copy(out[int(number)*pageSize:], p[:])
	}
	return out
}
