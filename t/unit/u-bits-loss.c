/* What a program that is reset loses: who walks and who measures. */
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/bits-loss.h"
#include "t/unit/tap.h"

static void split(double single_ns, double in_range_ns, uint64_t range_ns,
		  uint64_t touch_ns)
{
	struct bits_loss loss;
	bits_loss_split(single_ns, in_range_ns, &loss);
	check_int((long)loss.range_ns, (long)range_ns);
	check_int((long)loss.touch_ns, (long)touch_ns);
}

/* A process that walks on our CPU, until it is told that it is over. */
static bool measure(uint64_t enough_ns, struct bits_loss *ret)
{
	struct loss_walk *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *mem = mmap(NULL, LOSS_MEM_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int status = -1;
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	pid_t pid = fork();
	if (!pid) {
		loss_walk(w, mem);
		_exit(w->steps ? 0 : 1);
	}
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (!w->steps)
		usleep(1000);
	bool told = loss_measure(w, pidfd, mem, enough_ns, ret);
	check_int((long)w->over, 1);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	close(pidfd);
	munmap(mem, LOSS_MEM_BYTES);
	munmap(w, sizeof(*w));
	return told;
}

int main(void)
{
	struct bits_loss loss = {0};
	/* 8 us a page and 45 a range: 53 alone, 19.25 each of four. */
	split(53000, 19250, 45000, 8000);
	split(300, 300, 0, 300);
	split(200, 500, 0, 500); /* by chance: rather too much */
	split(9000, 1000, 10666, 0);
	check(!measure(UINT64_MAX, &loss));
	if (measure(0, &loss))
		check_msg(loss.touch_ns + loss.range_ns > 0,
			  "%llu ns a page, %llu a range",
			  (unsigned long long)loss.touch_ns,
			  (unsigned long long)loss.range_ns);
	return tap_done();
}
