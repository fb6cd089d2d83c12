#include "supervisor/control/least.h"

#include "supervisor/control/fixed.h"

uint64_t least_add(struct least *l, uint64_t got_ns, int64_t least_ns,
		   int64_t most_ahead_ns, int64_t most_behind_ns)
{
	int64_t was = l->ahead_ns > 0 ? l->ahead_ns : 0;
	i128 ahead = (i128)l->ahead_ns + least_ns - got_ns;
	int64_t is = ahead > 0 ? sat_i64(ahead) : 0;
	/* What was granted too much before is taken back from what follows. */
	i128 more = (i128)got_ns + is - was - l->owed_ns;
	l->owed_ns =
		more < 0 ? clamp_i64(sat_i64(-more), 0, most_behind_ns) : 0;
	l->ahead_ns = clamp_i64(sat_i64(ahead), -most_behind_ns, most_ahead_ns);
	return more > 0 ? sat_u64((u128)more) : 0;
}
