/* --naps: every nap. */
#include "reports/model.h"
#include "reports/names.h"
#include "reports/section.h"

enum nap_column {
	NAP_FILE,
	NAP_PROCESS,
	NAP_OBJECT,
	NAP_ADDR,
	NAP_SIZE,
	NAP_START,
	NAP_LENGTH,
	NAP_ERROR,
	NAP_BYTE_SECONDS,
	NAP_ALLOC,
	NAP_ENDED,
	NAP_SYSCALL,
	NAP_NEVER_USED,
	NAP_ONLY_WRITES,
	NAP_UNSEEN_HEAD,
	NAP_NEARBY,
	NAP_SITE,
	NAP_LAST_USED,
	NAP_ENDED_BY,
	NAP_COLUMNS
};

static const struct column nap_columns[NAP_COLUMNS] = {
	[NAP_FILE] = {"file", KIND_COUNT, 0, "which FILE, from 0"},
	[NAP_PROCESS] = {"pid", KIND_COUNT, 7, "the process"},
	[NAP_OBJECT] = {"object", KIND_COUNT, 0, "id of the block"},
	[NAP_ADDR] = {"addr", KIND_ADDRESS, 0, "its address"},
	[NAP_SIZE] = {"size", KIND_BYTES, 8, "its size"},
	[NAP_START] = {"start", KIND_TIME, 9, "when it began"},
	[NAP_LENGTH] = {"length", KIND_TIME, 9, "how long it was"},
	[NAP_ERROR] = {"error", KIND_TIME, 0, "the length is within +- this"},
	[NAP_BYTE_SECONDS] = {"byte_seconds", KIND_BYTE_SECONDS, 0,
			      "size times length"},
	[NAP_ALLOC] = {"alloc", KIND_TIME, 0, "when it was allocated"},
	[NAP_ENDED] = {"ended", KIND_TEXT, 9,
		       "read, write, syscall, access, freed, unwatched, never"},
	[NAP_SYSCALL] = {"syscall", KIND_TEXT, 0, "the call that ended it"},
	[NAP_NEVER_USED] = {"never_accessed", KIND_FLAG, 0,
			    "not once since it was allocated"},
	[NAP_ONLY_WRITES] = {"writes_only", KIND_FLAG, 0,
			     "reads could not be seen"},
	[NAP_UNSEEN_HEAD] = {"head_unseen", KIND_FLAG, 0,
			     "its beginning could not be watched"},
	[NAP_NEARBY] = {"seen_nearby", KIND_FLAG, 0,
			"who ended it is likely, not proven"},
	[NAP_SITE] = {"site", KIND_TEXT, 40, "allocation stack"},
	[NAP_LAST_USED] = {"last_used_by", KIND_TEXT, 0,
			   "stack that used it before"},
	[NAP_ENDED_BY] = {"ended_by", KIND_TEXT, 0, "stack that ended it"},
};

/* The text of a stack is made once, and kept with the stack. */
static void stack_value(const struct section_source *src, uint32_t id,
			struct value *ret)
{
	const char *text = model_stack_text(src->s, id);
	if (text)
		value_text(ret, text);
}

static void nap_get(const void *ctx, const void *item, size_t column,
		    struct value *ret)
{
	const struct section_source *src = ctx;
	const struct model_nap *m = item;
	const struct ev_nap *n = &m->nap;
	switch ((enum nap_column)column) {
	case NAP_FILE:
		return value_number(ret, m->file);
	case NAP_PROCESS:
		return value_number(ret, n->pid);
	case NAP_OBJECT:
		return value_number(ret, m->object);
	case NAP_ADDR:
		return value_number(ret, n->addr);
	case NAP_SIZE:
		return value_number(ret, n->size);
	case NAP_START:
		return value_number(ret, n->start_ns);
	case NAP_LENGTH:
		return value_number(ret, n->length_ns);
	case NAP_ERROR:
		return value_number(ret, n->error_ns);
	case NAP_BYTE_SECONDS:
		return value_number(ret, (long double)n->size *
						 (long double)n->length_ns /
						 1e9L);
	case NAP_ALLOC:
		if (n->alloc_ns)
			value_number(ret, n->alloc_ns);
		return;
	case NAP_ENDED:
		return value_text(ret, model_nap_end_name(model_nap_end(n)));
	case NAP_SYSCALL:
		if (n->ended_syscall >= 0)
			value_text(ret,
				   names_syscall(n->ended_syscall, ret->buf));
		return;
	case NAP_NEVER_USED:
		return value_number(ret, !!(n->flags & NAP_NEVER_ACCESSED));
	case NAP_ONLY_WRITES:
		return value_number(ret, !!(n->flags & NAP_WRITES_ONLY));
	case NAP_UNSEEN_HEAD:
		return value_number(ret, !!(n->flags & NAP_HEAD_UNSEEN));
	case NAP_NEARBY:
		return value_number(ret, !!(n->flags & NAP_END_NEARBY));
	case NAP_SITE:
		return stack_value(src, n->alloc_stack, ret);
	case NAP_LAST_USED:
		return stack_value(src, n->last_stack, ret);
	case NAP_ENDED_BY:
		return stack_value(src, n->ended_stack, ret);
	case NAP_COLUMNS:
		return;
	}
}

static int nap_each(const struct section_source *src, section_visit *visit,
		    void *ctx, struct smco_err *err)
{
	struct shelf_window naps = {.shelf = &src->s->naps};
	int rc = SMCO_OK;
	for (uint64_t i = 0; i < src->s->naps.nr && !rc; i++) {
		const struct model_nap *m = shelf_at(&naps, i);
		rc = m ? visit(ctx, m) : SMCO_SYS;
	}
	if (naps.failed)
		smco_fail(err, rc, 0, "cannot read a temporary file");
	shelf_window_close(&naps);
	return rc;
}

const struct section nap_section = {
	.name = "naps",
	.about = "every nap",
	.column = nap_columns,
	.nr_columns = NAP_COLUMNS,
	.monitor = "nap",
	.sort = "byte_seconds",
	.get = nap_get,
	.each = nap_each,
	.item_bytes = sizeof(struct model_nap),
};
