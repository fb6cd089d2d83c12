/* The tables below the strips; with an interval selected they tell of it. */

const inWords = () => view.selection ? "selection" : "run";
const interval = () => view.selection || {from: 0, to: duration};

/* A column for each run where there are several. */
function perRun(name, value, text, options = {}) {
	return runs.map(r => ({
		name: runs.length > 1 ? name + ", " + r.name : name, number: true,
		value: row => value(row, r.index), text: row => text(value(row, r.index)), ...options,
	}));
}
const known = text => v => v === null || v === undefined ? "–" : text(v);

/* Byte seconds of a site within the selection. */
function siteWithin(entry, run) {
	const all = entry.byRun[run].byte_seconds, s = view.selection;
	if (!s) return all;
	if (!entry.asleep[run]) return all ? null : 0;
	return asleepLine(runs[run], entry.asleep[run]).sum(s.from, s.to)[0];
}

function who(culprit) {
	if (!culprit) return "not known";
	const frames = stacks.get(culprit.stack);
	const name = frames && frames.length ? frameName(frames[0]) + " " + framePlace(frames[0]) : "stack not known";
	return name + (culprit.syscall ? " (" + culprit.syscall + ")" : "") + ", " + manyText(culprit.naps, "nap") +
		(culprit.seen_nearby ? ", seen running nearby" : "");
}

function siteDetail(entry) {
	const s = entry.site, ended = Object.entries(s.ended_by);
	return make("div", {class: "columns"},
		make("div", {}, make("small", {}, "allocated by"), frameList(entry.frames)),
		make("div", {}, make("small", {}, "naps"), make("table", {}, ...Object.entries(s.unused.ended).filter(([, n]) => n).map(
			([how, n]) => make("tr", {}, make("th", {}, END_TEXT[how] + " "), make("td", {class: "number"}, countText(n))))),
		...ended.map(([how, c]) => make("div", {}, make("small", {}, END_TEXT[how] + ", mostly by "), who(c))),
		make("div", {}, make("small", {}, "used before by "), who(s.last_used_by))));
}

function siteTable() {
	return tableOf({
		id: "sites", rows: sites, text: e => e.text, sort: view.selection ? 3 : 2, detail: siteDetail,
		columns: [
			{name: "#", number: true, value: e => e.index + 1},
			{name: "allocation site", wide: true, code: true, value: e => e.name,
				text: e => e.name + "  " + e.place, title: e => e.lines},
			...perRun("unused, run", (e, r) => e.byRun[r].byte_seconds, byteSecondsText, {bar: !view.selection && runs.length === 1}),
			...(view.selection ? perRun("selection", siteWithin, known(byteSecondsText), {bar: runs.length === 1}) : []),
			...perRun("naps", (e, r) => e.byRun[r].naps, countText),
			...perRun("longest", (e, r) => e.byRun[r].naps ? e.byRun[r].longest_ns : null, known(timeText)),
			...perRun("unused at the end", (e, r) => e.byRun[r].unused_bytes, bytesText),
			...perRun("allocations", (e, r) => e.byRun[r].allocations, countText),
			...perRun("allocated", (e, r) => e.byRun[r].bytes, bytesText),
		],
		more: report.left_out.sites ? manyText(report.left_out.sites, "site with less is", "sites with less are") + " not in this page (smco-report --sites)." : null,
	});
}

/* Open a site in the table, also where the filter or a page of it hides it. */
function showSite(index) {
	if (!view.passes(sites[index].text)) {
		$("filter").value = "";
		view.setFilter("");
	}
	showTab("sites");
	const row = () => [...document.querySelectorAll("#table-sites tr.row")].find(tr => tr.children[0].dataset.value === String(index + 1));
	for (let more; !row() && (more = document.querySelector("#panel .rest button")) && !more.parentNode.hidden;) more.click();
	row().click();
	row().scrollIntoView({block: "nearest"});
	for (const s of Strip.all) s.element.classList.toggle("chosen", s.site === sites[index]);
}

