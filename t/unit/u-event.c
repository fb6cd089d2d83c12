/*
 * Names of events to what the kernel takes: without the hardware, against the
 * codes that Intel's and AMD's manuals have (as the kernel's own tables,
 * tools/perf/pmu-events, repeat them), and against a sysfs of our own.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmu/event.h"
#include "pmu/list.h"
#include "pmu/open.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define RAW	 PERF_TYPE_RAW
#define SOFTWARE PERF_TYPE_SOFTWARE
#define HARDWARE PERF_TYPE_HARDWARE
#define CACHE	 PERF_TYPE_HW_CACHE

/* Event code, unit mask, and the flags above them, as in IA32_PERFEVTSELx. */
#define INTEL(event, umask) ((umask) << 8 | (event))
#define CMASK(n)	    ((uint64_t)(n) << 24)
#define INV		    (1u << 23)
#define EDGE		    (1u << 18)
/* AMD: the event's upper four bits stand in 35:32. */
#define AMD(event, umask)                                                      \
	((uint64_t)((event) >> 8) << 32 | (umask) << 8 | ((event)&0xff))

static void test_encoding(void)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
		enum pmu_role role;
		int line;
	} rows[] = {
#define ROW(name, type, config, role) {name, type, config, role, __LINE__}
		ROW("skl::L1D:REPLACEMENT", RAW, INTEL(0x51, 0x01), PMU_MISSES),
		ROW("skl::L1D.REPLACEMENT", RAW, INTEL(0x51, 0x01), PMU_MISSES),
		ROW("skl::dtlb_load_misses.walk_completed", RAW,
		    INTEL(0x08, 0x0e), PMU_MISSES),
		ROW("skl::DTLB_LOAD_MISSES:WALK_ACTIVE", RAW,
		    INTEL(0x08, 0x10) | CMASK(1), PMU_MISSES),
		ROW("skl::MEM_LOAD_RETIRED:L3_MISS", RAW, INTEL(0xd1, 0x20),
		    PMU_MISSES),
		ROW("skl::UOPS_ISSUED:STALL_CYCLES", RAW,
		    INTEL(0x0e, 0x01) | CMASK(1) | INV, PMU_OTHER),
		ROW("skl::INST_RETIRED:ANY_P", RAW, INTEL(0xc0, 0x00),
		    PMU_INSTRUCTIONS),
		ROW("icl::L1D_PEND_MISS:FB_FULL_PERIODS", RAW,
		    INTEL(0x48, 0x02) | CMASK(1) | EDGE, PMU_MISSES),
		ROW("icl::MEM_INST_RETIRED:STLB_MISS_LOADS", RAW,
		    INTEL(0xd0, 0x11), PMU_MISSES),
		ROW("icl::L2_RQSTS:DEMAND_DATA_RD_MISS", RAW, INTEL(0x24, 0x21),
		    PMU_MISSES),
		ROW("icl::CYCLE_ACTIVITY:STALLS_L3_MISS", RAW,
		    INTEL(0xa3, 0x06) | CMASK(6), PMU_MISSES),
		ROW("spr::DTLB_LOAD_MISSES:WALK_COMPLETED", RAW,
		    INTEL(0x12, 0x0e), PMU_MISSES),
		ROW("spr::DTLB_STORE_MISSES:STLB_HIT", RAW, INTEL(0x13, 0x20),
		    PMU_MISSES),
		ROW("spr::ITLB_MISSES:WALK_COMPLETED_2M_4M", RAW,
		    INTEL(0x11, 0x04), PMU_MISSES),
		ROW("amd64_fam17h_zen2::RETIRED_INSTRUCTIONS", RAW,
		    AMD(0xc0, 0), PMU_INSTRUCTIONS),
		ROW("amd64_fam19h_zen3::RETIRED_BRANCH_INSTRUCTIONS", RAW,
		    AMD(0xc2, 0), PMU_OTHER),
		ROW("amd64_fam19h_zen4::RETIRED_BRANCH_INSTRUCTIONS"
		    "_MISPREDICTED",
		    RAW, AMD(0xc3, 0), PMU_MISSES),
		ROW("amd64_fam19h_zen4::RETIRED_NEAR_RETURNS", RAW,
		    AMD(0xc8, 0), PMU_OTHER),
		ROW("amd64_fam19h_zen4::CYCLES_NOT_IN_HALT", RAW, AMD(0x76, 0),
		    PMU_CYCLES),
		ROW("amd64_fam19h_zen4::RETIRED_FUSED_INSTRUCTIONS", RAW,
		    AMD(0x1d0, 0), PMU_OTHER),
		/* Those that every CPU has, by the kernel's own numbers. */
		ROW("cycles", HARDWARE, 0, PMU_CYCLES),
		ROW("instructions", HARDWARE, 1, PMU_INSTRUCTIONS),
		ROW("cache-misses", HARDWARE, 3, PMU_MISSES),
		ROW("branches", HARDWARE, 4, PMU_BRANCHES),
		ROW("branch-misses", HARDWARE, 5, PMU_MISSES),
		ROW("L1-dcache-load-misses", CACHE, 0x10000, PMU_MISSES),
		ROW("L1-dcache-loads", CACHE, 0, PMU_OTHER),
		ROW("LLC-load-misses", CACHE, 0x10002, PMU_MISSES),
		ROW("dTLB-load-misses", CACHE, 0x10003, PMU_MISSES),
		ROW("r01c2", RAW, 0x1c2, PMU_OTHER),
		ROW("r1ffffffff", RAW, 0x1ffffffff, PMU_OTHER),
		/* What the kernel counts itself. */
		ROW("cpu-clock", SOFTWARE, 0, PMU_OTHER),
		ROW("task-clock", SOFTWARE, 1, PMU_TASK_CLOCK),
		ROW("page-faults", SOFTWARE, 2, PMU_FAULTS),
		ROW("faults", SOFTWARE, 2, PMU_FAULTS),
		ROW("context-switches", SOFTWARE, 3, PMU_SWITCHES),
		ROW("cs", SOFTWARE, 3, PMU_SWITCHES),
		ROW("cpu-migrations", SOFTWARE, 4, PMU_MIGRATIONS),
		ROW("migrations", SOFTWARE, 4, PMU_MIGRATIONS),
		ROW("minor-faults", SOFTWARE, 5, PMU_MINOR_FAULTS),
		ROW("major-faults", SOFTWARE, 6, PMU_MAJOR_FAULTS),
		ROW("alignment-faults", SOFTWARE, 7, PMU_OTHER),
		ROW("emulation-faults", SOFTWARE, 8, PMU_OTHER),
		ROW("perf::PAGE-FAULTS", SOFTWARE, 2, PMU_FAULTS),
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pmu_event ev = {0};
		struct smco_err err = {0};
		int rc = pmu_event_parse(rows[i].name, &ev, &err);
		check_msg(!rc && ev.attr.type == rows[i].type &&
				  ev.attr.config == rows[i].config &&
				  ev.role == rows[i].role &&
				  ev.attr.size == sizeof(ev.attr),
			  "%s is %u:%#" PRIx64, rows[i].name, rows[i].type,
			  rows[i].config);
		if (rc || ev.attr.config != rows[i].config ||
		    ev.role != rows[i].role)
			printf("# line %d: got %u:%#jx role %s (%s)\n",
			       rows[i].line, ev.attr.type,
			       (uintmax_t)ev.attr.config,
			       pmu_role_name(ev.role), err.msg);
	}
}

