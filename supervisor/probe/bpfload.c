#include "supervisor/probe/bpfload.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is opened later, links and maps of others, pipes, files, and some to
 * spare: BPF is what can be done without. */
#define LEAVES_FDS 16

/* The initial pid namespace's, in every kernel (PROC_PID_INIT_INO). */
#define INITIAL_PIDS 0xEFFFFFFCu

bool bpfload_has_kernels_numbers(void)
{
	struct stat st;
	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INITIAL_PIDS;
}

/* First line of @path, without its newline; "" if it cannot be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	buf[0] = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = 0;
	fclose(f);
}

static int explain_load(int sys_errno, const char *what, const char *needs,
			struct smco_err *err)
{
	char line[128];

	if (sys_errno == EMFILE)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s: no file descriptor is left (ulimit -n)",
				 what);
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s: this needs a kernel built with "
				 "CONFIG_DEBUG_INFO_BTF; this one has no "
				 "/sys/kernel/btf/vmlinux",
				 what);
	read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	if (strstr(line, "[confidentiality]"))
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s: this needs BPF programs that read "
				 "kernel memory; lockdown is \"%s\", boot with "
				 "lockdown=integrity or none",
				 what, line);
	if (sys_errno == EPERM || sys_errno == EACCES) {
		read_line("/proc/sys/kernel/unprivileged_bpf_disabled", line,
			  sizeof(line));
		return smco_fail(
			err, SMCO_PERM, 0,
			"%s: this needs CAP_BPF and CAP_PERFMON "
			"(uid is %d, unprivileged_bpf_disabled is %s): "
			"run as root, or setcap "
			"cap_bpf,cap_perfmon,cap_sys_nice+ep",
			what, (int)geteuid(), *line ? line : "not there");
	}
	return smco_fail(err, SMCO_UNSUPPORTED, sys_errno,
			 "%s: this kernel refuses the BPF program (%s)", what,
			 needs);
}

/* Are there descriptors for what cannot be done without, too? */
static bool leaves_room(void)
{
	int fd[LEAVES_FDS], nr = 0;
	while (nr < LEAVES_FDS &&
	       (fd[nr] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		nr++;
	for (int i = 0; i < nr; i++)
		close(fd[i]);
	return nr == LEAVES_FDS;
}

int bpfload(const char *start, const char *end, const char *what,
	    const char *needs, struct bpf_object **ret, struct smco_err *err)
{
	return bpfload_with(start, end, what, needs, NULL, ret, err);
}

static int set_map(struct bpf_object *obj, const struct bpfload_map *as)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, as->name);
	return as->nr ? bpf_map__set_max_entries(map, as->nr)
		      : bpf_map__reuse_fd(map, as->fd);
}

int bpfload_with(const char *start, const char *end, const char *what,
		 const char *needs, const struct bpfload_map *map,
		 struct bpf_object **ret, struct smco_err *err)
{
	if (start == end)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "%s: not in this build, which was made "
				 "without clang",
				 what);
	libbpf_set_print(NULL);
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "smco");
	struct bpf_object *obj =
		bpf_object__open_mem(start, (size_t)(end - start), &opts);
	if (!obj)
		return explain_load(errno, what, needs, err);
	/* The verifier gives up with EAGAIN whenever a signal is pending, and
	 * the tracer's own come often. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = map ? set_map(obj, map) : 0;
	if (!r)
		r = bpf_object__load(obj);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!r && !leaves_room())
		r = -EMFILE;
	if (r) {
		bpf_object__close(obj);
		return explain_load(-r, what, needs, err);
	}
	*ret = obj;
	return 0;
}

int bpfload_prog(struct bpf_object *obj, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(obj, name));
}
