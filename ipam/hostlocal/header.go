package hostlocal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// indexVersion changes with the layout of the index. One of another version, older or
// newer, is ignored and replaced.
const indexVersion = 1

// header is page 0 of the index: what makes the other pages worth reading.
//
// The index is valid when it was written since the machine was started, and the
// directory's time of last change is the stamp. Whoever maintains the index sets that
// time, with the lock held, to another random time in the past after each change, and
// writes the last of them here when the pages are written; everybody else's creating,
// renaming and removing sets it to the present. So the comparison is exact, whatever the
// file system's granularity of time, and a call that was cut short leaves no valid index.
// Only a backup that is put back with its time may, on a file system that keeps seconds,
// have the stamp by chance: one in 1,800 does.
type header struct {
	Magic    [16]byte
	Version  uint32
	Sum      uint32 // of the encoded header, itself taken as zero
	Boot     [40]byte
	Sec      int64 // the stamp, in seconds and nanoseconds
	Nsec     int64
	Revisit  int64 // when the first of the young empty files is torn, in nanoseconds; 0: there are none
	Entries  uint64
	Chunks   uint64
	LeasePgs uint32
	ChunkPgs uint32
}

var magic = [16]byte{'c', 'n', 'i', 'k', 'i', 't', ' ', 'l', 'e', 'a', 's', 'e', 's', '\r', '\n', 0}

// headerSize is the length of an encoded header.
const headerSize = 16 + 4 + 4 + 40 + 8 + 8 + 8 + 8 + 8 + 4 + 4

// maxPages bounds a table that is believed: two hundred million leases.
const maxPages = 1 << 22

func (h header) encode() []byte {
	h.Sum = 0
	b, _ := binary.Append(nil, binary.LittleEndian, h) // a fixed size cannot fail
	binary.LittleEndian.PutUint32(b[20:], crc32.ChecksumIEEE(b))
	return b
}

func decodeHeader(b []byte) (h header, err error) {
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return header{}, fmt.Errorf("header: %w: %w", errDamaged, err)
	}
	if h.Magic != magic || h.Version != indexVersion {
		return header{}, fmt.Errorf("header of another format or version: %w", errDamaged)
	}
	if !bytes.Equal(h.encode(), b[:headerSize]) {
		return header{}, fmt.Errorf("header's checksum: %w", errDamaged)
	}
	plausible := func(pages uint32, n uint64, size int) bool {
		return pages > 0 && pages <= maxPages && n <= uint64(pages)*uint64(slots(size))
	}
	if !plausible(h.LeasePgs, h.Entries, entrySize) || !plausible(h.ChunkPgs, h.Chunks, chunkSize) {
		return header{}, fmt.Errorf("header's sizes: %w", errDamaged)
	}
	return h, nil
}

func bootOf(id string) (b [40]byte) {
	copy(b[:], id)
	return b
}

func (h *header) stamp() time.Time { return time.Unix(h.Sec, h.Nsec) }

func (h *header) setStamp(at time.Time) { h.Sec, h.Nsec = at.Unix(), int64(at.Nanosecond()) }

// due reports that an empty file that was young when it was seen is so no more; a clock
// that was set back makes it so, too.
func (h *header) due(now time.Time) bool {
	if h.Revisit == 0 {
		return false
	}
	torn := time.Unix(0, h.Revisit)
	return !now.Before(torn) || now.Before(torn.Add(-2*tornAge))
}
