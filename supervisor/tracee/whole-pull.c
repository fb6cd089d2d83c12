/*
 * recvmmsg with MSG_WAITALL on a stream, interrupted in the middle of a
 * message: the kernel counts that one, and puts what comes next into the next
 * one's buffers. Without the stop all of that would have filled up the first.
 * So the bytes are moved on to where they belong, before the call is carried
 * on with what the last one lacks then.
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "supervisor/tracee/internal.h"

#define MOST_PIECES 1024
#define MOST_BYTES  (64UL << 20)

struct vector {
	struct iovec v[MOST_PIECES];
	size_t nr;
	uint64_t bytes;
};

static bool read_vector(struct tproc *p, const struct mmsghdr *m,
			struct vector *ret)
{
	ret->nr = m->msg_hdr.msg_iovlen;
	ret->bytes = 0;
	if (ret->nr > MOST_PIECES ||
	    tmem_read(p, (taddr_t)(uintptr_t)m->msg_hdr.msg_iov, ret->v,
		      ret->nr * sizeof(ret->v[0])) < 0)
		return false;
	for (size_t i = 0; i < ret->nr; i++) {
		if (ret->v[i].iov_len > INT_MAX - ret->bytes)
			return false;
		ret->bytes += ret->v[i].iov_len;
	}
	return true;
}

/* @len bytes from @from on, into @buf or out of it. */
static bool copy(struct tproc *p, const struct vector *v, uint64_t from,
		 uint8_t *buf, uint64_t len, bool is_out)
{
	for (size_t i = 0; i < v->nr && len; i++) {
		uint64_t piece = v->v[i].iov_len;
		if (from >= piece) {
			from -= piece;
			continue;
		}
		taddr_t at = (taddr_t)(uintptr_t)v->v[i].iov_base + from;
		uint64_t n = piece - from < len ? piece - from : len;
		if ((is_out ? tmem_write(p, at, buf, n)
			    : tmem_read(p, at, buf, n)) < 0)
			return false;
		buf += n;
		len -= n;
		from = 0;
	}
	return !len;
}

static struct mmsghdr *read_messages(struct tproc *p, taddr_t at, size_t nr)
{
	struct mmsghdr *m = calloc(nr, sizeof(*m));
	if (!m || tmem_read(p, at, m, nr * sizeof(*m)) == 0)
		return m;
	free(m);
	return NULL;
}

/* In all but the first of @nr messages. */
static uint64_t later_bytes(const struct mmsghdr *m, size_t nr)
{
	uint64_t bytes = 0;
	for (size_t i = 1; i < nr; i++)
		bytes += m[i].msg_len;
	return bytes;
}

/* The lengths that @nr messages have when the later ones' bytes are where they
 * belong. */
static bool move_lengths(struct tproc *p, struct mmsghdr *m, size_t nr)
{
	struct vector v;
	uint64_t spare = later_bytes(m, nr);
	if (spare > MOST_BYTES)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!read_vector(p, &m[i], &v) || m[i].msg_len > v.bytes)
			return false;
		uint64_t has = i ? 0 : m[i].msg_len;
		uint64_t gets = v.bytes - has < spare ? v.bytes - has : spare;
		m[i].msg_len = (uint32_t)(has + gets);
		spare -= gets;
	}
	return !spare;
}

bool whole_find_pull(struct task *t, taddr_t at, struct arch_whole_rest *rest,
		     struct mmsghdr *last_ret)
{
	size_t nr = rest->done, first = 0;
	struct tproc *p = t->proc;
	struct vector v;
	_cleanup_free_ struct mmsghdr *m = read_messages(p, at, nr);

	if (!m)
		return false;
	for (; first < nr; first++) {
		if (!read_vector(p, &m[first], &v))
			return false;
		if (m[first].msg_len < v.bytes)
			break;
	}
	*last_ret = m[nr - 1];
	if (first + 1 >= nr)
		return true;
	/* What each brought along beside its bytes cannot be moved. */
	for (size_t i = first; i < nr; i++)
		if (m[i].msg_hdr.msg_control || m[i].msg_hdr.msg_name)
			return false;
	if (!move_lengths(p, &m[first], nr - first))
		return false;
	rest->pull = at + first * sizeof(*m);
	rest->pull_nr = nr - first;
	while (!m[rest->done - 1].msg_len)
		rest->done--;
	*last_ret = m[rest->done - 1];
	return true;
}

bool whole_pull(struct task *t, const struct arch_whole_rest *rest)
{
	struct tproc *p = t->proc;
	size_t nr = rest->pull_nr;
	uint64_t has = 0, moved = 0;
	struct vector v;
	_cleanup_free_ struct mmsghdr *m = read_messages(p, rest->pull, nr);
	_cleanup_free_ uint8_t *buf = m ? malloc(later_bytes(m, nr)) : NULL;

	if (!buf)
		return false;
	uint32_t begun = m[0].msg_len;
	for (size_t i = 1; i < nr; i++) {
		if (!read_vector(p, &m[i], &v) ||
		    !copy(p, &v, 0, buf + has, m[i].msg_len, false))
			return false;
		has += m[i].msg_len;
	}
	if (!move_lengths(p, m, nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		uint64_t from = i ? 0 : begun, len = m[i].msg_len - from;
		if (!read_vector(p, &m[i], &v) ||
		    !copy(p, &v, from, buf + moved, len, true))
			return false;
		moved += len;
	}
	return tmem_write(p, rest->pull, m, nr * sizeof(*m)) == 0;
}
