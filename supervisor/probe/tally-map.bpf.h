/* tally-map.bpf.h - the counts of all threads, by place: of the program that
 * counts calls, and of others that are loaded with the same map (bpfload_with).
 */
#ifndef SMCO_TALLY_MAP_BPF_H
#define SMCO_TALLY_MAP_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "supervisor/probe/tally-bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TALLY_MAX_THREADS);
	__type(key, __u32);
	__type(value, struct tally_counts);
} tallies SEC(".maps");

#endif
