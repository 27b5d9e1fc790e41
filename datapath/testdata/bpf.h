/* What our test programs need of the kernel's interface (include/uapi/linux/bpf.h), and nothing else. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define NOINLINE __attribute__((noinline))

/* Fields of a map's definition, which the loader reads from BTF. */
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name
#define VALUES(name, type) typeof(type) *name[]

/* A PROG_ARRAY that begins with one program. */
#define PROG_ARRAY(name, context, index, program) \
	struct { \
		UINT(type, MAP_PROG_ARRAY); \
		UINT(max_entries, 4); \
		UINT(key_size, 4); \
		VALUES(values, int(context *)); \
	} name SEC(".maps") = {.values = {[index] = &program}}

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PROG_ARRAY = 3, MAP_PERCPU_ARRAY = 6 };
enum { XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3 };
enum { TC_NEXT = -1, TC_OK = 0, TC_SHOT = 2 };
enum { PROCEED = -1 };

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex, ifindex, tc_index, cb[5], hash,
		tc_classid, data, data_end;
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const trace_printk)(const char *format, u32 size, ...) = (void *)6;
static long (*const tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static long (*const loop)(u32 rounds, void *callback, void *data, u64 flags) = (void *)181;
