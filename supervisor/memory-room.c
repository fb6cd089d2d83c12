#include "supervisor/memory-room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base.h"
#include "reports/procfs.h"
#include "supervisor/control/fixed.h"

#define SMALL_BYTES (16ULL << 20)
#define LOOK_NS	    NSEC_PER_SEC
/* Version 1 says "none" by the largest number of pages. */
#define NO_LIMIT (1ULL << 62)
#define NO_ROOM	 ((struct memory_room){UINT64_MAX, UINT64_MAX})

/* ------------------------------------------------------ which group it is ---
 */

/* The next line of @text into @line, without its end; false if there is none,
 * lines that are too long are cut. */
static bool next_line(const char **text, char *line, size_t size)
{
	const char *end = strchr(*text, '\n');
	size_t len = end ? (size_t)(end - *text) : strlen(*text);
	if (!**text)
		return false;
	snprintf(line, size, "%.*s", (int)min_u64(len, size - 1), *text);
	*text += end ? len + 1 : len;
	return true;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') &&
		    (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* The path below its hierarchy's root: of version 1's memory controller, or, if
 * nothing is counted there, of version 2. */
static bool find_path(const char *groups, char path[PATH_MAX], bool *is_v2_ret)
{
	char line[PATH_MAX + 256];
	bool found = false;
	while (next_line(&groups, line, sizeof(line))) {
		char *list = strchr(line, ':');
		char *at = list ? strchr(list + 1, ':') : NULL;
		if (!at || at[1] != '/' || strlen(at + 1) >= PATH_MAX)
			continue;
		*at++ = '\0';
		bool is_v1 = has_word(list + 1, "memory");
		if (!is_v1 && (found || list[1]))
			continue;
		snprintf(path, PATH_MAX, "%s", at);
		*is_v2_ret = !is_v1;
		found = true;
		if (is_v1)
			break;
	}
	return found;
}

/* Mounted from @root of the hierarchy at @at, if this line says so. */
static bool is_mount(char *line, bool is_v2, const char **root, const char **at)
{
	char *save, *rest = strstr(line, " - ");
	if (!rest)
		return false;
	*rest = '\0';
	const char *type = strtok_r(rest + 3, " ", &save);
	const char *options = strtok_r(NULL, " ", &save) /* its source */
				      ? strtok_r(NULL, " ", &save)
				      : NULL;
	if (!type || strcmp(type, is_v2 ? "cgroup2" : "cgroup") ||
	    (!is_v2 && !(options && has_word(options, "memory"))))
		return false;
	for (int i = 0; i < 3; i++) /* its number, its parent's, the device */
		if (!strtok_r(i ? NULL : line, " ", &save))
			return false;
	*root = strtok_r(NULL, " ", &save);
	*at = strtok_r(NULL, " ", &save);
	/* Blanks and the like are written as numbers: not followed. */
	return *root && *at && !strchr(*root, '\\') && !strchr(*at, '\\');
}

/* What of @path is below @root; NULL = it is elsewhere. */
static const char *below(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(path, root, len) || (path[len] && path[len] != '/') ||
	    strstr(path + len, "/.."))
		return NULL;
	return path[len] && strcmp(path + len, "/") ? path + len : "";
}

bool memory_group_find(const char *groups, const char *mounts,
		       struct memory_group *ret)
{
	char path[PATH_MAX], line[2 * PATH_MAX];
	const char *root, *at;
	if (!find_path(groups, path, &ret->is_v2))
		return false;
	while (next_line(&mounts, line, sizeof(line))) {
		if (!is_mount(line, ret->is_v2, &root, &at))
			continue;
		const char *rest = below(path, root);
		if (!rest || strlen(at) + strlen(rest) >= PATH_MAX)
			continue;
		ret->top_len = strlen(at);
		snprintf(ret->dir, sizeof(ret->dir), "%s%s", at, rest);
		return true;
	}
	return false;
}

/* -------------------------------------------------------- what there is left
 */

/* "max", and what cannot be read, is UINT64_MAX. */
static uint64_t read_number(const char *dir, const char *file)
{
	char path[PATH_MAX + 64], text[64];
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (smco_slurp(path, text, sizeof(text)) <= 0 || *text < '0' ||
	    *text > '9')
		return UINT64_MAX;
	uint64_t n = strtoull(text, NULL, 10);
	return n < NO_LIMIT ? n : UINT64_MAX;
}

/* The number behind @name, at a line's beginning; 0 if it is not there. */
static uint64_t number_of(const char *text, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, len) &&
		    (at[len] == ' ' || at[len] == ':'))
			return strtoull(at + len + 1, NULL, 10);
	}
	return 0;
}

static uint64_t idle_file_bytes(const char *dir, bool is_v2)
{
	char path[PATH_MAX + 64], text[8192];
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	if (smco_slurp(path, text, sizeof(text)) <= 0)
		return 0;
	return number_of(text, is_v2 ? "inactive_file" : "total_inactive_file");
}

