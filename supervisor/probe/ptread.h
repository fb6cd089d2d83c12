/*
 * ptread.h - read the page tables of another process with a BPF program, on
 * demand: which pages are present, which have their accessed bit set.
 * Nothing is planted, the process is not stopped and notices nothing.
 *
 * Needs Linux with BTF, the right to load BPF programs, and a kernel that is
 * not locked down to "confidentiality"; ptread_get() finds out by doing it.
 *
 * One program is loaded for the whole supervisor, and used from one thread.
 */
#ifndef SMCO_PTREAD_H
#define SMCO_PTREAD_H

#include "reports/base.h"
#include "supervisor/probe/ptread-bpf.h"

struct ptread;

/*
 * Load the program (some 50 ms the first time, counted afterwards), find
 * where the kernel maps physical memory, and verify both on a page of this
 * process with known content: its entry, its bytes, its accessed bit set by
 * a touch, cleared by MADV_COLD, set again. SMCO_PERM or SMCO_UNSUPPORTED
 * say what is missing, its current value, and the remedy.
 */
int ptread_get(struct ptread **ret, struct smco_err *err);
void ptread_put(struct ptread *pt); /* NULL is fine */

struct ptread_mm {
	bool want_running;   /* in: count them (50 ns a thread) */
	taddr_t task_size;   /* first address that is not user space */
	unsigned nr_running; /* threads running now on CPUs other than ours */
	int running_cpu;     /* of one of those; -1: not known, or it has a
			      * real-time priority */
	int running_tid;     /* its number, as the kernel counts threads; 0:
			      * not known */
	int displaced_tid;   /* in, with want_running: such a number; 0: none */
	bool is_displaced;   /* that one waits for the CPU that we are on */
	uint64_t cpu_mask;   /* CPUs 0-63 where it runs or ran lately */
};

/*
 * Where the caller writes up to PTREAD_MAX_SLOTS ranges (start, end; page
 * aligned, below task_size, start < end) and finds the answers. Shared with
 * the kernel: valid until ptread_put().
 */
struct ptread_slot *ptread_slots(struct ptread *pt);

/*
 * Can a slot that wants it (want_aged, for one scan) learn of pages whose bit
 * was set and then cleared by somebody else than MADV_COLD (nr_aged)? It takes
 * one look at the kernel's struct page for each page that is not accessed, up
 * to the first page table with one that is, and a kernel with DAMON or idle
 * page tracking; else nr_aged is 0.
 */
bool ptread_sees_aged(const struct ptread *pt);

/*
 * Answer the first @nr slots for the address space behind @pagemap_fd, an open
 * /proc/PID/pagemap. SMCO_GONE when that address space has ended (exit,
 * exec). Pages that are swapped out or migrating count as not present. *mm
 * (optional) is filled.
 */
int ptread_scan(struct ptread *pt, int pagemap_fd, size_t nr,
		struct ptread_mm *mm);

#endif
