/*
 * rawcall.h - a system call from code that runs inside the program, without
 * libc: the kernel's own result, errno as a negative number.
 */
#ifndef SMCO_RAWCALL_H
#define SMCO_RAWCALL_H

#include <stdint.h>

static inline int64_t sys6(long nr, uint64_t a, uint64_t b, uint64_t c,
			   uint64_t d, uint64_t e, uint64_t f)
{
	int64_t ret;
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