function napTable() {
	const s = interval();
	const rows = report.naps.filter(n => endOf(n) > s.from && n.start_ns < s.to);
	const name = n => siteOf(n) === undefined ? "(stack unknown)" : sites[siteOf(n)].name;
	return tableOf({
		id: "naps", rows, sort: 3, text: n => siteOf(n) === undefined ? "" : sites[siteOf(n)].text,
		detail: n => make("div", {class: "columns"}, ...[["allocated by", n.alloc_stack], ["used before by", n.last_stack],
			[n.seen_nearby ? "seen running when it ended" : "ended by", n.ended_stack]].map(([what, id]) => make("div", {},
			make("small", {}, what), stacks.get(id) ? frameList(stacks.get(id)) : make("p", {class: "dim"}, "not known")))),
		columns: [
			...(runs.length > 1 ? [{name: "run", value: n => runs[n.file].name}] : []),
			{name: "allocation site", wide: true, code: true, value: name},
			{name: "size", number: true, value: n => n.size, text: n => bytesText(n.size)},
			{name: "unused", number: true, value: n => n.size * n.length_ns / NS, text: n => byteSecondsText(n.size * n.length_ns / NS)},
			{name: "length", number: true, value: n => n.length_ns, text: n => timeText(n.length_ns)},
			{name: "±", number: true, value: n => n.error_ns, text: n => timeText(n.error_ns)},
			{name: "from", number: true, value: n => n.start_ns, text: n => pointText(n.start_ns, 1e6)},
			{name: "how it ended", value: n => END_TEXT[n.ended] + (n.syscall ? " (" + n.syscall + ")" : "")},
			...(report.naps.some(n => n.head_unseen) ?
				[{name: "not watched", value: n => n.head_unseen ? "its beginning" : ""}] : []),
			{name: "process", number: true, value: n => n.pid},
		],
		more: report.left_out.naps ? "The largest ones; " + countText(report.left_out.naps) +
			" with fewer byte seconds are in the strips and sums, but not listed (smco-report --naps)." : null,
	});
}

function counterTable() {
	const s = view.selection, rows = new Map();
	for (const run of runs)
		(run.counters ? run.counters.events : []).forEach((e, i) => {
			if (!rows.has(e.name)) rows.set(e.name, {name: e.name, unit: e.unit, of: runs.map(() => null)});
			const c = run.counters, line = new BucketLine(run, c.series.bucket_ns, c.series.scaled[i], null, run.duration);
			rows.get(e.name).of[run.index] = {
				total: c.counts[i].scaled, raw: c.counts[i].count, share: c.counts[i].enabled_ns ? c.counts[i].running_ns / c.counts[i].enabled_ns : null,
				within: s ? line.sum(s.from, s.to)[0] : null, rate: line.value(interval().from, interval().to),
			};
		});
	const get = key => (row, r) => row.of[r] && row.of[r][key];
	return tableOf({
		id: "counters", rows: [...rows.values()], text: r => r.name.toLowerCase() + " counter", down: false,
		columns: [
			{name: "event", value: r => r.name, code: true},
			...perRun("count, run", get("total"), known(countText)),
			...(s ? perRun("selection", get("within"), known(countText)) : []),
			...perRun("per second, " + inWords(), get("rate"), known(v => shortText(v) + "/s")),
			...perRun("counted", get("share"), known(shareText), {about: "share of the time in which it was on the hardware; counts are scaled by it"}),
		],
		more: [...new Set(runs.flatMap(r => r.counters ? [r.counters.missing && "Not counted: " + r.counters.missing + ".",
			r.counters.failed && "Not counted: " + r.counters.failed + ".", r.counters.stops && "Also counted: " + r.counters.stops + ".",
			r.counters.lost && "Groups that lost their counters to somebody else: " + countText(r.counters.lost) + "."] : []))].filter(x => x).join(" ") || null,
	});
}