static void test_modifiers(void)
{
	static const struct {
		const char *name;
		bool no_user, no_kernel, no_hv, pinned, exclusive;
		unsigned precise;
	} rows[] = {
		{"cycles", .precise = 0},
		{"cycles:u", .no_kernel = true},
		{"cycles:k", .no_user = true},
		{"cycles:u:k", .precise = 0},
		{"cycles:uk", .no_hv = true},
		{"cycles:up", .no_kernel = true, .no_hv = true, .precise = 1},
		{"cycles:ppp", .precise = 3},
		{"cycles:D", .pinned = true},
		{"cycles:pinned", .pinned = true},
		{"cycles:ue", .no_kernel = true, .no_hv = true,
		 .exclusive = true},
		{"page-faults:u", .no_kernel = true, .no_hv = true},
		{"page-faults:kD", .no_user = true, .no_hv = true,
		 .pinned = true},
		{"r1c2:u", .no_kernel = true, .no_hv = true},
		{"skl::L1D:REPLACEMENT:u", .no_kernel = true},
		{"skl::L1D.REPLACEMENT:uk", .no_hv = true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pmu_event ev = {0};
		struct smco_err err = {0};
		int rc = pmu_event_parse(rows[i].name, &ev, &err);
		check_msg(!rc && ev.attr.exclude_user == rows[i].no_user &&
				  ev.attr.exclude_kernel == rows[i].no_kernel &&
				  (ev.attr.exclude_hv == rows[i].no_hv) &&
				  ev.attr.pinned == rows[i].pinned &&
				  ev.attr.exclusive == rows[i].exclusive &&
				  ev.attr.precise_ip == rows[i].precise,
			  "%s", rows[i].name);
		if (rc)
			printf("# %s\n", err.msg);
	}
	struct pmu_event ev;
	check_int(pmu_event_parse("skl::L1D:REPLACEMENT:c=3", &ev, NULL), 0);
	check_int(ev.attr.config, INTEL(0x51, 0x01) | CMASK(3));
}

/* @want: a part of the message. */
static void refuse(const char *name, int code, const char *want)
{
	struct pmu_event ev;
	struct smco_err err = {0};
	int rc = pmu_event_parse(name, &ev, &err);
	check_msg(rc == code && strstr(err.msg, want), "'%s' is refused", name);
	if (rc != code || !strstr(err.msg, want))
		printf("# %d: %s\n", rc, err.msg);
}

static void test_wrong_names(void)
{
	refuse("cycels", SMCO_NOTFOUND, "unknown event 'cycels'; nearest: ");
	refuse("cycels", SMCO_NOTFOUND, "CYCLES");
	refuse("pagefaults", SMCO_NOTFOUND, "nearest: page-faults");
	refuse("contxt-switches", SMCO_NOTFOUND, "nearest: context-switches");
	refuse("skl::L1D_REPLACMENT", SMCO_NOTFOUND, "skl::L1D:REPLACEMENT");
	refuse("skl::L1D:FOO", SMCO_FORMAT, "it takes :REPLACEMENT");
	refuse("skl::L1D:RPLACEMENT:u", SMCO_FORMAT,
	       "; nearest: REPLACEMENT; it takes :REPLACEMENT");
	refuse("skl::L1D:REPLACEMENT:uu:kk", SMCO_FORMAT, "it takes");
	refuse("task-clok", SMCO_NOTFOUND, "nearest: task-clock");
	refuse("qqqqqqqqqqqqqqqq", SMCO_NOTFOUND, "see --list-events");
	refuse("", SMCO_FORMAT, "empty");
	refuse("cycles ", SMCO_FORMAT, "no blanks");
	refuse("page-faults:x", SMCO_FORMAT, "unknown modifier 'x'");
	refuse("page-faults:", SMCO_FORMAT, "unknown modifier ''");
	refuse("cycles:pppp", SMCO_FORMAT, "it takes");
	refuse("nopmu/tsc/", SMCO_NOTFOUND, "no PMU 'nopmu'");
	refuse("msr/tsc", SMCO_FORMAT, "must end with a /");
	refuse("../tsc/", SMCO_NOTFOUND, "no PMU '..'");
	char name[400];
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	refuse(name, SMCO_FORMAT, "too long");
}

/* -------------------------------------------------- a sysfs of our own --- */

static const char *root;

static void put(const char *path, const char *text)
{
	char whole[300];
	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *p = whole + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(whole, 0755);
		*p = '/';
	}
	FILE *f = fopen(whole, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

#define DEV "sys/bus/event_source/devices/"

static void make_sysfs(void)
{
	put(DEV "power/type", "23\n");
	put(DEV "power/cpumask", "0,18\n");
	put(DEV "power/format/event", "config:0-7\n");
	put(DEV "power/events/energy-pkg", "event=0x02\n");
	put(DEV "power/events/energy-pkg.scale",
	    "2.3283064365386962890625e-10\n");
	put(DEV "power/events/energy-pkg.unit", "Joules\n");
	put(DEV "amd/type", "4\n");
	put(DEV "amd/format/event", "config:0-7,32-35\n");
	put(DEV "amd/format/umask", "config:8-15\n");
	put(DEV "amd/format/inv", "config:23\n");
	put(DEV "amd/format/ldlat", "config1:0-15\n");
	put(DEV "amd/format/bad", "config:9-99\n");
	put("sys/kernel/tracing/events/sched/sched_switch/id", "314\n");
	put("sys/kernel/tracing/events/sched/sched_wakeup/id", "315\n");
}

static void test_sysfs(void)
{
	struct pmu_event ev = {0};
	check_int(pmu_event_parse("power/energy-pkg/", &ev, NULL), 0);
	check_int(ev.attr.type, 23);
	check_int(ev.attr.config, 2);
	check(ev.is_machine_wide);
	check_int(ev.nr_cpus, 2);
	check_int(ev.cpu[1], 18);
	check_str(ev.unit, "Joules");
	check_range(ev.scale * 1e10, 2.328, 2.329);
	check_int(pmu_event_parse("amd/event=0x1d0,umask=0x3,inv,ldlat=7/uk",
				  &ev, NULL),
		  0);
	check_int(ev.attr.config, AMD(0x1d0, 0x3) | INV);
	check_int(ev.attr.config1, 7);
	check(!ev.is_machine_wide && ev.attr.exclude_hv);
	check_int(pmu_event_parse("amd/config=0x123,config1=4/", &ev, NULL), 0);
	check_int(ev.attr.config, 0x123);
	check_int(ev.attr.config1, 4);
	refuse("amd/event=0x1000/", SMCO_FORMAT, "does not fit");
	refuse("amd/bad=1/", SMCO_FORMAT, "does not fit");
	refuse("amd/event=two/", SMCO_FORMAT, "not a number");
	refuse("amd/what=1/", SMCO_FORMAT, "no term 'what'; it has ");
	refuse("power/energy-pgk/", SMCO_NOTFOUND, "it has energy-pkg");
	/* Right, on another machine. */
	refuse("power/energy-ram/", SMCO_UNSUPPORTED,
	       "'power/energy-ram/' is not here: this CPU does not have it");
	refuse("cstate_pkg/c6-residency/", SMCO_UNSUPPORTED,
	       "no PMU 'cstate_pkg' on this machine");
}

static void test_tracepoints(void)
{
	struct pmu_event ev = {0};
	check_int(pmu_event_parse("sched:sched_switch", &ev, NULL), 0);
	check_int(ev.attr.type, PERF_TYPE_TRACEPOINT);
	check_int(ev.attr.config, 314);
	check_int(pmu_event_parse("sched:sched_switch:u", &ev, NULL), 0);
	check(ev.attr.exclude_kernel);
	refuse("sched:sched_swich", SMCO_NOTFOUND, "sched:sched_switch");
	refuse("sched:..", SMCO_NOTFOUND, "unknown event");
}

static void test_list(void)
{
	struct pmu_event *all = NULL;
	size_t nr = 0;
	check_int(pmu_event_parse_list("amd/event=1,umask=2/,page-faults:u,cs",
				       &all, &nr, NULL),
		  0);
	check_int(nr, 3);
	check_str(nr == 3 ? all[0].name : NULL, "amd/event=1,umask=2/");
	check_str(nr == 3 ? all[1].full : NULL, "page-faults:u");
	free(all);
	struct smco_err err = {0};
	check_int(pmu_event_parse_list("cs,", &all, &nr, &err), SMCO_FORMAT);
	check_int(pmu_event_parse_list("cs,faults,cs", &all, &nr, &err),
		  SMCO_FORMAT);
	check_str(err.msg, "event 'cs' is there twice");
	check_int(pmu_event_parse_list("cs,cycels", &all, &nr, &err),
		  SMCO_NOTFOUND);
}

/* In a list what is of other machines stays, and cannot be counted. */
static void test_absent(void)
{
	struct pmu_event *all = NULL;
	struct smco_err err = {0};
	size_t nr = 0;
	check_int(pmu_event_parse_list("cs,power/energy-ram/", &all, &nr, NULL),
		  0);
	check_int(nr, 2);
	check(nr == 2 && !*all[0].absent && *all[1].absent);
	check_str(nr == 2 ? all[1].name : NULL, "power/energy-ram/");
	check_int(nr == 2 ? pmu_try(&all[1], &err) : 0, SMCO_UNSUPPORTED);
	check_str(err.msg, "'power/energy-ram/' is not here: this CPU does not "
			   "have it");
	free(all);
}

struct seen {
	size_t nr, nr_here;
	char last[128];
};

static void see(void *ctx, const struct pmu_listed *l)
{
	struct seen *s = ctx;
	s->nr++;
	s->nr_here += l->is_here;
	snprintf(s->last, sizeof(s->last), "%s", l->name);
}

static void test_listing(void)
{
	struct seen s = {0};
	check_int(pmu_list("task-clock", see, &s), 1);
	check_str(s.last, "task-clock");
	s = (struct seen){0};
	check_int(pmu_list("sched:*", see, &s), 2);
	check_str(s.last, "sched:sched_wakeup");
	check_int(pmu_list("no such thing", see, &s), 0);
	/* A model that is not here has its events, too. */
	s = (struct seen){0};
	check(pmu_list("skl::*", see, &s) > 100);
	check(!strncmp(s.last, "skl::", 5));
	s = (struct seen){0};
	check_int(pmu_list("power/*", see, &s), 1);
	check_int(s.nr_here, 0);
	/* Where tracepoints are not known nothing of that kind is found. */
	char none[] = "/nothing/here";
	pmu_set_root(none);
	s = (struct seen){0};
	check_int(pmu_list("sched:sched_sw*", see, &s), 1);
	check_str(s.last, "SYSTEM:NAME");
	check_int(s.nr_here, 0);
	check_int(pmu_list("no such thing", see, &s), 0);
	check_int(pmu_list("no::such", see, &s), 0);
	pmu_set_root(root);
}

static void test_open(void)
{
	struct pmu_event ev;
	struct smco_err err = {0};
	pmu_event_parse("task-clock", &ev, NULL);
	check_int(pmu_try(&ev, NULL), 0);
	/* A type that no kernel has given out. */
	ev.attr.type = 1u << 30;
	check_int(pmu_try(&ev, &err), SMCO_UNSUPPORTED);
	check(strstr(err.msg, "cannot be counted") != NULL);
	pmu_event_parse("cycles", &ev, NULL);
	check_int(pmu_explain(&ev, 2, &err), SMCO_UNSUPPORTED);
	check(strstr(err.msg, "needs hardware counters") != NULL);
	check_int(pmu_explain(&ev, 16, &err), SMCO_BUSY);
	check(strstr(err.msg, "in use") != NULL);
	check_int(pmu_explain(&ev, 3, &err), SMCO_GONE);
	check_int(pmu_explain(&ev, 24, &err), SMCO_SYS);
	check(strstr(err.msg, "ulimit -n") != NULL);
	check_int(pmu_explain(&ev, 13, &err), SMCO_PERM);
	check(strstr(err.msg, "CAP_PERFMON") ||
	      strstr(err.msg, "perf_event_paranoid"));
}

int main(void)
{
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	test_encoding();
	test_modifiers();
	test_wrong_names();
	root = scratch_dir();
	make_sysfs();
	pmu_set_root(root);
	test_sysfs();
	test_tracepoints();
	test_list();
	test_absent();
	test_listing();
	test_open();
	pmu_set_root("");
	return tap_done();
}
