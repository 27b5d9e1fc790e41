/* Programs that change where sockets of a cgroup lead, and that watch them. Ports are in network order, but for sk_lookup. */
#include "bpf.h"

enum { MAP_SOCKMAP = 15, ALLOW = 1 };

struct bpf_sock_addr {
	u32 user_family, user_ip4, user_ip6[4], user_port;
};
struct bpf_sock_ops {
	u32 op;
};
struct bpf_sk_lookup {
	u64 cookie;
	u32 family, protocol, remote_ip4, remote_ip6[4];
	u16 remote_port, zero;
	u32 local_ip4, local_ip6[4], local_port;
};

static long (*const sk_release)(void *sock) = (void *)86;
static long (*const sk_assign)(void *ctx, void *sock, u64 flags) = (void *)124;

struct {
	UINT(type, MAP_SOCKMAP);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} listener SEC(".maps");

const volatile u16 from, to;
u64 changed, seen[16];

static NOINLINE u32 redirect(u32 port)
{
	if (port != from)
		return port;
	changed++;
	return to;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	ctx->user_port = redirect(ctx->user_port);
	return ALLOW;
}

SEC("cgroup/bind4")
int bind4(struct bpf_sock_addr *ctx)
{
	ctx->user_port = redirect(ctx->user_port);
	return ALLOW;
}

SEC("sk_lookup")
int lookup(struct bpf_sk_lookup *ctx)
{
	u32 zero = 0;
	void *sock;

	if (redirect(ctx->local_port) == ctx->local_port)
		return ALLOW;
	sock = map_lookup_elem(&listener, &zero);
	if (sock) {
		sk_assign(ctx, sock, 0);
		sk_release(sock);
	}
	return ALLOW;
}

SEC("sockops")
int watch(struct bpf_sock_ops *ctx)
{
	seen[ctx->op & 15]++;
	return ALLOW;
}

SEC("cgroup_skb/egress")
int egress(struct __sk_buff *ctx)
{
	seen[0]++;
	seen[1] += ctx->len;
	return ALLOW;
}

char _license[] SEC("license") = "GPL";
