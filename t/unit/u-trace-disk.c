/*
 * The file of a trace: what is on disk when, the old file, outputs that cannot
 * be written, a disk that fills up.
 */
#include "t/unit/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"

static const char *path, *old;
static int nr_replaced; /* by renaming another file */

/* In place of the C library's. */
int rename(const char *from, const char *to)
{
	nr_replaced += !access(to, F_OK);
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void put(struct trace_writer *w, uint32_t param)
{
	trace_put(w, &(struct record){.event = EV_COVERAGE, .param = param});
}

/* Records of @name that can be read; -1 if it is no trace. */
static int records(const char *name, uint64_t *damaged_ret, bool *cut_ret)
{
	struct trace_reader *r;
	struct record got;
	int n = 0;
	if (trace_reader_open(name, &r, NULL))
		return -1;
	while (trace_next(r, &got, NULL) > 0)
		n++;
	if (damaged_ret)
		*damaged_ret = trace_nr_damaged(r);
	if (cut_ret)
		*cut_ret = trace_is_truncated(r);
	trace_reader_close(r);
	return n;
}

static off_t size_of(const char *name)
{
	struct stat st;
	return stat(name, &st) < 0 ? -1 : st.st_size;
}

static int nr_files(void)
{
	DIR *d = opendir(scratch_dir());
	int n = 0;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_type == DT_REG;
	closedir(d);
	return n;
}

/* A reader sees all of it after a flush, with the writer still at work. */
static void flushed_is_there(void)
{
	struct trace_writer *w = NULL;
	bool cut = false;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	check_int(records(path, NULL, NULL), 0);
	put(w, 1);
	check_int(records(path, NULL, NULL), 0);
	check_int(trace_sync(w, NULL), 0);
	check_int(records(path, NULL, &cut), 1);
	check(cut);
	off_t before = size_of(path);
	check_int(trace_sync(w, NULL), 0); /* nothing new, nothing written */
	check_int(size_of(path), before);
	put(w, 2);
	trace_writer_destroy(w); /* as if killed */
	check_int(records(path, NULL, &cut), 1);
	check(cut);
}

static void old_is_kept(void)
{
	struct trace_writer *w = NULL;
	char link[80];
	struct stat st;
	unlink(path);
	trace_writer_create(path, 1, &w, NULL);
	put(w, 1);
	trace_writer_close(w, NULL);
	check_int(stat(path, &st), 0);
	check_int(st.st_mode & 0777, 0600);
	snprintf(link, sizeof(link), "%s.link", path);
	check_int(symlink(path, link), 0);
	trace_writer_create(link, 1, &w, NULL);
	trace_writer_close(w, NULL);
	check_int(records(old, NULL, NULL), 1);
	check_int(records(path, NULL, NULL), 0);
	check(!lstat(link, &st) && S_ISLNK(st.st_mode));
	unlink(link);
}

/* Replacing a file has some file systems write the other one to the disk while
 * the program runs; the oldest's place is given up afterwards, too. */
static void disk_is_left_alone(void)
{
	struct trace_writer *w = NULL;
	struct stat st;
	for (int i = 0; i < 2; i++) {
		trace_writer_create(path, 1, &w, NULL);
		put(w, 1);
		trace_writer_close(w, NULL);
	}
	int oldest = open(old, O_RDONLY);
	nr_replaced = 0;
	trace_writer_prepare(path, 1, &w, NULL);
	check_int(trace_writer_publish(w, NULL), 0);
	check_int(nr_replaced, 0);
	check_int(nr_files(), 2);
	check(!fstat(oldest, &st) && !st.st_nlink);
	char link[64], to[300];
	ssize_t n = -1;
	bool is_held = false;
	for (int fd = 3; fd < 64; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = fd == oldest ? -1 : readlink(link, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = '\0';
		is_held = is_held || strstr(to, ".old (deleted)");
	}
	check(is_held);
	trace_writer_close(w, NULL);
	close(oldest);
	check_int(records(old, NULL, NULL), 1);
}

/* Until it is published the traces before are where they were, afterwards too
 * if it never is. */
static void named_at_last(void)
{
	struct trace_writer *w = NULL;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	put(w, 1);
	trace_writer_close(w, NULL);
	unlink(old);
	for (int is_published = 0; is_published < 2; is_published++) {
		check_int(trace_writer_prepare(path, 1, &w, NULL), 0);
		check_int(nr_files(), 2);
		check_int(records(path, NULL, NULL), 1);
		check_int(size_of(old), -1);
		put(w, 1);
		put(w, 2);
		if (is_published) {
			check_int(trace_writer_publish(w, NULL), 0);
			check_int(trace_writer_publish(w, NULL), 0);
			trace_writer_close(w, NULL);
		} else {
			trace_writer_destroy(w);
			check_int(nr_files(), 1);
		}
	}
	check_int(nr_files(), 2);
	check_int(records(old, NULL, NULL), 1);
	check_int(records(path, NULL, NULL), 2);
}

/* The writer's thread does it, before it is closed; what it cannot do is told
 * as a disk that cannot be written to is. */
static void named_soon(void)
{
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	check_int(trace_writer_prepare(path, 1, &w, NULL), 0);
	trace_writer_publish_soon(w);
	for (int i = 0; i < 5000 && records(path, NULL, NULL); i++)
		usleep(1000);
	check_int(records(path, NULL, NULL), 0); /* with nothing to write */
	put(w, 1);
	check_int(trace_writer_close(w, NULL), 0);
	check_int(records(path, NULL, NULL), 1);
	check_int(records(old, NULL, NULL), 2);

	check_int(trace_writer_prepare(path, 1, &w, NULL), 0);
	trace_writer_publish_soon(w);
	put(w, 1);
	put(w, 2);
	check_int(trace_writer_close(w, NULL), 0);
	check_int(records(path, NULL, NULL), 2);
	check_int(records(old, NULL, NULL), 1);
	check_int(nr_files(), 2);

	check(!unlink(old) && !mkdir(old, 0700));
	check_int(trace_writer_prepare(path, 1, &w, NULL), 0);
	trace_writer_publish_soon(w);
	put(w, 1);
	check_int(trace_writer_close(w, &err), SMCO_SYS);
	check(strstr(err.msg, "cannot keep the old trace"));
	check_int(records(path, NULL, NULL), 2);
	check_int(nr_files(), 1);
	check(!rmdir(old));
}

static void not_writable(void)
{
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	const char *name = scratch_path("no/such.trace");
	check_int(trace_writer_create(name, 1, &w, &err), SMCO_SYS);
	check_int(err.sys_errno, ENOENT);
	check(strstr(err.msg, name));
	check_int(trace_writer_create(scratch_dir(), 1, &w, &err), SMCO_SYS);
	check_int(err.sys_errno, EISDIR);
	/* A device is never renamed; a full one is noticed at once. */
	check_int(trace_writer_create("/dev/full", 1, &w, &err), SMCO_SYS);
	check_int(err.sys_errno, ENOSPC);
	struct stat st;
	check(!stat("/dev/full", &st) && S_ISCHR(st.st_mode));
}

/* The disk is full already: the old trace stands where it stood. */
static void full_from_the_start(void)
{
	struct rlimit before, limit;
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	trace_writer_create(path, 1, &w, NULL);
	put(w, 1);
	trace_writer_close(w, NULL);
	unlink(old);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 10;
	setrlimit(RLIMIT_FSIZE, &limit);
	check_int(trace_writer_create(path, 1, &w, &err), SMCO_SYS);
	check_int(err.sys_errno, EFBIG);
	check_int(records(path, NULL, NULL), 1);
	check_int(size_of(old), -1);
	unlink(path);
	check_int(trace_writer_create(path, 1, &w, &err), SMCO_SYS);
	check_int(size_of(path), -1);
	setrlimit(RLIMIT_FSIZE, &before);
}

/* The limit on file size stands for a full disk: a write ends short, the next
 * fails. The default action of SIGXFSZ would kill. */
static void full_disk(void)
{
	struct rlimit before, limit;
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	static uint8_t payload[600];
	uint64_t damaged = 1;
	bool cut = false;
	int rc = 0, flushes = 0;
	signal(SIGXFSZ, SIG_DFL);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 50000;
	setrlimit(RLIMIT_FSIZE, &limit);
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	for (; !rc && flushes < 1000; flushes++) {
		for (int i = 0; i < 10; i++) {
			struct record r;
			random_record(&r, payload);
			trace_put(w, &r);
		}
		rc = trace_sync(w, &err);
	}
	check_int(rc, SMCO_SYS);
	check_int(err.sys_errno, EFBIG);
	check(strstr(err.msg, path));
	int readable = records(path, &damaged, &cut);
	check_int(readable, (flushes - 1) * 10);
	check_int(damaged, 0);
	check(cut);
	off_t size = size_of(path);
	check(size > 20000 && size < 50000);

	setrlimit(RLIMIT_FSIZE, &before); /* room again: still nothing */
	put(w, 7);
	check_int(trace_sync(w, &err), SMCO_SYS);
	check_int(trace_put_meta(w, "a", "b"), SMCO_SYS);
	check_int(trace_put_stack(w, 1, NULL, 0), SMCO_SYS);
	check_int(trace_writer_close(w, &err), SMCO_SYS);
	check_int(size_of(path), size);
	sigset_t pending;
	sigpending(&pending);
	check(!sigismember(&pending, SIGXFSZ));
}

int main(void)
{
	path = scratch_path("x.trace");
	old = scratch_path("x.trace.old");
	flushed_is_there();
	old_is_kept();
	disk_is_left_alone();
	named_at_last();
	named_soon();
	not_writable();
	full_from_the_start();
	full_disk();
	return tap_done();
}