function costTable() {
	const s = interval(), rows = [];
	for (const run of runs) {
		if (!run.ledger.length) continue;
		const a = view.selection ? ledgerAt(run, s.from) : null, b = view.selection ? ledgerAt(run, s.to) : run.ledger[run.ledger.length - 1];
		const minus = f => b ? f(b) - (a ? f(a) : 0) : 0;
		const spent = minus(l => l.spent_ns), free = minus(l => l.run_ns) - spent;
		const row = (what, ns, more = null) => rows.push({run, what, ns, share: free > 0 ? ns / free : null, more});
		row("in all", spent, "target " + (run.target === null ? "unlimited" : shareText(run.target)) + ", worst 10 s window " +
			shareText(run.ledger[run.ledger.length - 1].worst_window_ppb / 1e9));
		MECHANISMS.forEach((m, i) => row(MECHANISM_TEXT[i], minus(l => l.by_mechanism_ns[m]),
			m === "stops" ? manyText(minus(l => l.stops), "stop") : null));
	}
	return tableOf({
		id: "cost", rows, sort: runs.length > 1 ? 0 : 2, down: runs.length < 2, text: () => "overhead",
		columns: [
			...(runs.length > 1 ? [{name: "run", value: r => r.run.name}] : []),
			{name: "lost to, " + inWords(), value: r => r.what},
			{name: "overhead", number: true, value: r => r.share, text: r => r.share === null ? "–" : shareText(r.share)},
			{name: "time", number: true, bar: true, value: r => r.ns, text: r => timeText(r.ns)},
			{name: "", value: r => r.more},
		],
	});
}

function subscriptText(s) {
	const sign = s.offset < 0 ? " \u2212 " : " + ";
	return "subscript" + (s.offset ? sign + Math.abs(s.offset) : "") + ": " + s.smallest + " to " + s.largest + " of " + s.of +
		(s.file ? ", " + framePlace({file: s.file, line: s.line}) : "");
}

function rangeTable() {
	const value = v => v === null ? "–" : String(v);
	return tableOf({
		id: "ranges", rows: report.ranges, sort: 0, down: false, text: r => (r.variable + " " + r.type + " " + r.file).toLowerCase(),
		columns: [
			{name: "variable", code: true, wide: true, value: r => r.variable},
			{name: "smallest", number: true, value: r => r.smallest, text: r => value(r.smallest)},
			{name: "largest", number: true, value: r => r.largest, text: r => value(r.largest)},
			{name: "type", code: true, wide: true, value: r => r.type},
			{name: "declared", code: true, wide: true, value: r => r.file ? framePlace({file: r.file, line: r.line}) : ""},
			{name: "watched", number: true, value: r => r.watched_ppb, text: r => r.watched_ppb === null ? "–" : shareText(r.watched_ppb / 1e9)},
			{name: "may be a mistake", value: r => r.subscript ? subscriptText(r.subscript) : r.finding},
			{name: "why not watched", value: r => r.unwatched},
		],
		more: report.left_out.ranges ? manyText(report.left_out.ranges, "more is", "more are") + " not in this page (smco-report --ranges)." : null,
	});
}

function threadTable() {
	const rows = report.processes.map(p => ({run: runs[p.file], pid: p.pid, tid: null, name: p.command, from: p.start_ns, to: p.end_ns,
		unused: p.unused.byte_seconds, counts: null}));
	for (const run of runs)
		for (const t of run.counters ? run.counters.threads : [])
			rows.push({run, pid: t.pid, tid: t.tid, name: t.tid !== null ? "thread" : t.pid ? "not followed" : "the machine", from: t.start_ns, to: t.end_ns, unused: null,
				counts: t.counts});
	const names = [];
	for (const run of runs)
		(run.counters ? run.counters.events : []).forEach(e => names.includes(e.name) || names.push(e.name));
	const count = (r, name) => {
		const i = r.counts ? r.run.counters.events.findIndex(e => e.name === name) : -1;
		return i < 0 ? null : r.counts[i].scaled;
	};
	return tableOf({
		id: "threads", rows, sort: 0, down: false, text: r => r.pid + " " + r.tid + " " + (r.name || "").toLowerCase(),
		columns: [
			...(runs.length > 1 ? [{name: "run", value: r => r.run.name}] : []),
			{name: "process", number: true, value: r => r.pid},
			{name: "thread", number: true, value: r => r.tid, text: r => r.tid === null ? "" : String(r.tid)},
			{name: "what", wide: true, value: r => r.name || ""},
			{name: "from", number: true, value: r => r.from, text: r => pointText(r.from, 1e6)},
			{name: "to", number: true, value: r => r.to, text: r => r.to === null ? "–" : pointText(r.to, 1e6)},
			{name: "unused", number: true, value: r => r.unused, text: r => r.unused === null ? "" : byteSecondsText(r.unused)},
			...names.map(name => ({name, number: true, value: r => count(r, name), text: r => count(r, name) === null ? "" : countText(count(r, name))})),
		],
		more: report.left_out.threads ? manyText(report.left_out.threads, "more thread is", "more threads are") + " in the sums only." : null,
	});
}

