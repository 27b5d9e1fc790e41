/* Programs with all that compilers and object files have and that a linker must bring along. */
#include "bpf.h"

enum { MAP_ARRAY_OF_MAPS = 12 };

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SEC(".maps");

struct cell {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} cell SEC(".maps");

struct {
	UINT(type, MAP_ARRAY_OF_MAPS);
	UINT(max_entries, 2);
	TYPE(key, u32);
	VALUES(values, struct cell);
} cells SEC(".maps") = { .values = { [1] = &cell } };

int leaf_xdp(struct xdp_md *ctx);
int leaf_tc(struct __sk_buff *ctx);

PROG_ARRAY(leaves_xdp, struct xdp_md, 1, leaf_xdp);
PROG_ARRAY(leaves_tc, struct __sk_buff, 1, leaf_tc);

const volatile u32 factor = 3;
static u64 total = 17;
static u32 rounds;

/* Of the kernel: a variable of its configuration, a symbol, functions, and the place of a field in a struct. */
extern int LINUX_KERNEL_VERSION __attribute__((section(".kconfig")));
extern void bpf_prog_put __attribute__((section(".ksyms")));
extern void no_such_symbol __attribute__((section(".ksyms"), weak));
extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms")));
extern void bpf_rcu_read_unlock(void) __attribute__((section(".ksyms")));

struct net_device {
	unsigned int mtu;
} __attribute__((preserve_access_index));

static void count(u32 which, u64 by)
{
	u64 *value = map_lookup_elem(&counts, &which);

	if (value)
		*value += by;
}

/* A table on the stack, reached by an index that is not known. */
static NOINLINE u32 table(u32 seed)
{
	u32 values[24];

	for (u32 i = 0; i < 24; i++)
		values[i] = i * factor + seed;
	return values[seed & 15] ^ values[(seed >> 8) & 7];
}

struct sum {
	u64 at, sum;
};

static int add(u32 i, struct sum *s)
{
	s->sum += s->at * i;
	return s->at++ > 20;
}

static u64 looped(u32 seed)
{
	struct sum s = { seed & 7, 0 };

	loop(10, add, &s, 0);
	return s.sum;
}

NOINLINE int shared(u32 a, u32 b)
{
	rounds++;
	return a * 31 + table(b);
}

static u32 inner(u32 key)
{
	u32 zero = 0;
	void *map = map_lookup_elem(&cells, &key);
	u64 *value;

	if (!map)
		return 1;
	value = map_lookup_elem(map, &zero);
	if (!value)
		return 2;
	return *value += 5;
}

static u32 kernel(void)
{
	u32 sum = LINUX_KERNEL_VERSION >> 16;

	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	if ((u64)&bpf_prog_put > 1ULL << 63)
		sum += 100;
	if (&no_such_symbol)
		sum += 1000;
	return sum + (u32)__builtin_preserve_field_info(((struct net_device *)0)->mtu, 0); /* its offset */
}

static u32 work(u8 *data, u8 *end, u32 seed)
{
	u32 sum = seed;

	for (int i = 0; i < 32; i++) {
		if (data + i + 1 > end)
			break;
		sum = sum * 33 + data[i];
	}
	if (data + 20 <= end) {
		data[15] = sum;
		switch (data[16] & 7) {
		case 0: sum ^= 0x1234; break;
		case 1: sum += looped(sum); break;
		case 2: sum -= table(sum); break;
		case 3: count(3, sum); break;
		case 5: sum = shared(sum, 5); break;
		default: sum += inner(sum & 1);
		}
	}
	count(sum & 15, sum);
	total += shared(sum, total);
	return sum + table(sum) + looped(sum) + inner(1);
}

SEC("xdp")
int all_xdp(struct xdp_md *ctx)
{
	u32 sum = work((void *)(u64)ctx->data, (void *)(u64)ctx->data_end, ctx->ingress_ifindex);

	return sum & 1 ? XDP_PASS : sum & 2 ? XDP_DROP : XDP_TX;
}

SEC("tc")
int all_tc(struct __sk_buff *ctx)
{
	u32 sum = work((void *)(u64)ctx->data, (void *)(u64)ctx->data_end, ctx->ifindex);

	return sum & 1 ? TC_OK : sum & 2 ? TC_SHOT : TC_NEXT;
}

SEC("xdp")
int kernel_xdp(struct xdp_md *ctx)
{
	count(0, kernel());
	return kernel();
}

SEC("tc")
int kernel_tc(struct __sk_buff *ctx)
{
	count(0, kernel());
	return kernel();
}

SEC("xdp")
int leaf_xdp(struct xdp_md *ctx)
{
	count(1, factor);
	return XDP_TX;
}

SEC("tc")
int leaf_tc(struct __sk_buff *ctx)
{
	count(1, factor);
	return TC_SHOT;
}

/* Calls a leaf for short packets; there is nothing at index 0. */
SEC("xdp")
int tail_xdp(struct xdp_md *ctx)
{
	tail_call(ctx, &leaves_xdp, ctx->data_end - ctx->data < 100);
	count(2, 1);
	return XDP_PASS;
}

SEC("tc")
int tail_tc(struct __sk_buff *ctx)
{
	tail_call(ctx, &leaves_tc, ctx->len < 100);
	count(2, 1);
	return TC_OK;
}

char _license[] SEC("license") = "GPL";
