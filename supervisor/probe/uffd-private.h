/* What uffd.c and its reader share. */
#ifndef SMCO_PROBE_UFFD_PRIVATE_H
#define SMCO_PROBE_UFFD_PRIVATE_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/probe/access.h"
#include "supervisor/probe/guardtab.h"

struct uffd_hit {
	struct access_hit hit;
	pid_t tid;
	bool waits; /* still in the fault: to be stopped, then let go */
};

/* What the program has given back of late, as a ring. */
#define UFFD_REMOVED	64
#define UFFD_REMOVED_NS (5 * NSEC_PER_MSEC)
struct uffd_removed {
	taddr_t start, end;
	uint64_t told_ns;
};

struct uffd {
	struct access base;
	int fd;
	int quit_fd; /* eventfd: the reader ends */
	struct tundo *undo;
	pthread_t reader;
	bool has_reader;
	/* The reader's own: the CPU that it stays on as it follows the program
	 * (-1 = any), of those it may, and when it looked last where that is.
	 */
	cpu_set_t may;
	int cpu;
	uint64_t looked_ns;
	bool has_yielded;      /* to the program's own, for good */
	uint64_t own_due_ns;   /* to look whether it has one */
	pthread_mutex_t lock;  /* protects all below */
	pthread_cond_t looked; /* the loop took hits */
	struct guardtab tab;
	struct uffd_hit *queue; /* ring */
	size_t head;
	size_t nr;
	size_t cap;
	struct uffd_removed removed[UFFD_REMOVED];
	unsigned next_removed;
	pid_t last_tid; /* who met a guard, 0 = nobody yet */
	/* The reader was where that thread is when it looked last; without the
	 * lock. */
	volatile bool is_near;
	uint64_t hit_ns;
	uint64_t side_ns;
};

/* Takes the protection off, wakes who waits there, and leaves the mapping as
 * it was. What is no longer mapped has nothing to open. */
void uffd_wp_open(struct uffd *u, taddr_t start, taddr_t end);

/* The following six with the lock held. */

/* Room for what @more guards will put there: a hit that cannot be kept would
 * leave its thread waiting for ever. False: no memory. */
bool uffd_queue_reserve(struct uffd *u, size_t more);
/* The oldest hit; false if there is none. */
bool uffd_queue_get(struct uffd *u, struct uffd_hit *ret);
/* Opens the block for a thread that still waits there. */
void uffd_open_waiting(struct uffd *u, struct uffd_hit *h);
/* Queues what the kernel has to tell, so that no message is on its way while
 * somebody asks what was hit. The descriptor never makes us wait. */
void uffd_take_messages(struct uffd *u);

/* Ends all guards, as gaps; threads that wait go on. */
void uffd_end_all(struct uffd *u);

/* May [start, end) be about to lose its pages, and with them its protection?
 * The program has been told that we know of it, and is on its way. */
bool uffd_is_removed(const struct uffd *u, taddr_t start, taddr_t end,
		     uint64_t now_ns);

/* What passes until a hit is heard of, ns, where the reader is now. */
uint64_t uffd_heard_ns(const struct uffd *u);

/* What a wait of @ns is charged with: an eighth more, for the interrupts by
 * which blocks are armed, and caches that are found cold afterwards. */
static inline uint64_t uffd_charged_ns(uint64_t ns)
{
	return ns + ns / 8;
}

/* Initializes lock and queue, begins the thread; 0 or an errno. */
int uffd_start_reader(struct uffd *u);
/* Ends the thread, if there is one, and waits for its end. */
void uffd_stop_reader(struct uffd *u);

/* --- uffd-cost.c --- */
/* Of a write that meets a guard, ns. */
struct uffd_cost {
	/* Until the reader has its message: the program loses that at each hit,
	 * and no other clock tells. The reader is on another CPU, or on the
	 * writer's own. */
	uint64_t heard_ns;
	uint64_t near_ns;
	uint64_t whole_ns; /* until it goes on, if the reader opens the block,
			      from another CPU */
};

/* In some 10 ms, by guards in our own memory; not while others use what it
 * tells. Where it cannot be told it is as before. */
void uffd_cost_measure(void);
/* Usual figures at first. */
struct uffd_cost uffd_cost(void);
void uffd_cost_know(const struct uffd_cost *cost);

#endif
