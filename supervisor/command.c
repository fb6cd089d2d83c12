#include "supervisor/command.h"

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
