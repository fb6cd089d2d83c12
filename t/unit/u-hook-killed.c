/*
 * The supervisor dies by SIGKILL at some moment while eight threads allocate
 * under its sensors: the program goes on to a correct end.
 */
#include <sys/prctl.h>
#include <sys/stat.h>

#include "t/unit/hook-run.h"
#include "t/unit/scratch.h"

#define ROUNDS 12

static void supervise(const char *path)
{
	static struct run r;
	char prog[512];
	snprintf(prog, sizeof(prog), "%s", fixture("hook-live"));
	char *argv[] = {prog, (char *)path, (char *)"8", (char *)"4000", NULL};
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	r.survives = true;
	run_to_end(&r, argv);
	_exit(0);
}

static bool ends_with_success(const char *path)
{
	char line[128] = "";
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		;
	if (f)
		fclose(f);
	return !strcmp(line, "EXIT-SUCCESS\n");
}

static bool is_alive(pid_t pid)
{
	siginfo_t si = {0};
	return !waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) &&
	       !si.si_pid;
}

/* The program of @supervisor has exec'ed, which on a busy machine takes its
 * time. */
static bool has_program(pid_t supervisor)
{
	char at[64], buf[64];
	snprintf(at, sizeof(at), "/proc/%d/task/%d/children", (int)supervisor,
		 (int)supervisor);
	if (smco_slurp(at, buf, sizeof(buf)) <= 0)
		return false;
	snprintf(at, sizeof(at), "/proc/%d/comm", atoi(buf));
	return smco_slurp(at, buf, sizeof(buf)) > 0 &&
	       !strcmp(buf, "hook-live\n");
}

int main(void)
{
	unsigned killed = 0, ok = 0, never = 0;
	const char *path = scratch_path("live");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int status = -1, bad = 0;
		bool started = false;
		pid_t pid;
		pid_t supervisor = fork();
		if (supervisor == 0)
			supervise(path);
		while (!has_program(supervisor) && is_alive(supervisor))
			usleep(1000);
		usleep(20000 + i * 15000);
		kill(supervisor, SIGKILL);
		/* The supervisor, and the program that is ours now. */
		while ((pid = wait(&status)) > 0)
			if (pid == supervisor)
				killed += WIFSIGNALED(status);
			else if (status != SIGKILL) {
				/* By that it dies before it was started. */
				started = true;
				bad = status;
			}
		if (bad)
			printf("# the program ended with status 0x%x\n", bad);
		ok += !bad && ends_with_success(path);
		never += !started; /* a busy machine: too early */
		unlink(path);
	}
	printf("# killed in mid-flight %u times of %u\n", killed, ROUNDS);
	check(killed >= ROUNDS / 3);
	check(never < ROUNDS / 2);
	check_int(ok, ROUNDS - never);
	return tap_done();
}
