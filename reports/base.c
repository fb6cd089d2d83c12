#include "reports/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int smco_fail(struct smco_err *err, enum smco_code code, int sys_errno,
	      const char *fmt, ...)
{
	if (!err)
		return code;
	err->code = code;
	err->sys_errno = sys_errno;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (sys_errno && n >= 0 && (size_t)n < sizeof(err->msg))
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s",
			 strerror(sys_errno));
	return code;
}

uint64_t smco_clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t smco_now_ns(void)
{
	return smco_clock_ns(CLOCK_MONOTONIC);
}

bool smco_debug_on(const char *domain)
{
	static const char *domains;
	if (!domains) {
		const char *env = getenv("SMCO_DEBUG");
		domains = env ? env : "";
	}
	if (!*domains)
		return false;
	if (!strcmp(domains, "all"))
		return true;
	size_t len = strlen(domain);
	for (const char *p = domains; *p;) {
		size_t n = strcspn(p, ",");
		if (n == len && !memcmp(p, domain, n))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

void smco_debug_print(const char *domain, const char *func, const char *fmt,
		      ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "[%s] %s: %s\n", domain, func, line);
}

void smco_free_ptr(void *p)
{
	void *mem;
	memcpy(&mem, p, sizeof(mem));
	free(mem);
}

void smco_close_fd(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
}

ssize_t smco_slurp(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t len = 0;
	while (len < size - 1) {
		ssize_t n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}
