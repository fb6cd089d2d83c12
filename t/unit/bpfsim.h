/*
 * bpfsim.h - in place of libbpf's headers for BPF programs, so that a test can
 * include one and run it as it is, on CPUs and with a clock of its own. Include
 * it first, then the program, then define bpfsim_lookup(), update and delete
 * for its maps.
 */
#ifndef SMCO_BPFSIM_H
#define SMCO_BPFSIM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* Their own headers say nothing after that. */
#define __BPF_HELPERS__
#define __BPF_CORE_READ_H__
#define __BPF_TRACING_H__

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#undef __always_inline
#define __always_inline		      inline __attribute__((always_inline))
#define BPF_PROG(name, ...)	      name(__VA_ARGS__)
#define bpf_core_field_exists(field)  true
#define bpf_map_lookup_elem(map, key) bpfsim_lookup(map, key)
#define bpf_map_update_elem(map, ...) bpfsim_update(map, __VA_ARGS__)
#define bpf_map_delete_elem(map, key) bpfsim_delete(map, key)
#define bpf_ktime_get_ns()	      bpfsim_now_ns
#define bpf_get_smp_processor_id()    bpfsim_cpu
#define bpf_get_current_pid_tgid()    bpfsim_pid_tgid
#define bpf_get_current_task_btf()    bpfsim_current
#define bpf_task_pt_regs(task)	      ((void)(task), bpfsim_regs)
/* It is for another machine, and for a verifier that is not there. */
#define asm(...) ((void)0)

/* What a program's types and functions lack for a compiler that is not asked to
 * make a BPF program of them. */
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"

static uint64_t bpfsim_now_ns;
static uint32_t bpfsim_cpu;
static uint64_t bpfsim_pid_tgid;
static void *bpfsim_current, *bpfsim_regs;
static void *bpfsim_lookup(void *map, const void *key);
static long bpfsim_update(void *map, const void *key, const void *value,
			  uint64_t flags);
static long bpfsim_delete(void *map, const void *key);

#endif
