/*
 * recvmmsg with MSG_WAITALL was cut in the middle of a message, and the next
 * ones have got what belongs to it: where the bytes are then, how many messages
 * there are, and what the last one lacks.
 */
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define MSGS 6
#define MSG  16

static struct shared {
	struct mmsghdr m[MSGS];
	struct iovec v[MSGS][2];
	uint8_t data[MSGS][MSG];
} * s;
static struct task *t;
static int fds[2];

/* A stream of which the messages got so many bytes each. */
static void got(const unsigned lens[MSGS])
{
	uint8_t next = 0;
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < MSGS; i++) {
		s->v[i][0] = (struct iovec){s->data[i], 10};
		s->v[i][1] = (struct iovec){s->data[i] + 10, MSG - 10};
		s->m[i].msg_hdr.msg_iov = s->v[i];
		s->m[i].msg_hdr.msg_iovlen = 2;
		s->m[i].msg_len = lens[i];
		for (unsigned k = 0; k < lens[i]; k++)
			s->data[i][k] = ++next;
	}
}

static bool rest_of(long ret, struct arch_whole_rest *rest)
{
	struct user_regs_struct regs = {
		.orig_rax = SYS_recvmmsg,
		.rax = (uint64_t)ret,
		.rdi = (uint64_t)fds[0],
		.rsi = (uint64_t)(uintptr_t)s->m,
		.rdx = MSGS,
		.r10 = MSG_WAITALL,
	};
	return whole_rest(t, &regs, rest);
}

/* Full messages, one behind the other, and then @last bytes. */
static void check_pulled(unsigned full, unsigned last)
{
	uint8_t next = 0;
	for (unsigned i = 0; i < full; i++) {
		check_int(s->m[i].msg_len, MSG);
		for (unsigned k = 0; k < MSG; k++)
			check_int(s->data[i][k], ++next);
	}
	if (last)
		check_int(s->m[full].msg_len, last);
	for (unsigned k = 0; k < last; k++)
		check_int(s->data[full][k], ++next);
}

int main(void)
{
	struct smco_err err = {0};
	struct arch_whole_rest rest;
	struct tracer *tr;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 2;
	struct puppet pup = puppet_start();
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check(p != NULL))
		return tap_done();
	t = tproc_first_task(p);

	got((unsigned[MSGS]){16, 5, 16, 3});
	if (check(rest_of(4, &rest))) {
		check_int(s->m[1].msg_len, 5); /* nothing is done yet */
		check_int(rest.done, 3);
		check_int(rest.pull_nr, 3);
		check(rest.args[1] == (uint64_t)(uintptr_t)&s->m[3]);
		check_int(rest.args[2], 3);
		check(rest.base == (uint64_t)(uintptr_t)&s->data[2][8]);
		check_int(rest.len, 2);
		check(whole_pull(t, &rest));
		check_pulled(2, 8);
	}

	/* All that the last one got fills up the one before. */
	got((unsigned[MSGS]){16, 9, 7});
	if (check(rest_of(3, &rest))) {
		check_int(rest.done, 2);
		check_int(rest.args[2], 4);
		check(whole_pull(t, &rest));
		check_pulled(2, 0);
	}

	/* Only the last is short: as ever. */
	got((unsigned[MSGS]){16, 16, 4});
	if (check(rest_of(3, &rest))) {
		check_int(rest.done, 3);
		check_int(rest.pull_nr, 0);
		check_int(rest.args[2], 3);
		check_int(rest.len, 6);
	}

	/* What came with a message stays with it. */
	got((unsigned[MSGS]){5, 16});
	s->m[1].msg_hdr.msg_control = s->data;
	check(!rest_of(2, &rest));

	check_int(tracer_detach_all(tr, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
