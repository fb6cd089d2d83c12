#include "reports/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLURP_STEP (256u << 10)

static int slurp(struct source *s, const char *path, struct smco_err *err)
{
	for (;;) {
		uint8_t *to = bbuf_reserve(&s->owned, SLURP_STEP);
		if (!to)
			return smco_fail(err, SMCO_NOMEM, 0,
					 "%s does not fit into memory", path);
		ssize_t n = read(s->fd, to, SLURP_STEP);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return smco_fail(err, SMCO_SYS, errno, "cannot read %s",
					 path);
		if (n == 0)
			break;
		s->owned.len += (size_t)n;
	}
	smco_close_fd(&s->fd);
	s->fd = -1;
	s->mem = s->owned.data;
	s->size = s->owned.len;
	return SMCO_OK;
}

int source_open(struct source *s, const char *path, struct smco_err *err)
{
	struct stat st;
	*s = (struct source){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return smco_fail(err,
				 errno == ENOENT ? SMCO_NOTFOUND
				 : errno == EACCES || errno == EPERM ? SMCO_PERM
								     : SMCO_SYS,
				 errno, "cannot open %s", path);
	if (S_ISDIR(st.st_mode))
		return smco_fail(err, SMCO_SYS, EISDIR, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return slurp(s, path, err);
	s->size = (uint64_t)st.st_size;
	return SMCO_OK;
}

void source_open_mem(struct source *s, const void *buf, size_t len)
{
	*s = (struct source){.fd = -1, .mem = buf, .size = len};
}

void source_close(struct source *s)
{
	smco_close_fd(&s->fd);
	bbuf_free(&s->owned);
	*s = (struct source){.fd = -1};
}

bool source_read(const struct source *s, uint64_t pos, void *buf, size_t len)
{
	if (pos > s->size || len > s->size - pos)
		return false;
	if (s->fd < 0) {
		if (len)
			memcpy(buf, s->mem + pos, len);
		return true;
	}
	uint8_t *to = buf;
	while (len) {
		ssize_t n = pread(s->fd, to, len, (off_t)pos);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		pos += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

/* Looks at more at a time the longer it finds nothing: what is full of markers
 * costs little for each. */
uint64_t source_find(const struct source *s, uint64_t pos, const char *marker)
{
	uint8_t window[16384];
	size_t most = 64;
	while (pos < s->size && s->size - pos >= 2) {
		uint64_t left = s->size - pos;
		size_t n = left < most ? (size_t)left : most;
		if (!source_read(s, pos, window, n))
			break;
		const uint8_t *hit = memmem(window, n, marker, 2);
		if (hit)
			return pos + (uint64_t)(hit - window);
		pos += n - 1; /* the marker may lie across two windows */
		most = most < sizeof(window) ? most * 4 : most;
	}
	return s->size;
}
