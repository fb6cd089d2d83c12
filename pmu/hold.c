#include "pmu/hold.h"

#include <unistd.h>

#include "pmu/open.h"

void pmu_hold(struct pmu_hold *h, const struct pmu_event *ev)
{
	if (ev->attr.type != PERF_TYPE_TRACEPOINT || ev->absent[0] ||
	    h->nr == ARRAY_SIZE(h->of))
		return;
	for (size_t i = 0; i < h->nr; i++)
		if (h->of[i].config == ev->attr.config)
			return;
	struct perf_event_attr attr = ev->attr;
	attr.disabled = 1;
	int fd = pmu_open(&attr, 0, -1, -1);
	if (fd < 0)
		return;
	h->of[h->nr].config = attr.config;
	h->of[h->nr++].fd = fd;
}

void pmu_hold_end(struct pmu_hold *h)
{
	while (h->nr)
		close(h->of[--h->nr].fd);
}
