#include "reports/shortage.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <jansson.h>

static atomic_bool any;

void shortage_tell(void)
{
	atomic_store(&any, true);
}

bool shortage_any(void)
{
	return atomic_load(&any);
}

int shortage_check(struct smco_err *err)
{
	return shortage_any() ? smco_fail(err, SMCO_NOMEM, 0,
					  "out of memory: not all of it could "
					  "be printed")
			      : SMCO_OK;
}

static void *allocate(size_t size)
{
	void *p = malloc(size);
	if (!p)
		shortage_tell();
	return p;
}

void shortage_watch_jansson(void)
{
	json_set_alloc_funcs(allocate, free);
}
