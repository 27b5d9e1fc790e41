/* Programs that use what the kernel offers beyond maps and helpers, one feature each. All are run alone, and next to each other. */
#include "bpf.h"

enum { MAP_LRU_HASH = 9, MAP_LPM_TRIE = 11, MAP_PERCPU_HASH = 5, MAP_RINGBUF = 27, NO_PREALLOC = 1 };

static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const skb_load_bytes)(void *ctx, u32 offset, void *to, u32 length) = (void *)26;
static long (*const xdp_load_bytes)(void *ctx, u32 offset, void *to, u32 length) = (void *)189;
static long (*const spin_lock)(void *lock) = (void *)93;
static long (*const spin_unlock)(void *lock) = (void *)94;
static long (*const for_each_map_elem)(void *map, void *callback, void *data, u64 flags) = (void *)164;
static long (*const print_to)(char *to, u32 size, const char *format, u64 *values, u32 length) = (void *)165;
static long (*const timer_init)(void *timer, void *map, u64 flags) = (void *)169;
static long (*const timer_set_callback)(void *timer, void *callback) = (void *)170;
static long (*const timer_start)(void *timer, u64 after, u64 flags) = (void *)171;
static long (*const dynptr_from_mem)(void *data, u32 size, u64 flags, void *dynptr) = (void *)197;
static long (*const dynptr_read)(void *to, u32 length, const void *dynptr, u32 offset, u64 flags) = (void *)201;

#define KSYM extern __attribute__((section(".ksyms")))

struct bpf_dynptr {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
struct bpf_spin_lock {
	u32 value;
};
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

KSYM int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *dynptr);
KSYM int bpf_dynptr_from_xdp(struct xdp_md *xdp, u64 flags, struct bpf_dynptr *dynptr);
KSYM int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end);
KSYM int *bpf_iter_num_next(struct bpf_iter_num *it);
KSYM void bpf_iter_num_destroy(struct bpf_iter_num *it);

struct locked {
	struct bpf_spin_lock lock;
	u32 runs;
	u64 sum;
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct locked);
} locks SEC(".maps");

struct timed {
	struct bpf_timer timer;
	u64 runs;
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct timed);
} timers SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} sums SEC(".maps");

struct prefix {
	u32 length, address;
};

struct {
	UINT(type, MAP_LPM_TRIE);
	UINT(max_entries, 16);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u32);
} prefixes SEC(".maps");

struct flow {
	u32 from, to;
	u16 ports[2];
	u32 protocol;
};

struct {
	UINT(type, MAP_LRU_HASH);
	UINT(max_entries, 256);
	TYPE(key, struct flow);
	TYPE(value, u64);
} flows SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_HASH);
	UINT(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u64);
} protocols SEC(".maps");

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, 4096);
} events SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, char[64]);
} texts SEC(".maps");

const volatile u32 blocked = 7; /* .rodata, a port */
static const char format[] = "length %d of %x";

static u32 add(u32 which, u64 by)
{
	u64 *sum = map_lookup_elem(&sums, &which);

	return sum ? *sum += by : 0;
}

struct packet {
	void *ctx;
	u8 *data, *end;
	int tc;
};

static __attribute__((always_inline)) long load(struct packet *p, void *to, u32 length)
{
	return p->tc ? skb_load_bytes(p->ctx, 0, to, length) : xdp_load_bytes(p->ctx, 0, to, length);
}

/* A firewall: what a packet says, a longest prefix, a flow, an event. */
static __attribute__((always_inline)) u32 firewall(struct packet *p)
{
	struct flow flow = {};
	struct prefix prefix = {.length = 32};
	u64 one = 1, *seen;
	u32 allowed = 1, *known, *event;

	if (p->data + 42 > p->end || p->data[12] != 8 || p->data[13])
		return 1;
	flow.from = *(u32 *)(p->data + 26);
	flow.to = *(u32 *)(p->data + 30);
	flow.protocol = p->data[23];
	if (flow.protocol == 6 || flow.protocol == 17) {
		flow.ports[0] = *(u16 *)(p->data + 34);
		flow.ports[1] = *(u16 *)(p->data + 36);
	}
	prefix.address = flow.from;
	known = map_lookup_elem(&prefixes, &prefix);
	if (!known) {
		prefix.length = 24;
		map_update_elem(&prefixes, &prefix, &allowed, 0);
	}
	seen = map_lookup_elem(&flows, &flow);
	if (seen)
		__sync_fetch_and_add(seen, 1);
	else
		map_update_elem(&flows, &flow, &one, 0);
	seen = map_lookup_elem(&protocols, &flow.protocol);
	if (seen)
		++*seen;
	else
		map_update_elem(&protocols, &flow.protocol, &one, 0);
	event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		*event = flow.to;
		ringbuf_submit(event, 0);
	}
	return flow.ports[1] == blocked ? 2 : add(0, flow.ports[1]);
}

