#include "supervisor/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_executable(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *command_find(const char *name)
{
	if (strchr(name, '/'))
		return is_executable(name) ? strdup(name) : NULL;
	const char *path = getenv("PATH");
	for (const char *p = path ? path : "/bin:/usr/bin"; *name;) {
		size_t len = strcspn(p, ":");
		char *file = NULL;
		/* An empty entry is the current directory. */
		if (asprintf(&file, "%.*s%s%s", (int)len, p, len ? "/" : "",
			     name) < 0)
			return NULL;
		if (is_executable(file))
			return file;
		free(file);
		if (!p[len])
			break;
		p += len + 1;
	}
	return NULL;
}

/* As the kernel has it: a line so long, and so many interpreters of which each
 * is a script itself. */
#define SCRIPT_BYTES 256
#define SCRIPT_DEPTH 5

/* The interpreter that the first line of @path names, to @ret. */
static bool read_interpreter(const char *path, char ret[SCRIPT_BYTES])
{
	char line[SCRIPT_BYTES + 1];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, line, SCRIPT_BYTES);
	line[n > 0 ? n : 0] = '\0';
	if (strncmp(line, "#!", 2) != 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	const char *at = line + 2 + strspn(line + 2, " \t");
	size_t len = strcspn(at, " \t");
	snprintf(ret, SCRIPT_BYTES, "%.*s", (int)len, at);
	return len > 0;
}

char *command_program(const char *path)
{
	char interpreter[SCRIPT_BYTES];
	char *real = realpath(path, NULL);
	for (int i = 0; real && i < SCRIPT_DEPTH; i++) {
		if (!read_interpreter(real, interpreter))
			break;
		free(real);
		real = realpath(interpreter, NULL);
	}
	return real;
}

static bool only_begins_another(const char *name)
{
	static const char *const those[] = {
		"chrt",	   "env",     "ionice",	 "linux64", "nice",   "nohup",
		"numactl", "prlimit", "setarch", "setpriv", "setsid", "stdbuf",
		"taskset", "time",    "timeout", "unshare",
	};
	const char *slash = strrchr(name, '/');
	for (size_t i = 0; i < ARRAY_SIZE(those); i++)
		if (!strcmp(slash ? slash + 1 : name, those[i]))
			return true;
	return false;
}

/* Their own options and operands are nothing that may be executed. */
char **command_behind(char **command)
{
	if (!only_begins_another(*command))
		return NULL;
	while (*++command) {
		_cleanup_free_ char *found = command_find(*command);
		if (found)
			return command;
	}
	return NULL;
}
