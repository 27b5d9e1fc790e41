package hostlocal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// memFile is a file in memory, of a size that does not change.
type memFile struct {
	data   []byte
	reads  int
	writes int
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.reads++
	return bytes.NewReader(f.data).ReadAt(b, off)
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.writes++
	if off+int64(len(b)) > int64(len(f.data)) {
		return 0, io.ErrShortWrite
	}
	return copy(f.data[off:], b), nil
}

func (f *memFile) Sync() error  { return nil }
func (f *memFile) Close() error { return nil }

// reopen writes an index as a transaction does, and reads it again.
func reopen(t *testing.T, x *index, f *memFile) (*index, *memFile) {
	t.Helper()
	if x.inMemory() {
		f = &memFile{data: x.image()}
	} else {
		require.NoError(t, x.pages.flush())
		require.NoError(t, x.writeHeader())
	}
	x, err := openIndex(f)
	require.NoError(t, err)
	return x, f
}

// model is what an index must know, kept naively.
type model struct {
	leases map[netip.Addr]string
	rests  map[netip.Addr]time.Time
}

func (m *model) nextFree(first, last netip.Addr, rested time.Time) netip.Addr {
	for a := first; a.IsValid() && !last.Less(a); a = a.Next() {
		at, rests := m.rests[a]
		if _, taken := m.leases[a]; !taken && (rested.IsZero() || !rests || at.Before(rested)) {
			return a
		}
	}
	return netip.Addr{}
}

func (m *model) count(first, last netip.Addr) (n uint64) {
	for a := range m.leases {
		if !a.Less(first) && !last.Less(a) {
			n++
		}
	}
	return n
}