/* Bytes of the packet in an array on the stack that nothing else has written. */
static __attribute__((always_inline)) u32 bytes(struct packet *p)
{
	u8 first[40];

	return load(p, first, sizeof(first)) ? 3 : add(1, first[7] * 31 + first[39]);
}

static u64 visit(void *map, u32 *key, u64 *value, u64 *total)
{
	*total += *value + *key;
	return 0;
}

/* Loops by iterators, one in another, and by callbacks. */
static __attribute__((always_inline)) u32 loops(struct packet *p)
{
	struct bpf_iter_num outer, inner;
	u64 total = 0;
	int *i, *j;

	bpf_iter_num_new(&outer, 0, 20);
	while ((i = bpf_iter_num_next(&outer))) {
		bpf_iter_num_new(&inner, 0, *i & 3);
		while ((j = bpf_iter_num_next(&inner)))
			add(2, 3);
		bpf_iter_num_destroy(&inner);
	}
	bpf_iter_num_destroy(&outer);
	for_each_map_elem(&sums, visit, &total, 0);
	return add(3, total + p->tc);
}

static __attribute__((always_inline)) u32 lock(struct packet *p)
{
	u32 zero = 0, runs;
	struct locked *l = map_lookup_elem(&locks, &zero);

	if (!l)
		return 0;
	spin_lock(&l->lock);
	runs = ++l->runs;
	l->sum += runs;
	spin_unlock(&l->lock);
	return runs;
}

static int fired(void *map, u32 *key, struct timed *value)
{
	volatile u8 much[400]; /* with a stack of its own */

	much[*key & 7] = 1;
	return much[0] & 0;
}

static __attribute__((always_inline)) u32 timer(struct packet *p)
{
	volatile u8 much[160];
	u32 zero = 0;
	struct timed *t = map_lookup_elem(&timers, &zero);

	if (!t)
		return 0;
	much[0] = ++t->runs;
	timer_init(&t->timer, &timers, 1 /* CLOCK_MONOTONIC */);
	timer_set_callback(&t->timer, fired);
	timer_start(&t->timer, 1ULL << 50, 0);
	return much[0];
}

/* A text made of a format in .rodata, and what a dynptr finds in it. */
static __attribute__((always_inline)) u32 text(struct packet *p)
{
	u64 values[] = {p->end - p->data, 0xabc};
	struct bpf_dynptr dynptr;
	u32 zero = 0, found = 0;
	char *to = map_lookup_elem(&texts, &zero);

	if (!to)
		return 0;
	print_to(to, 64, format, values, sizeof(values));
	dynptr_from_mem(to, 64, 0, &dynptr);
	dynptr_read(&found, sizeof(found), &dynptr, 7, 0);
	return add(4, found);
}

static NOINLINE int xdp_dynptr(struct xdp_md *ctx, struct bpf_dynptr *dynptr)
{
	return bpf_dynptr_from_xdp(ctx, 0, dynptr);
}

static NOINLINE int tc_dynptr(struct __sk_buff *ctx, struct bpf_dynptr *dynptr)
{
	return bpf_dynptr_from_skb(ctx, 0, dynptr);
}

/* A dynptr of a packet, which a function makes in its caller's stack. */
static __attribute__((always_inline)) u32 dynptr(struct packet *p)
{
	struct bpf_dynptr dynptr;
	u32 word = 0;

	if (p->tc ? tc_dynptr(p->ctx, &dynptr) : xdp_dynptr(p->ctx, &dynptr))
		return 0;
	dynptr_read(&word, sizeof(word), &dynptr, 16, 0);
	return add(5, word);
}

/* The first bit of what a feature says decides. */
#define FEATURE(name) \
	SEC("xdp") \
	int name##_xdp(struct xdp_md *ctx) \
	{ \
		struct packet p = {ctx, (u8 *)(long)ctx->data, (u8 *)(long)ctx->data_end, 0}; \
		return name(&p) & 1 ? PROCEED : XDP_PASS; \
	} \
	SEC("tc") \
	int name##_tc(struct __sk_buff *ctx) \
	{ \
		struct packet p = {ctx, (u8 *)(long)ctx->data, (u8 *)(long)ctx->data_end, 1}; \
		return name(&p) & 1 ? PROCEED : TC_OK; \
	}

FEATURE(firewall)
FEATURE(bytes)
FEATURE(loops)
FEATURE(lock)
FEATURE(timer)
FEATURE(text)
FEATURE(dynptr)

char _license[] SEC("license") = "GPL";