static void look_at_level(const char *dir, bool is_v2, struct memory_room *room)
{
	uint64_t limit = read_number(dir, is_v2 ? "memory.max"
						: "memory.limit_in_bytes");
	if (is_v2)
		limit = min_u64(limit, read_number(dir, "memory.high"));
	if (limit == UINT64_MAX)
		return;
	uint64_t used = read_number(dir, is_v2 ? "memory.current"
					       : "memory.usage_in_bytes");
	/* The kernel adds up for this: only where it matters. */
	if (used > limit / 4 * 3 && used < UINT64_MAX)
		used = sat_sub_u64(used, idle_file_bytes(dir, is_v2));
	uint64_t left = sat_sub_u64(limit, used);
	if (left < room->left_bytes)
		*room = (struct memory_room){limit, left};
}

void memory_group_room(const struct memory_group *g, struct memory_room *ret)
{
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s", g->dir);
	*ret = NO_ROOM;
	for (;;) {
		look_at_level(dir, g->is_v2, ret);
		char *last = strrchr(dir, '/');
		if (!last || strlen(dir) <= g->top_len)
			return;
		*last = '\0';
	}
}

void memory_machine_room(struct memory_room *ret)
{
	char text[4096];
	*ret = NO_ROOM;
	if (smco_slurp("/proc/meminfo", text, sizeof(text)) <= 0 ||
	    !number_of(text, "MemTotal"))
		return;
	ret->limit_bytes = number_of(text, "MemTotal") << 10;
	ret->left_bytes =
		(number_of(text, "MemAvailable") + number_of(text, "SwapFree"))
		<< 10;
}

static bool is_tight(const struct memory_room *room)
{
	return room->left_bytes < room->limit_bytes / 16;
}

struct memory_spare memory_spare(const struct memory_room *group,
				 const struct memory_room *machine)
{
	if (is_tight(group) || is_tight(machine))
		return (struct memory_spare){0, 0};
	if (group->limit_bytes == UINT64_MAX)
		return (struct memory_spare){SMALL_BYTES, UINT64_MAX};
	uint64_t part = group->left_bytes / 64;
	return (struct memory_spare){min_u64(part, SMALL_BYTES), part};
}

/* ------------------------------------------------------------ of a session ---
 */

struct seen_group {
	char *groups;		    /* what was read of a process of it */
	struct memory_group *where; /* NULL = it cannot be seen */
	struct memory_room room;
	uint64_t due_ns; /* to look again */
};

struct memory_rooms {
	char *mounts; /* as they were at the start; NULL = not known */
	struct seen_group *seen;
	unsigned nr;
	struct memory_room machine;
	uint64_t machine_due_ns;
};

/* All of a file that says of itself that it is empty; NULL if it cannot be
 * had. */
static char *read_all(const char *path)
{
	size_t size = 16384;
	for (;; size *= 4) {
		char *text = malloc(size);
		ssize_t got = text ? smco_slurp(path, text, size) : -1;
		if (got >= 0 && ((size_t)got < size - 1 || size > 16u << 20))
			return text;
		free(text);
		if (got < 0)
			return NULL;
	}
}

struct memory_rooms *memory_rooms_create(void)
{
	struct memory_rooms *m = calloc(1, sizeof(*m));
	if (m)
		m->mounts = read_all("/proc/self/mountinfo");
	return m;
}

void memory_rooms_destroy(struct memory_rooms *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->nr; i++) {
		free(m->seen[i].groups);
		free(m->seen[i].where);
	}
	free(m->seen);
	free(m->mounts);
	free(m);
}

#define UNKNOWN UINT_MAX

static unsigned add_group(struct memory_rooms *m, const char *groups)
{
	struct seen_group *more =
		realloc(m->seen, (m->nr + 1) * sizeof(*m->seen));
	if (!more)
		return UNKNOWN;
	m->seen = more;
	struct seen_group *g = &m->seen[m->nr];
	*g = (struct seen_group){.groups = strdup(groups), .room = NO_ROOM};
	if (!g->groups)
		return UNKNOWN;
	g->where = m->mounts ? malloc(sizeof(*g->where)) : NULL;
	if (g->where && !memory_group_find(groups, m->mounts, g->where)) {
		free(g->where);
		g->where = NULL;
	}
	return m->nr++;
}

unsigned memory_rooms_find(struct memory_rooms *m, pid_t pid)
{
	char path[PROCFS_PATH], groups[PATH_MAX * 2];
	procfs_path(path, sizeof(path), pid, "cgroup");
	if (smco_slurp(path, groups, sizeof(groups)) <= 0)
		return UNKNOWN;
	for (unsigned i = 0; i < m->nr; i++)
		if (!strcmp(m->seen[i].groups, groups))
			return i;
	return add_group(m, groups);
}

struct memory_spare memory_rooms_look(struct memory_rooms *m, unsigned which,
				      uint64_t now_ns,
				      struct memory_room *room_ret)
{
	struct memory_room none = NO_ROOM;
	struct seen_group *g = which < m->nr ? &m->seen[which] : NULL;
	if (g && g->where && now_ns >= g->due_ns) {
		memory_group_room(g->where, &g->room);
		g->due_ns = now_ns + LOOK_NS;
	}
	if (now_ns >= m->machine_due_ns) {
		memory_machine_room(&m->machine);
		m->machine_due_ns = now_ns + LOOK_NS;
	}
	if (room_ret)
		*room_ret = g ? g->room : none;
	return memory_spare(g ? &g->room : &none, &m->machine);
}