func (m *model) owned(container string) (addrs []netip.Addr) {
	for a, c := range m.leases {
		if c == container {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}

// The index answers random questions as naive maps do, read anew after every few
// changes, growing and shrinking.
func TestIndexAgainstMaps(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for seed := range uint64(testenv.Scale(t, 3)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := &model{map[netip.Addr]string{}, map[netip.Addr]time.Time{}}
		x, f := reopen(t, newIndex(0, 0), nil)
		now := start
		for step := range 4000 {
			now = now.Add(time.Second)
			addr := randomAddr(rnd)
			x = changeAtRandom(t, rnd, x, m, addr, now)
			if step%7 == 0 {
				x, f = reopen(t, x, f)
			}
			first, last := randomAddr(rnd), randomAddr(rnd)
			if last.Less(first) {
				first, last = last, first
			}
			if first.BitLen() != last.BitLen() {
				continue
			}
			requireSame(t, x, m, first, last, now, rnd)
		}
	}
}

func changeAtRandom(t *testing.T, rnd *rand.Rand, x *index, m *model, addr netip.Addr, now time.Time) *index {
	t.Helper()
	if x.crowded() {
		grown, err := x.grown(time.Time{})
		require.NoError(t, err)
		x = grown
	}
	container, taken := m.leases[addr]
	switch {
	case !taken && rnd.IntN(10) < 7:
		container = []string{"", "a", "b", fmt.Sprint("c", rnd.IntN(500))}[rnd.IntN(4)]
		require.NoError(t, x.take(addr, container, kindLease))
		m.leases[addr] = container
		before, err := x.rest(addr, time.Time{})
		require.NoError(t, err)
		require.True(t, before.Equal(m.rests[addr]))
		delete(m.rests, addr)
	case taken && rnd.IntN(10) < 4:
		require.NoError(t, x.release(addr, container))
		delete(m.leases, addr)
		_, err := x.rest(addr, now)
		require.NoError(t, err)
		m.rests[addr] = now
	}
	return x
}

func requireSame(t *testing.T, x *index, m *model, first, last netip.Addr, now time.Time, rnd *rand.Rand) {
	t.Helper()
	for _, rested := range []time.Time{{}, now.Add(-time.Duration(rnd.IntN(2000)) * time.Second)} {
		got, err := x.nextFree(first, last, rested, now)
		require.NoError(t, err)
		require.Equal(t, m.nextFree(first, last, rested), got, "next free from %s to %s", first, last)
	}
	n, err := x.chunks.count(numberOf(first), numberOf(last))
	require.NoError(t, err)
	require.Equal(t, m.count(first, last), n, "count from %s to %s", first, last)
	container := fmt.Sprint("c", rnd.IntN(500))
	addrs, err := x.owned(container)
	require.NoError(t, err)
	require.Equal(t, m.owned(container), addrs)
	_, taken := m.leases[first]
	has, err := x.has(first)
	require.NoError(t, err)
	require.Equal(t, taken, has)
}

// randomAddr is among few addresses, so that whole chunks fill, at the ends of the
// address space, or far from others.
func randomAddr(rnd *rand.Rand) netip.Addr {
	switch rnd.IntN(8) {
	case 0:
		return netip.AddrFrom4([4]byte{255, 255, 255, byte(rnd.IntN(256))})
	case 1:
		return netip.AddrFrom16([16]byte{0: 0xfd, 7: byte(rnd.IntN(3)), 15: byte(rnd.IntN(256))})
	case 2:
		return netip.AddrFrom16([16]byte{0: 0xfd, 4: byte(rnd.Uint32()), 8: byte(rnd.Uint32()), 12: byte(rnd.Uint32())})
	default:
		return netip.AddrFrom4([4]byte{10, 1, byte(rnd.IntN(3)), byte(rnd.IntN(256))})
	}
}

// What is written later lies where there is room, so what was there is still found when
// it is gone.
func TestIndexOfOneContainerWithManyLeases(t *testing.T) {
	x := newIndex(3000, 100)
	addr := netip.MustParseAddr("10.1.0.0")
	var all []netip.Addr
	for range 1500 {
		require.NoError(t, x.take(addr, "one", kindLease))
		all = append(all, addr)
		addr = addr.Next()
	}
	got, err := x.owned("one")
	require.NoError(t, err)
	require.Equal(t, all, got)
	for _, a := range all[:1400] {
		require.NoError(t, x.release(a, "one"))
	}
	got, err = x.owned("one")
	require.NoError(t, err)
	require.Equal(t, all[1400:], got)
	for _, a := range all[1400:] {
		require.NoError(t, x.release(a, "one"))
	}
	assert.Equal(t, x.image(), func() []byte { y := newIndex(3000, 100); y.header = x.header; return y.image() }(), "nothing is left")
}

// Full chunks are skipped at once: a /16 that is taken costs a few pages.
func TestIndexSkipsWhatIsFull(t *testing.T) {
	x := newIndex(70000, 300)
	addr := netip.MustParseAddr("10.1.0.0")
	for range 1 << 16 {
		require.NoError(t, x.take(addr, "", kindLease))
		addr = addr.Next()
	}
	x, f := reopen(t, x, nil)
	before := f.reads
	free, err := x.nextFree(netip.MustParseAddr("10.1.0.0"), netip.MustParseAddr("10.255.255.255"), time.Time{}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, "10.2.0.0", free.String())
	assert.LessOrEqual(t, f.reads-before, 6)
	free, err = x.nextFree(netip.MustParseAddr("10.1.0.0"), netip.MustParseAddr("10.1.255.255"), time.Time{}, time.Now())
	require.NoError(t, err)
	assert.False(t, free.IsValid())
	require.NoError(t, x.release(netip.MustParseAddr("10.1.77.5"), ""))
	free, err = x.nextFree(netip.MustParseAddr("10.1.0.0"), netip.MustParseAddr("10.1.255.255"), time.Time{}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, "10.1.77.5", free.String())
}

func TestIndexEndsOfTheAddressSpace(t *testing.T) {
	x := newIndex(10, 10)
	for _, text := range []string{"255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0.0.0.0", "::"} {
		addr := netip.MustParseAddr(text)
		require.NoError(t, x.take(addr, "a", kindLease))
		free, err := x.nextFree(addr, addr, time.Time{}, time.Now())
		require.NoError(t, err)
		assert.False(t, free.IsValid(), text)
		n, err := x.chunks.count(numberOf(addr), numberOf(addr))
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
	}
	addrs, err := x.owned("a")
	require.NoError(t, err)
	assert.Len(t, addrs, 4)
	require.ErrorIs(t, x.take(netip.MustParseAddr("::"), "a", kindLease), errDamaged)
	require.ErrorIs(t, x.release(netip.MustParseAddr("::1"), "a"), errDamaged)
	require.ErrorIs(t, x.release(netip.MustParseAddr("::"), "b"), errDamaged)
}

// Rests that nobody asks for any more are left behind when the index is made anew.
func TestIndexGrows(t *testing.T) {
	x := newIndex(0, 0)
	size := x.LeasePgs
	addr, at := netip.MustParseAddr("fd00::"), time.Unix(1000, 0)
	want := map[netip.Addr]bool{}
	for i := range 300 {
		if x.crowded() {
			grown, err := x.grown(time.Unix(2000, 0))
			require.NoError(t, err)
			x = grown
		}
		if i == 150 {
			at = time.Unix(3000, 0)
		}
		if i >= 150 {
			want[addr] = true
		}
		_, err := x.rest(addr, at)
		require.NoError(t, err)
		addr = addr.Next()
	}
	grown, err := x.grown(time.Unix(2000, 0))
	require.NoError(t, err)
	assert.Greater(t, grown.LeasePgs, size)
	n, oldest, err := grown.rests(netip.MustParseAddr("fd00::"), addr, time.Unix(0, 0), time.Unix(9000, 0))
	require.NoError(t, err)
	assert.EqualValues(t, len(want), n)
	assert.Equal(t, time.Unix(3000, 0), oldest)
	n, _, err = grown.rests(netip.MustParseAddr("fd00::"), addr, time.Unix(0, 0), time.Unix(2999, 0))
	require.NoError(t, err)
	assert.Zero(t, n, "a release in the future was before the clock was set back")
}

func TestHeader(t *testing.T) {
	x := newIndex(1, 1)
	x.Boot, x.Revisit = bootOf("0123"), 7
	x.setStamp(time.Unix(12, 34))
	b := x.encode()
	require.Len(t, b, headerSize)
	h, err := decodeHeader(b)
	require.NoError(t, err)
	assert.Equal(t, x.header, func() header { h.Sum = 0; return h }())
	assert.True(t, h.stamp().Equal(time.Unix(12, 34)))
	for i := range b {
		for _, flip := range []byte{1, 0x80} {
			bad := slices.Clone(b)
			bad[i] ^= flip
			_, err := decodeHeader(bad)
			require.ErrorIs(t, err, errDamaged, "byte %d", i)
		}
		_, err := decodeHeader(b[:i])
		require.ErrorIs(t, err, errDamaged)
	}
	for name, change := range map[string]func(*header){
		"older":    func(h *header) { h.Version = indexVersion - 1 },
		"newer":    func(h *header) { h.Version = indexVersion + 1 },
		"no pages": func(h *header) { h.LeasePgs = 0 },
		"too many": func(h *header) { h.ChunkPgs = maxPages + 1 },
		"too full": func(h *header) { h.Entries = 1 << 40 },
	} {
		h := x.header
		change(&h)
		_, err := decodeHeader(h.encode())
		require.ErrorIs(t, err, errDamaged, name)
	}
}

// Whatever is wrong with a page is noticed.
func TestDamagedPages(t *testing.T) {
	x := newIndex(1, 1)
	require.NoError(t, x.take(netip.MustParseAddr("10.1.0.2"), "a", kindLease))
	image := x.image()
	require.Len(t, image, 3*pageSize)
	for _, at := range []int{0, 4, slotsAt, pageSize / 2, pageSize - 1} {
		for page := 1; page <= 2; page++ {
			bad := slices.Clone(image)
			bad[page*pageSize+at] ^= 4
			y, err := openIndex(&memFile{data: bad})
			require.NoError(t, err)
			_, ownedErr := y.owned("a")
			_, hasErr := y.has(netip.MustParseAddr("10.1.0.2"))
			require.ErrorIs(t, errors.Join(ownedErr, hasErr), errDamaged, "page %d byte %d", page, at)
		}
	}
	swapped := slices.Concat(image[:pageSize], image[2*pageSize:], image[pageSize:2*pageSize])
	y, err := openIndex(&memFile{data: swapped})
	require.NoError(t, err)
	_, err = y.owned("a")
	require.ErrorIs(t, err, errDamaged, "pages that changed places")
	y, err = openIndex(&memFile{data: image[:2*pageSize+100]})
	require.NoError(t, err)
	_, err = y.has(netip.MustParseAddr("10.1.0.2"))
	require.ErrorIs(t, err, errDamaged, "cut off")
}

// FuzzIndex: no content of the file makes the index panic or run for ever, and none is
// too big for what the file has.
func FuzzIndex(f *testing.F) {
	x := newIndex(3, 3)
	for i, text := range []string{"10.1.0.2", "10.1.0.3", "fd00::2"} {
		addr := netip.MustParseAddr(text)
		if err := x.take(addr, fmt.Sprint("c", i%2), kindLease); err != nil {
			f.Fatal(err)
		}
	}
	if _, err := x.rest(netip.MustParseAddr("10.1.0.9"), time.Unix(1, 0)); err != nil {
		f.Fatal(err)
	}
	image := x.image()
	f.Add(uint32(0), []byte{})
	f.Add(uint32(4), []byte{1, 2, 3})
	f.Add(uint32(pageSize+4), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint32(2*pageSize+slotsAt), bytes.Repeat([]byte{0xff}, 64))
	f.Add(uint32(100), image[:200])
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		data := slices.Clone(image)
		copy(data[at%uint32(len(data)):], patch)
		y, err := openIndex(&memFile{data: data})
		if err != nil {
			y = &index{header: x.header, pages: newPages(&memFile{data: data})}
			y.layOut()
		}
		for n := uint32(1); n <= 2; n++ { // as if whoever damaged it had sealed it
			p := (*page)(data[n*pageSize:])
			p.seal(n)
		}
		exercise(y)
	})
}

