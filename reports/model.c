#include "reports/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum nap_end model_nap_end(const struct ev_nap *nap)
{
	if (nap->flags & NAP_FREED)
		return END_FREED;
	if (nap->flags & (NAP_ONGOING | NAP_AT_EXIT))
		return END_NEVER;
	if (nap->flags & NAP_UNWATCHED)
		return END_UNWATCHED;
	if (nap->flags & NAP_ENDED_SYSCALL)
		return END_SYSCALL;
	if (nap->flags & NAP_ENDED_WRITE)
		return END_WRITE;
	if (nap->flags & NAP_ENDED_READ)
		return END_READ;
	return END_ACCESS;
}

const char *model_nap_end_name(enum nap_end end)
{
	static const char *const name[END_NR] = {
		[END_READ] = "read",	       [END_WRITE] = "write",
		[END_SYSCALL] = "syscall",     [END_ACCESS] = "access",
		[END_FREED] = "freed",	       [END_NEVER] = "never",
		[END_UNWATCHED] = "unwatched",
	};
	return name[end];
}

uint64_t model_meta_u64(const struct summary *s, const char *key,
			uint64_t fallback)
{
	return model_reader_u64(s->reader, key, fallback);
}

uint64_t model_reader_u64(struct trace_reader *r, const char *key,
			  uint64_t fallback)
{
	const char *text = trace_meta(r, key);
	char *end;
	if (!text || *text < '0' || *text > '9')
		return fallback;
	errno = 0;
	uint64_t v = strtoull(text, &end, 10);
	return *end || errno ? fallback : v;
}

bool model_has_monitor(const struct summary *s, const char *name)
{
	return model_file_has_monitor(s->reader, name);
}

bool model_file_has_monitor(struct trace_reader *r, const char *name)
{
	const char *list = trace_meta(r, "monitors");
	size_t len = strlen(name);
	for (const char *p = list ? list : "nap"; *p;) {
		size_t n = strcspn(p, ",");
		if (n == len && !memcmp(p, name, len))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

const char *model_command(const struct summary *s,
			  const struct model_process *p)
{
	char key[40];
	snprintf(key, sizeof(key), "pid.%u.command", p->pid);
	struct trace_reader *reader = s->file[p->file].reader;
	const char *command = trace_meta(reader, key);
	if (!command && s->nr_processes == 1)
		command = trace_meta(reader, "command");
	return command && *command ? command : NULL;
}

int64_t model_overhead_ppb(const struct ev_ledger *l, uint64_t spent_ns)
{
	if (l->spent_ns >= l->run_ns)
		return -1;
	double ppb = (double)spent_ns / (double)(l->run_ns - l->spent_ns) * 1e9;
	return ppb < 9e18 ? (int64_t)(ppb + 0.5) : INT64_MAX;
}

const struct model_process *model_root(const struct summary *s, size_t file)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->process[i].file == file)
			return &s->process[i];
	return NULL;
}

const struct trace_frame *model_frames(const struct summary *s, uint32_t id,
				       size_t *nr_ret)
{
	struct file_id file_id = {0, id};
	if (s->nr_files > 1) {
		if (!id || id > s->nr_ids)
			return NULL;
		file_id = s->file_id[id - 1];
	}
	return trace_stack(s->file[file_id.file].reader, file_id.id, nr_ret);
}

static uint64_t of_all(const struct summary *s,
		       uint64_t (*count)(const struct trace_reader *))
{
	uint64_t nr = 0;
	for (size_t i = 0; i < s->nr_files; i++)
		nr += count(s->file[i].reader);
	return nr;
}

uint64_t model_nr_damaged(const struct summary *s)
{
	return of_all(s, trace_nr_damaged);
}

uint64_t model_nr_lost(const struct summary *s)
{
	return of_all(s, trace_nr_lost);
}

uint64_t model_nr_dropped(const struct summary *s)
{
	return of_all(s, trace_nr_dropped);
}

bool model_is_truncated(const struct summary *s)
{
	for (size_t i = 0; i < s->nr_files; i++)
		if (trace_is_truncated(s->file[i].reader))
			return true;
	return false;
}

uint64_t model_file_bytes(const struct summary *s)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->nr_files; i++)
		bytes += trace_file_bytes(s->file[i].reader);
	return bytes;
}
