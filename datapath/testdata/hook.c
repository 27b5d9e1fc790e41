/* Hooks for XDP and TC, with names that entry.c has too. */
#include "bpf.h"

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SEC(".maps");

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} percpu SEC(".maps");

const volatile u32 limit = 100; /* length of packets, in bytes, from which on they are dropped */
u64 runs;
static u64 seen[4];
u32 step = 1000;

static NOINLINE void count(u32 which, u64 by)
{
	u64 *value = map_lookup_elem(&counts, &which);

	if (value)
		*value += by;
}

/* Another function of a name that entry.c has. */
NOINLINE int mix(u32 a, u32 b)
{
	return a * 7 + b + step;
}

static __attribute__((always_inline)) u32 note(u32 which, u32 length)
{
	u32 zero = 0;
	u64 *value = map_lookup_elem(&percpu, &zero);

	if (value)
		*value += length;
	seen[which & 3]++;
	count(which, mix(length, which));
	return ++runs;
}

SEC("xdp")
int pre_xdp(struct xdp_md *ctx)
{
	u32 length = ctx->data_end - ctx->data;

	note(0, length);
	return length >= limit ? XDP_DROP : PROCEED;
}

SEC("xdp")
int post_xdp(struct xdp_md *ctx, u32 verdict)
{
	note(1, verdict);
	return verdict == XDP_PASS ? XDP_TX : PROCEED;
}

SEC("xdp")
int observe_xdp(struct xdp_md *ctx, u32 verdict)
{
	static const char format[] = "verdict %d"; /* a constant with an address */
	volatile char copy[sizeof(format)];

	for (u32 i = 0; i < sizeof(format); i++)
		copy[i] = format[i];
	note(2, verdict + copy[0]);
	return 0;
}

SEC("tc")
int pre_tc(struct __sk_buff *ctx)
{
	note(0, ctx->len);
	return ctx->len >= limit ? TC_SHOT : PROCEED;
}

SEC("tc")
int post_tc(struct __sk_buff *ctx, u32 verdict)
{
	note(1, verdict);
	return verdict == XDP_PASS ? 7 : PROCEED;
}

SEC("tc")
int observe_tc(struct __sk_buff *ctx, u32 verdict)
{
	note(2, verdict);
	return 0;
}

/* A hook that goes on in another program. */
SEC("xdp") int tail_xdp(struct xdp_md *ctx);
SEC("tc") int tail_tc(struct __sk_buff *ctx);

PROG_ARRAY(jump_xdp, struct xdp_md, 0, tail_xdp);
PROG_ARRAY(jump_tc, struct __sk_buff, 0, tail_tc);

SEC("xdp")
int jumping_xdp(struct xdp_md *ctx)
{
	tail_call(ctx, &jump_xdp, 0);
	return XDP_DROP;
}

SEC("xdp")
int tail_xdp(struct xdp_md *ctx)
{
	note(3, 0);
	return PROCEED;
}

SEC("tc")
int jumping_tc(struct __sk_buff *ctx)
{
	tail_call(ctx, &jump_tc, 0);
	return TC_SHOT;
}

SEC("tc")
int tail_tc(struct __sk_buff *ctx)
{
	note(3, 0);
	return PROCEED;
}

char _license[] SEC("license") = "MIT";