function functionTable() {
	const s = report.samples;
	return tableOf({
		id: "functions", rows: s.functions, sort: 1, text: f => (f.function + " " + f.module).toLowerCase(),
		columns: [
			{name: "function", code: true, wide: true, value: f => f.function + (f.kernel ? "  (kernel)" : "")},
			{name: "self", number: true, bar: true, value: f => f.self_ppb / 1e9, text: f => shareText(f.self_ppb / 1e9)},
			{name: "with what it calls", number: true, value: f => f.total_ppb / 1e9, text: f => shareText(f.total_ppb / 1e9)},
			{name: "samples, self", number: true, value: f => f.self, text: f => countText(f.self)},
			{name: "samples", number: true, value: f => f.total, text: f => countText(f.total)},
			{name: "module", wide: true, value: f => baseName(f.module), title: f => f.module},
		],
		more: [manyText(s.samples, "sample") + " of " + (s.event || "?") + (s.hz ? ", up to " + countText(s.hz) + " a second" : "") +
			(s.lost ? ", " + countText(s.lost) + " lost" : "") + (s.paused_ns ? ", none for " + timeText(s.paused_ns) + " to keep to the target" : "") + ".",
		s.failed, view.selection ? "Of the whole run, not of the selection." : null].filter(x => x).join(" "),
	});
}

function aboutTable() {
	const keys = [...new Set(runs.flatMap(r => Object.keys(r.meta)))];
	return tableOf({
		id: "about", rows: keys, sort: 0, down: false, text: k => k.toLowerCase(),
		columns: [{name: "key", value: k => k, code: true}, ...runs.map(r => ({name: r.name, value: k => r.meta[k] ?? null, code: true}))],
	});
}

/* --- tabs --- */

const tabs = [
	["sites", "Allocation sites", () => sites.length > 0, siteTable],
	["naps", "Naps", () => report.naps.length > 0, napTable],
	["ranges", "Ranges", () => report.ranges.length > 0, rangeTable],
	["phase-ranges", "Ranges by phase", () => phaseRanges.length > 0, phaseRangeTable],
	["phases", "Phases", () => phases.length > 0, phaseTable],
	["counters", "Counters", () => runs.some(r => r.counters), counterTable],
	["cost", "Cost", () => runs.some(r => r.ledger.length), costTable],
	["functions", "Functions", () => report.samples && report.samples.samples > 0, functionTable],
	["flame", "Flame graph", () => flame.weight !== undefined, flamePanel],
	["threads", "Processes and threads", () => true, threadTable],
	["about", "About the run", () => true, aboutTable],
].filter(t => t[2]());
let openTab = tabs[0][0];

function showTab(id = openTab) {
	openTab = id;
	for (const b of $("tabs").children) {
		b.setAttribute("aria-selected", String(b.dataset.tab === id));
		b.tabIndex = b.dataset.tab === id ? 0 : -1;
	}
	$("panel").replaceChildren(tabs.find(t => t[0] === id)[3]());
}

function buildTabs() {
	$("tabs").replaceChildren(...tabs.map(([id, name]) =>
		make("button", {role: "tab", "data-tab": id, onclick: () => showTab(id)}, name)));
	$("tabs").addEventListener("keydown", e => {
		const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
		const next = tabs[(tabs.findIndex(t => t[0] === openTab) + by + tabs.length) % tabs.length];
		if (by) showTab(next[0]);
		if (by) $("tabs").querySelector("[aria-selected=true]").focus();
	});
	showTab();
}

function showInterval() {
	const s = view.selection, step = (view.to - view.from) / axis.width;
	$("interval").hidden = !s;
	$("selection").hidden = !s;
	$("zoom-selection").disabled = !s;
	if (s) $("interval").replaceChildren(
		make("span", {}, "Selected: " + pointText(s.from, step) + " to " + pointText(s.to, step) + ", " + timeText(s.to - s.from)),
		make("button", {onclick: zoomToSelection}, "Zoom to it"), make("button", {onclick: () => view.select(null)}, "Clear"));
}
