/* Phases: when threads were in them, and what happened there. */

const phases = report.phases.map((p, index) => ({
	index, phase: p,
	name: p.phase,
	byRun: runs.map(r => p.files[r.index]),
	tracks: runs.map(r => p.when.filter(w => w.file === r.index)),
}));

/* The first piece of @track that ends behind @time. */
function pieceBehind(track, time) {
	let low = 0, high = track.pieces.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (track.pieces[middle][0] + track.pieces[middle][1] <= time) low = middle + 1;
		else high = middle;
	}
	return low;
}

/* How long threads were in it within [@from, @to), how often they entered it, and
 * how many threads that were. */
function phaseWithin(entry, run, from, to) {
	let inside = 0, nr = 0, threads = 0;
	for (const track of entry.tracks[run]) {
		const before = inside;
		for (let i = pieceBehind(track, from); i < track.pieces.length && track.pieces[i][0] < to; i++) {
			const [start, length, part, entered] = track.pieces[i];
			const share = (Math.min(to, start + length) - Math.max(from, start)) / length;
			inside += part * share;
			nr += length > part ? entered * share : from <= start ? entered : 0;
		}
		if (inside > before) threads++;
	}
	return {inside, nr, threads};
}

/* Threads get a row each, the lowest that is free as long as the thread is seen
 * in the phase. */
function phaseRows(entry, run) {
	const tracks = entry.tracks[run].filter(t => t.pieces.length).map(track => {
		const last = track.pieces[track.pieces.length - 1];
		return {track, from: track.pieces[0][0], to: last[0] + last[1], size: 1};
	});
	return {tracks, most: pile(tracks)};
}

function phaseBars(entry, tracks) {
	return tracks.flatMap(({track, at}) => track.pieces.map(([start, length, part, entered]) => ({
		from: start, to: start + length, at, size: 1, share: part / length, kind: "hue-" + entry.index % 6,
		tip: () => [[entry.name], ["thread", track.tid === null ? "not known" : String(track.tid)],
			["process", track.pid === null ? "not known" : String(track.pid)],
			["from", pointText(start, 1e3)], [entered > 1 ? "together" : "for", timeText(length)],
			["entered", manyText(entered, "time")],
			...(part < length ? [["in it", timeText(part) + ", " + shareText(part / length)]] : [])],
	})));
}

class PhaseStrip extends BarStrip {
	constructor(entry) {
		const of = runs.map(r => phaseRows(entry, r.index)), most = Math.max(1, ...of.map(o => o.most));
		super(entry.name, run => phaseBars(entry, of[run.index].tracks),
			{text: entry.name + " phase", most, height: Math.min(120, 16 + 12 * most)});
		this.entry = entry;
		this.title.className = "name mono";
		this.now.classList.toggle("lines", runs.length > 1);
		this.label.classList.add("opens");
		this.label.addEventListener("click", () => showTab("phases"));
	}
	showNow() {
		const at = view.cursor, step = (view.to - view.from) / axis.width, s = view.selection || view;
		const [from, to] = at === null ? [s.from, s.to] : [at, at + step];
		this.now.replaceChildren(...runs.map(r => {
			const {inside, nr} = phaseWithin(this.entry, r.index, from, to);
			const timed = this.entry.byRun[r.index].timed || inside;
			const text = at === null ? manyText(nr, "time") + ", " + (timed || !nr ? timeText(inside) : "never timed") :
				inside ? shareText(inside / step) + " in it" : "not in it";
			return make("span", {}, runs.length > 1 ? make("i", {class: "swatch " + (r.index ? "b" : "a")}) : null,
				(runs.length > 1 ? " " : "") + text + "  ");
		}));
	}
	hover(event) {
		super.hover(event);
		if (!$("tip").hidden && $("tip").querySelector("td")) return;
		const time = axis.time(event.clientX - axis.left), step = (view.to - view.from) / axis.width;
		tip.show(event, [[this.name + " at " + pointText(time, step)], ...runs.map(r => {
			const {threads} = phaseWithin(this.entry, r.index, time, time + step);
			return [runs.length > 1 ? r.name : "threads in it", countText(threads)];
		})]);
	}
}

function phaseStrips() {
	return phases.filter(p => p.tracks.some(t => t.length)).map(p => new PhaseStrip(p));
}

/* --- the table --- */

/* What its counters counted in the phase, by run; null where that is not known. */
function phaseCount(entry, run, name) {
	const c = run.counters, counts = entry.byRun[run.index].counts;
	const i = c && counts ? c.events.findIndex(e => e.name === name) : -1;
	return i < 0 ? null : counts[i];
}