// exercise calls everything, and ignores what is answered.
func exercise(x *index) {
	now := time.Unix(5, 0)
	for _, addr := range []netip.Addr{netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("fd00::2")} {
		_, _ = x.owned("c0")
		_, _ = x.earlier()
		_, _ = x.nextFree(addr, addr.Next(), now, now)
		_, _, _ = x.rests(addr, addr.Next(), now, now)
		_, _ = x.chunks.count(numberOf(addr), numberOf(addr.Next()))
		_, _ = x.rest(addr, now)
		if x.crowded() {
			if y, err := x.grown(now); err == nil {
				x = y
			}
		}
		_ = x.release(addr, "c0")
		_ = x.take(addr, "c1", kindLease)
	}
}

// Nothing depends on the order in which leases come: chunks and entries of the same
// content answer the same.
func TestIndexInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	leases := map[netip.Addr]string{}
	for range 2000 {
		leases[randomAddr(rnd)] = fmt.Sprint("c", rnd.IntN(50))
	}
	x, y := newIndex(2000, 2000), newIndex(2000, 2000)
	addrs := slices.Collect(maps.Keys(leases))
	for _, a := range addrs {
		require.NoError(t, x.take(a, leases[a], kindLease))
	}
	slices.Reverse(addrs)
	for _, a := range addrs {
		require.NoError(t, y.take(a, leases[a], kindLease))
	}
	for i := range 50 {
		a, err := x.owned(fmt.Sprint("c", i))
		require.NoError(t, err)
		b, err := y.owned(fmt.Sprint("c", i))
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
}
