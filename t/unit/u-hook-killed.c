/*
 * The supervisor dies by SIGKILL at some moment while eight threads allocate
 * under its sensors: the program goes on to a correct end.
 */
#include <sys/prctl.h>
#include <sys/stat.h>

#include "t/unit/begun.h"
#include "t/unit/hook-run.h"
#include "t/unit/scratch.h"

#define ROUNDS 12
#define EARLY  4 /* of these, soon after its exec */

static void supervise(const char *path)
{
	static struct run r;
	char prog[512];
	snprintf(prog, sizeof(prog), "%s", fixture("hook-live"));
	char *argv[] = {prog, (char *)path, (char *)"8", (char *)"1500", NULL};
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

int main(void)
{
	unsigned killed = 0, ok = 0, never = 0;
	const char *path = scratch_path("live");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int status = -1, bad = 0;
		bool started = false, in_flight = false;
		pid_t pid;
		pid_t supervisor = fork();
		if (supervisor == 0)
			supervise(path);
		begun_wait(supervisor, "hook-live", i < EARLY ? 1 : 9);
		usleep(20000 + i * 15000);
		kill(supervisor, SIGKILL);
		/* The supervisor, and the program that is ours now. */
		while ((pid = wait(&status)) > 0)
			if (pid == supervisor)
				in_flight = WIFSIGNALED(status);
			else if (status != SIGKILL) {
				/* By that it dies before it was started. */
				started = true;
				bad = status;
			}
		if (bad)
			printf("# the program ended with status 0x%x\n", bad);
		ok += !bad && ends_with_success(path);
		/* Too early; or it had ended before, and is not ours. */
		never += in_flight && !started;
		killed += in_flight;
		unlink(path);
	}
	printf("# killed in mid-flight %u times of %u\n", killed, ROUNDS);
	check(killed >= ROUNDS / 3);
	check(never <= EARLY);
	check_int(ok, ROUNDS - never);
	return tap_done();
}
