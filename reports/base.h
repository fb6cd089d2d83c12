/*
 * base.h - the few types that every room shares: tracee addresses, errors,
 * scope guards, little arithmetic. No state, no I/O.
 */
#ifndef SMCO_BASE_H
#define SMCO_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An address in the monitored program. Never dereferenced here. */
typedef uint64_t taddr_t;

#define NSEC_PER_SEC  UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)
#define TPAGE_SIZE    UINT64_C(4096) /* x86-64 base page */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Result of every fallible call: 0 or one of these (negative). A task that
 * went away while it was worked on is a normal outcome, SMCO_GONE.
 */
enum smco_code {
	SMCO_OK = 0,
	SMCO_GONE = -1,	       /* task or process no longer exists */
	SMCO_NOMEM = -2,       /* out of memory in the supervisor */
	SMCO_PERM = -3,	       /* not permitted; message names the cause */
	SMCO_SYS = -4,	       /* another system error; sys_errno says which */
	SMCO_FORMAT = -5,      /* malformed input: ELF, DWARF, trace, options */
	SMCO_UNSUPPORTED = -6, /* this machine, kernel or program cannot */
	SMCO_NOTFOUND = -7,    /* no such symbol, module, record, command */
	SMCO_BUSY = -8,	    /* not now: another tracer, a thread in the way */
	SMCO_FAULT = -9,    /* tracee memory not readable; addr says where */
	SMCO_NEWER = -10,   /* a trace that needs a newer reader */
	SMCO_FOREIGN = -11, /* a trace from another architecture */
	SMCO_EMPTY = -12,   /* a trace in which nothing is */
};

/*
 * Filled on failure, untouched on success. Optional everywhere: pass NULL
 * when the code alone is enough. @msg names cause, current value and fix.
 */
struct smco_err {
	enum smco_code code;
	int sys_errno; /* 0 if no system call was involved */
	taddr_t addr;  /* 0 if no tracee address was involved */
	char msg[320];
};

/*
 * Fill @err (may be NULL) and return @code, so that a caller can
 * `return smco_fail(err, SMCO_SYS, errno, "cannot map %s", path);`.
 * A non-zero @sys_errno is appended to the message as text.
 */
int smco_fail(struct smco_err *err, enum smco_code code, int sys_errno,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A clock in nanoseconds, as CLOCK_THREAD_CPUTIME_ID; CLOCK_MONOTONIC. */
uint64_t smco_clock_ns(clockid_t clock);
uint64_t smco_now_ns(void);

/*
 * Debug output by domain: SMCO_DEBUG=ptrace,hook,nap,... or "all". The test
 * is one load and compare when the variable is not set.
 */
bool smco_debug_on(const char *domain);
void smco_debug_print(const char *domain, const char *func, const char *fmt,
		      ...) __attribute__((format(printf, 3, 4)));
#define smco_debug(domain, ...)                                                \
	do {                                                                   \
		if (smco_debug_on(domain))                                     \
			smco_debug_print(domain, __func__, __VA_ARGS__);       \
	} while (0)

/*
 * The first @size - 1 bytes of a (short) file, and a 0 behind them: how many,
 * or -1 if it cannot be opened.
 */
ssize_t smco_slurp(const char *path, char *buf, size_t size);

/* Scope guards: run when the variable leaves its scope. */
void smco_free_ptr(void *p); /* free(*(void **)p) */
void smco_close_fd(int *fd); /* close(*fd) if >= 0, keeps errno */
#define _cleanup_free_	__attribute__((cleanup(smco_free_ptr)))
#define _cleanup_close_ __attribute__((cleanup(smco_close_fd)))

#endif
