/* Stands in for libbpf's header where that is not installed: what the hooks of docs/datapath.md need of it. */
#pragma once

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, of) typeof(of) *name

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
