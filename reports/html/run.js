/* @o has as @key what @make returns, from when it is asked for it on. */
function later(o, key, make) {
	let value;
	Object.defineProperty(o, key, {enumerable: true, configurable: true, get() {
		if (make) value = make();
		make = null;
		return value;
	}});
}

/* What terse.h has written as @text. */
function unpack(text) {
	const {data, shapes, texts} = JSON.parse(text);
	const known = shapes.map(keys => keys.map(k => [k.slice(1), k[0]]));
	const value = v => {
		if (!Array.isArray(v)) return v;
		const keys = known[v.pop()];
		if (!keys) {
			for (let i = 0; i < v.length; i++) if (typeof v[i] === "object") v[i] = value(v[i]);
			return v;
		}
		const o = {};
		for (let i = 0; i < keys.length; i++) {
			const [key, kind] = keys[i], x = v[i];
			if (kind === "#") later(o, key, () => JSON.parse(x));
			else if (key === "__proto__") later(o, key, () => kind === "$" ? texts[x] : value(x));
			else o[key] = kind === "$" ? texts[x] : typeof x === "object" ? value(x) : x;
		}
		return o;
	};
	return value(data);
}

/* The data: reports/JSON.md describes them, html.c "strips". Each part is
 * read when it is first asked for. */
const report = {};
for (const e of document.querySelectorAll("script[type='application/json']"))
	later(report, e.id.replace("data-", ""), () => unpack(e.textContent));
const stacks = {
	get(id) { return this.frames.get(id); },
};
later(stacks, "frames", () => new Map(report.stacks.map(s => [s.id, s.frames])));
const FILL = ["run-a", "run-b", "hue-2", "hue-1", "hue-3", "hue-4", "hue-5", "hue-0"];

const runs = report.files.map((file, i) => {
	const strip = report.strips[i];
	const run = {
		index: i,
		name: file.file === null ? "run " + (i + 1) : file.file.replace(/.*\//, ""),
		colour: FILL[i % FILL.length],
		file,
		meta: strip.meta,
		target: strip.target_ppb === null ? null : strip.target_ppb / 1e9,
		strip,
		duration: Math.max(1, file.duration_ns),
		ledger: report.ledger.filter(l => l.file === i),
		counters: report.counters[i],
		processes: report.processes.filter(p => p.file === i),
	};
	later(run, "naps", () => report.naps.filter(n => n.file === i));
	/* By the number of their site; those of none have undefined. */
	later(run, "napsOfSite", () => {
		const of = new Map();
		for (const nap of run.naps) {
			const site = siteOf(nap);
			if (!of.has(site)) of.set(site, []);
			of.get(site).push(nap);
		}
		return of;
	});
	return run;
});
const duration = Math.max(...runs.map(r => r.duration));

/* --- stacks --- */

const baseName = path => path.replace(/.*\/(?=.)/, "");

function frameName(f) {
	if (f.function) return f.function;
	return f.module ? baseName(f.module) + "+" + f.offset : f.offset !== "0x0" ? f.offset : "?";
}

/* One directory says which of two list.c it is. */
function framePlace(f) {
	if (!f.file) return f.module && f.function ? "[" + baseName(f.module) + "]" : "";
	const parts = f.file.split("/").slice(-2).filter(p => p !== "" && p !== ".");
	return parts.join("/") + (f.line ? ":" + f.line : "");
}

/* Without what calls main() or a thread's function. */
function framesWithin(frames) {
	const outer = frames.findIndex(f => /^(__libc_start_(call_main|main|main_impl|main@@GLIBC_2.34)|start_thread)$/.test(f.function));
	const kept = outer < 0 ? frames.length : outer;
	const more = frames.slice(0, kept).findLastIndex(f => !/^(_start|_*clone3?)$/.test(f.function)) + 1;
	return more ? frames.slice(0, more) : frames;
}

function frameList(frames) {
	return make("ol", {class: "frames"}, ...framesWithin(frames).map(f =>
		make("li", {}, frameName(f), " ", make("small", {}, framePlace(f)))));
}

/* --- sites --- */

const siteOfStack = new Map();
const sites = report.sites.map((site, index) => {
	const frames = site.frames || [];
	for (const id of site.stacks) siteOfStack.set(id, index);
	const entry = {
		index, site, frames,
		name: frames.length ? frameName(frames[0]) : "(stack unknown)",
		place: frames.length ? framePlace(frames[0]) : "",
		byRun: runs.map(r => r.strip.sites[index][0]),
		asleep: runs.map(r => r.strip.sites[index][1]),
	};
	later(entry, "lines", () => frames.map(f => frameName(f) + " " + framePlace(f)).join("\n"));
	later(entry, "text", () => entry.lines.toLowerCase() || "(stack unknown)");
	return entry;
});

/* The number of a nap's site, undefined if it has none. */
function siteOf(nap) {
	const site = siteOfStack.get(nap.alloc_stack);
	return site === undefined ? siteOfStack.get(0) : site;
}
const endOf = nap => nap.start_ns + nap.length_ns;

/* How a nap ended, as few kinds as one can tell apart. */
function endKind(nap) {
	if (nap.ended === "never" || nap.ended === "freed" || nap.ended === "unwatched") return nap.ended;
	return "used";
}
const END_TEXT = {
	never: "still unused at the end", freed: "freed", unwatched: "watched no longer",
	read: "ended by a read", write: "ended by a write", syscall: "ended by a system call",
	access: "ended by an access",
};
