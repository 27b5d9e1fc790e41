/* An XDP and a TC program with all that compilers make of C: maps, constants, static data, functions, loops, tail calls. */
#include "bpf.h"

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SEC(".maps");

struct flow {
	u32 length;
	u16 kind;
	u8 first, last;
};

struct {
	UINT(type, MAP_HASH);
	UINT(max_entries, 64);
	TYPE(key, struct flow);
	TYPE(value, u64);
} flows SEC(".maps");

const volatile u32 verdict = XDP_PASS; /* .rodata, set before loading */
u64 runs;                              /* .bss */
u32 step = 3;                          /* .data */

static NOINLINE void count(u32 which, u64 by)
{
	u64 *value = map_lookup_elem(&counts, &which);

	if (value)
		__sync_fetch_and_add(value, by);
}

/* A function with linkage, which the verifier checks by itself. */
NOINLINE int mix(u32 a, u32 b)
{
	u32 table[4] = {a, b, a ^ b, a + b};

	return table[(a + b) & 3] * step;
}

static int add(u32 i, u64 *sum)
{
	*sum += i + step;
	return 0;
}

static NOINLINE u32 sum_bytes(u8 *data, u8 *end)
{
	u32 sum = 0;

#pragma clang loop unroll(disable)
	for (int i = 0; i < 32; i++) {
		if (data + i + 1 > end)
			break;
		sum = sum * 31 + data[i];
	}
	return sum;
}

static __attribute__((always_inline)) u32 work(u8 *data, u8 *end)
{
	struct flow flow = {.length = end - data, .kind = step};
	u64 one = 1, sum = 0, *seen;

	if (data + 14 > end)
		return 0;
	flow.first = data[0];
	flow.last = data[13];
	seen = map_lookup_elem(&flows, &flow);
	if (seen)
		(*seen)++;
	else
		map_update_elem(&flows, &flow, &one, 0);
	loop(4, add, &sum, 0);
	count(0, 1);
	count(1, sum);
	runs++;
	return mix(sum_bytes(data, end), sum);
}

SEC("xdp")
int entry_xdp(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end;
	u32 result = work(data, end);

	count(2, result & 0xff);
	if (result == 1)
		return XDP_DROP;
	return verdict;
}

SEC("tc")
int entry_tc(struct __sk_buff *ctx)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end;
	u32 result = work(data, end);

	count(2, result & 0xff);
	ctx->mark = result;
	if (result == 1)
		return TC_SHOT;
	return verdict;
}

/* Programs that call others: the first byte of the packet picks one, or none. */
SEC("xdp") int called_xdp(struct xdp_md *ctx);
SEC("tc") int called_tc(struct __sk_buff *ctx);

PROG_ARRAY(jump_xdp, struct xdp_md, 1, called_xdp);
PROG_ARRAY(jump_tc, struct __sk_buff, 1, called_tc);

static NOINLINE u32 first_byte(u8 *data, u8 *end)
{
	count(3, 1);
	return data + 1 > end ? 0 : data[0];
}

SEC("xdp")
int calling_xdp(struct xdp_md *ctx)
{
	tail_call(ctx, &jump_xdp, first_byte((u8 *)(long)ctx->data, (u8 *)(long)ctx->data_end));
	return verdict;
}

SEC("xdp")
int called_xdp(struct xdp_md *ctx)
{
	count(0, 100);
	return XDP_DROP;
}

SEC("tc")
int calling_tc(struct __sk_buff *ctx)
{
	tail_call(ctx, &jump_tc, first_byte((u8 *)(long)ctx->data, (u8 *)(long)ctx->data_end));
	return verdict;
}

SEC("tc")
int called_tc(struct __sk_buff *ctx)
{
	count(0, 100);
	return TC_OK;
}

char _license[] SEC("license") = "Dual MIT/GPL";
