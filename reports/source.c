#include "reports/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/disk.h"
#include "reports/outfile.h"

#define NAME_MAX_BYTES 200
#define SLURP_STEP     (256u << 10)
#define SLURP_KEPT     (4u << 20) /* in memory */

const char *source_name(const char *path)
{
	size_t n = strlen(path);
	return n > NAME_MAX_BYTES ? path + n - NAME_MAX_BYTES : path;
}

/* What is in memory goes to the end of the file. False: it stays. */
static bool put_aside(struct source *s, struct outfile *f)
{
	if ((f->fd < 0 && !outfile_open_unnamed(f)) ||
	    outfile_append(f, s->owned.data, s->owned.len))
		return false;
	bbuf_reset(&s->owned);
	return true;
}

/* All of it is in memory again, and the file is closed. */
static int take_back(struct source *s, struct outfile *f)
{
	struct bbuf all = {0};
	uint8_t *to = bbuf_reserve(&all, (size_t)f->size + s->owned.len);
	int rc = !to					   ? SMCO_NOMEM
		 : outfile_read(f, 0, to, (size_t)f->size) ? SMCO_OK
							   : SMCO_SYS;
	if (!rc) {
		all.len = (size_t)f->size;
		bbuf_put(&all, s->owned.data, s->owned.len);
		bbuf_free(&s->owned);
		s->owned = all;
	} else {
		bbuf_free(&all);
	}
	outfile_close(f);
	return rc;
}

static bool begins_like_a_trace(const struct source *s)
{
	static const char magic[] = TRACE_MAGIC;
	size_t n = s->owned.len < 8 ? s->owned.len : 8;
	return !memcmp(s->owned.data, magic, n);
}

/* Reads to the end: what has room in memory is there, what has not in @f. */
static int read_all(struct source *s, struct outfile *f)
{
	bool must_stay = false;
	for (;;) {
		uint8_t *to = bbuf_reserve(&s->owned, SLURP_STEP);
		if (!to)
			return SMCO_NOMEM;
		ssize_t n = read(s->fd, to, SLURP_STEP);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return SMCO_SYS;
		s->owned.len += (size_t)n;
		if (n == 0 || (f->fd < 0 && !begins_like_a_trace(s)))
			break;
		if (s->owned.len < SLURP_KEPT || must_stay)
			continue;
		must_stay = !put_aside(s, f);
		if (must_stay && f->fd >= 0 && take_back(s, f))
			return SMCO_NOMEM;
	}
	if (f->fd >= 0 && !put_aside(s, f) && take_back(s, f))
		return SMCO_NOMEM;
	return SMCO_OK;
}

static int slurp(struct source *s, const char *path, struct smco_err *err)
{
	struct outfile f = {.fd = -1};
	int rc = read_all(s, &f), error = errno;
	smco_close_fd(&s->fd);
	s->fd = -1;
	if (rc) {
		outfile_close(&f);
		return rc == SMCO_NOMEM
			       ? smco_fail(err, rc, 0,
					   "%s does not fit into memory",
					   source_name(path))
			       : smco_fail(err, rc, error, "cannot read %s",
					   source_name(path));
	}
	if (f.fd >= 0) {
		s->fd = f.fd;
		s->size = f.size;
		bbuf_free(&s->owned);
	} else {
		s->mem = s->owned.data;
		s->size = s->owned.len;
	}
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
				 errno, "cannot open %s", source_name(path));
	if (S_ISDIR(st.st_mode))
		return smco_fail(err, SMCO_SYS, EISDIR, "cannot read %s",
				 source_name(path));
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
