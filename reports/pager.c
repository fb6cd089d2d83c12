#include "reports/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A shell that runs @command and, should there be none (it has read nothing
 * then), shows its input all the same. Ctrl-C is the pager's affair: the shell
 * outlives it. */
static _Noreturn void become(const char *command)
{
	char *script;
	if (asprintf(&script,
		     "trap : INT\n%s\n"
		     "case $? in 126 | 127) exec cat ;; esac",
		     command) >= 0)
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
	_exit(127);
}

void pager_start(struct pager *p)
{
	const char *command = getenv("SMCO_PAGER");
	int fd[2];
	p->pid = 0;
	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	if (!*command || !strcmp(command, "cat") || pipe2(fd, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		/* F: leave if it fits, R: colours, X: do not clear. */
		setenv("LESS", "FRX", 0);
		setenv("LESSCHARSET", "utf-8", 0);
		dup2(fd[0], STDIN_FILENO);
		become(command);
	}
	close(fd[0]);
	if (pid < 0) {
		close(fd[1]);
		return;
	}
	/* Leaving the pager early ends the output, not us. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	dup2(fd[1], STDOUT_FILENO);
	close(fd[1]);
	p->pid = pid;
}

void pager_wait(struct pager *p)
{
	if (!p->pid)
		return;
	fclose(stdout);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
}