function phaseDetail(entry) {
	const blocks = runs.map(run => {
		const f = entry.byRun[run.index], c = run.counters;
		if (!c || !f.counts) return null;
		const line = (e, i) => {
			const all = c.counts[i].scaled, v = f.counts[i];
			return make("tr", {}, make("th", {}, e.name), make("td", {class: "number"}, countText(v)),
				make("td", {class: "number"}, all > 0 ? shareText(v / all) + " of all" : ""),
				make("td", {class: "number"}, f.count ? figures(v / f.count) + " each" : ""));
		};
		return make("div", {}, make("small", {}, runs.length > 1 ? run.name : "counted in it"), make("table", {}, ...c.events.map(line)));
	});
	const ran = runs.map(run => {
		const f = entry.byRun[run.index];
		return f.functions.length ? make("div", {}, make("small", {}, (runs.length > 1 ? run.name + ": " : "") + "where its time went, " +
			manyText(f.samples, "sample")), make("table", {}, ...f.functions.slice(0, 10).map(x => make("tr", {},
			make("td", {class: "number"}, shareText(x.self_ppb / 1e9)), make("th", {}, x.function + (x.kernel ? "  (kernel)" : "")))))) : null;
	});
	return make("div", {class: "columns"}, ...ran, ...blocks, make("div", {}, make("small", {}, "naps that began in it"), make("p", {},
		runs.map(r => { const f = entry.byRun[r.index]; return figures(f.naps) + ", " + byteSecondsText(f.naps_byte_seconds); }).join("; "))));
}

function phaseTable() {
	const s = view.selection, names = [];
	for (const run of runs)
		(run.counters ? run.counters.events : []).forEach(e => names.includes(e.name) || names.push(e.name));
	const of = key => (p, r) => p.byRun[r][key];
	const within = (p, r) => phaseWithin(p, r, s.from, s.to);
	const maybe = (has, columns) => has ? columns : [];
	return tableOf({
		id: "phases", rows: phases, sort: 1 + runs.length, text: p => p.name.toLowerCase() + " phase", detail: phaseDetail,
		columns: [
			{name: "phase", code: true, wide: true, value: p => p.name},
			...perRun("entered, run", of("count"), countText),
			...perRun("in it, run", (p, r) => p.byRun[r].timed || p.byRun[r].in_ns ? p.byRun[r].about_ns ?? p.byRun[r].in_ns : null, known(timeText),
				{bar: !s && runs.length === 1}),
			...maybe(s, perRun("entered, selection", (p, r) => within(p, r).nr, countText)),
			...maybe(s, perRun("in it, selection", (p, r) => within(p, r).inside, timeText, {bar: runs.length === 1})),
			...perRun("mean", of("mean_ns"), known(timeText)),
			...perRun("longest", (p, r) => p.byRun[r].timed ? p.byRun[r].longest_ns : null, known(timeText)),
			...perRun("timed", of("timed"), countText),
			...perRun("threads", of("threads"), countText),
			...maybe(report.samples && report.samples.samples, perRun("samples", of("samples"), countText)),
			...maybe(report.naps.length, perRun("naps began", of("naps"), figures)),
			...maybe(report.naps.length, perRun("unused", of("naps_byte_seconds"), byteSecondsText)),
			...names.flatMap(name => perRun(name, (p, r) => phaseCount(p, runs[r], name), known(countText))),
		],
		more: [names.length ? "What a thread's counters counted in an interval is the phase's by the share of it that the thread was in the phase; " +
			"what is in several phases, one within the other, counts for each." : null,
		report.left_out.phase_threads ? manyText(report.left_out.phase_threads, "thread more is", "threads more are") + " in the sums, but not in the strips." : null,
		...runs.flatMap(r => [r.meta["phases.ended"] && "No longer counted in " + r.meta["phases.ended"] + ".",
			r.meta["phases.beside"] && "Counted, not timed: " + r.meta["phases.beside"] + ".",
			r.meta["phases.late"] && "Loaded later: " + r.meta["phases.late"] + ".",
			r.meta["phases.missing"] && "In none of the program's libraries: " + r.meta["phases.missing"] + ".",
			r.meta["phases.failed"] && "Not seen in " + r.meta["phases.failed"] + "."])].filter(x => x).join(" ") || null,
	});
}

/* --- values of variables in each --- */

const phaseRanges = report.phases.flatMap(p => p.ranges.map(r => ({phase: p.phase, ...r})));

function phaseRangeTable() {
	const bound = key => ({number: true, value: r => r[key], text: r => r[key] === null ? "–" : String(r[key])});
	return tableOf({
		id: "phase-ranges", rows: phaseRanges, sort: 0, down: false,
		text: r => (r.phase + " " + r.variable + " " + r.type + " " + r.file).toLowerCase(),
		columns: [
			{name: "phase", code: true, wide: true, value: r => r.phase},
			{name: "variable", code: true, wide: true, value: r => r.variable},
			{name: "smallest", about: "of what was or may have been in it", ...bound("smallest")},
			{name: "largest", about: "of what was or may have been in it", ...bound("largest")},
			{name: "smallest, surely", about: "of what surely was in it", ...bound("sure_smallest")},
			{name: "largest, surely", about: "of what surely was in it", ...bound("sure_largest")},
			{name: "type", code: true, wide: true, value: r => r.type},
			{name: "declared", code: true, wide: true, value: r => r.file ? framePlace({file: r.file, line: r.line}) : ""},
		],
		more: ["The values that variables were given in each phase, of the whole run: they are looked at after each piece of time, and surely in a phase " +
			"if all of that was.",
		report.left_out.phase_ranges ? manyText(report.left_out.phase_ranges, "more is", "more are") + " not in this page (smco-report --phase-ranges)." : null,
		].filter(x => x).join(" "),
	});
}
