/* The trace's name, and whether it could be written. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/output.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

static void test_expand(void)
{
	static const struct {
		const char *pattern, *name, *want;
	} rows[] = {
		{"smco.trace", "/bin/ls", "smco.trace"},
		{"%n.%p", "/bin/ls", "ls.4711"},
		{"%n.%p", "ls", "ls.4711"},
		{"d/%n%n%%", "./x/redis-server", "d/redis-serverredis-server%"},
		{"%n", "/bin/", "unknown"},
		{"%n", "", "unknown"},
		{"%n", "../..", ".."},
		{"%", "ls", NULL},
		{"a%x", "ls", NULL},
		{"", "ls", ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *got = NULL;
		struct smco_err err;
		int rc = output_expand(rows[i].pattern, 4711, rows[i].name,
				       &got, &err);
		if (rows[i].want)
			check_str(got, rows[i].want);
		else
			check_int(rc, SMCO_FORMAT);
		free(got);
	}
}

static void test_check(void)
{
	const char *dir = scratch_path("dir");
	char path[128];
	struct smco_err err;
	if (!check_int(mkdir(dir, 0700), 0) || !check_int(chdir(dir), 0))
		return;
	check_int(output_check("new.trace", "/bin/ls", &err), 0);
	check_msg(access("new.trace", F_OK), "the check leaves nothing");
	check_int(rmdir(dir), 0);
	check_int(mkdir(dir, 0700), 0);
	check_int(chdir(dir), 0);

	int fd = open("old.trace", O_CREAT | O_WRONLY, 0600);
	check(fd >= 0 && write(fd, "kept", 4) == 4);
	close(fd);
	check_int(output_check("old.trace", "/bin/ls", &err), 0);
	struct stat st = {0};
	check(!stat("old.trace", &st) && st.st_size == 4);

	check_int(output_check("missing/new.trace", "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, "cannot write the trace to missing/new.trace: "
			   "No such file or directory");
	check_int(output_check("old.trace/x", "/bin/ls", &err), SMCO_SYS);
	/* Patterns: what they will give, as far as that is known. */
	check_int(output_check("%n.%p.trace", "/bin/ls", &err), 0);
	check_int(output_check("missing/%n", "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, "cannot write the trace to missing/ls: "
			   "No such file or directory");
	check_int(output_check("missing/%%%p", "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, "cannot write the trace to missing/%%%p: "
			   "No such file or directory");
	check_int(output_check("%x", "/bin/ls", &err), SMCO_FORMAT);
	check_int(mkdir("ls", 0700), 0);
	check_int(output_check("%n", "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, "cannot write the trace to ls: it is a directory");
	check_int(output_check("%n/%p", "/bin/ls", &err), 0);
	check_int(rmdir("ls"), 0);
	check_int(mkdir("%n", 0700), 0);
	check_int(output_check("%n", "/bin/ls", &err), 0);
	check_int(rmdir("%n"), 0);
	snprintf(path, sizeof(path),
		 "cannot write the trace to %s: it is a "
		 "directory",
		 dir);
	check_int(output_check(dir, "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, path);
	check_int(output_check("/dev/null", "/bin/ls", &err), SMCO_SYS);
	check_str(err.msg, "cannot write the trace to /dev/null: it is not a "
			   "regular file");
	if (geteuid() == 0) {
		/* Root may write where it likes, but not into /proc. */
		check_int(output_check("/proc/smco.trace", "/bin/ls", NULL),
			  SMCO_SYS);
	} else {
		check_int(chmod(dir, 0500), 0);
		check_int(output_check("new.trace", "/bin/ls", &err), SMCO_SYS);
		check_int(chmod(dir, 0700), 0);
	}
	unlink("old.trace");
	check_int(rmdir(dir), 0);
}

int main(void)
{
	test_expand();
	test_check();
	return tap_done();
}
