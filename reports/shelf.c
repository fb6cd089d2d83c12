#include "reports/shelf.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

#define WINDOW_BYTES (64u << 10)

void shelf_init(struct shelf *s, size_t item_bytes, size_t max_bytes)
{
	size_t nr = max_bytes / item_bytes;
	*s = (struct shelf){.item_bytes = item_bytes, .max_items = nr ? nr : 1};
}

void shelf_deinit(struct shelf *s)
{
	if (s->nr_in_file)
		outfile_close(&s->file);
	free(s->item);
	*s = (struct shelf){0};
}

/* What is in memory behind what is in the file. If that fails it stays, and so
 * does all else. */
static void put_away(struct shelf *s)
{
	if (s->must_stay)
		return;
	if (!s->nr_in_file && !outfile_open_unnamed(&s->file)) {
		s->must_stay = true;
		return;
	}
	if (outfile_append(&s->file, s->item, s->nr_here * s->item_bytes)) {
		if (!s->nr_in_file)
			outfile_close(&s->file);
		s->must_stay = true;
		return;
	}
	s->nr_in_file += s->nr_here;
	s->nr_here = 0;
}

int shelf_add(struct shelf *s, const void *item)
{
	if (s->nr_here >= s->max_items)
		put_away(s);
	if (s->nr_here >= s->cap) {
		void *grown = s->item;
		if (!array_grow(&grown, &s->cap, s->item_bytes))
			return SMCO_NOMEM;
		s->item = grown;
	}
	memcpy(s->item + s->nr_here++ * s->item_bytes, item, s->item_bytes);
	s->nr++;
	return SMCO_OK;
}

void shelf_window_close(struct shelf_window *w)
{
	free(w->item);
	*w = (struct shelf_window){0};
}

/* From item @i of the file on, as many as fit. */
static bool fill(struct shelf_window *w, uint64_t i)
{
	const struct shelf *s = w->shelf;
	size_t most = WINDOW_BYTES / s->item_bytes;
	most = most ? most : 1;
	if (!w->item)
		w->item = reallocarray(NULL, most, s->item_bytes);
	if (!w->item)
		return false;
	/* Who jumps may jump again: it gets few. */
	if (i != w->first + w->nr && most > 16)
		most = 16;
	if (most > s->nr_in_file - i)
		most = (size_t)(s->nr_in_file - i);
	w->first = i;
	w->nr = 0;
	if (!outfile_read(&s->file, i * s->item_bytes, w->item,
			  most * s->item_bytes))
		return false;
	w->nr = most;
	return true;
}

const void *shelf_at(struct shelf_window *w, uint64_t i)
{
	const struct shelf *s = w->shelf;
	if (i >= s->nr_in_file)
		return s->item + (size_t)(i - s->nr_in_file) * s->item_bytes;
	if ((i < w->first || i - w->first >= w->nr) && !fill(w, i)) {
		w->failed = true;
		return NULL;
	}
	return w->item + (size_t)(i - w->first) * s->item_bytes;
}
