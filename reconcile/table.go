package reconcile

// A Target is one table of an engine. Only [*Table] implements it.
type Target interface {
	Name() string
	target()
}

// TableOptions configure a [Table]. The zero value is usable.
type TableOptions[K comparable, V any] struct {
	// Phase orders targets: applied in ascending, deleted in descending phase.
	Phase int
	// After names targets that must have converged, else this one waits as a whole. Their phase must not be higher.
	After []Target
	// Equal reports whether observed needs no change; default reflect.DeepEqual.
	Equal func(desired, observed V) bool
	// Format prints a key and its value in plans; default "key: value" by fmt.
	Format func(K, V) string
}

// A Table holds the wanted state of one [Store]. All methods are safe for concurrent use, return at once and wake the engine.
type Table[K comparable, V any] struct {
	name  string
	store Store[K, V]
	opts  TableOptions[K, V]
}

// NewTable returns an empty table that wants nothing and, until its first Replace, deletes nothing.
func NewTable[K comparable, V any](name string, s Store[K, V], o TableOptions[K, V]) *Table[K, V] {
	return &Table[K, V]{name: name, store: s, opts: o}
}

// Name returns the name given to NewTable.
func (t *Table[K, V]) Name() string { return t.name }

// Set wants key to be v. A value equal to the one already wanted changes nothing.
func (t *Table[K, V]) Set(key K, v V) {}

// Unset wants key to be absent.
func (t *Table[K, V]) Unset(key K) {}

// Replace gives the whole wanted state; keys not in desired are wanted absent. The first Replace marks the table as synced.
func (t *Table[K, V]) Replace(desired map[K]V) {}

// Synced reports whether Replace has been called.
func (t *Table[K, V]) Synced() bool { return false }

func (t *Table[K, V]) target() {}
