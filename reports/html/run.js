/* The data: reports/JSON.md describes "report", html.c "strips". */

const data = JSON.parse($("data").textContent);
const report = data.report;
const stacks = new Map(report.stacks.map(s => [s.id, s.frames]));
const FILL = ["run-a", "run-b", "hue-2", "hue-1", "hue-3", "hue-4", "hue-5", "hue-0"];

/* As smco-report has it, but for control characters. */
const shellWord = w => /^[\w@%+=:,./\u0080-\u{10ffff}-]+$/u.test(w) ? w : "'" + w.replace(/'/g, "'\\''") + "'";

const runs = report.files.map((file, i) => {
	const strip = data.strips[i];
	return {
		index: i,
		name: file.file === null ? "run " + (i + 1) : file.file.replace(/.*\//, ""),
		colour: FILL[i % FILL.length],
		command: file.argv ? file.argv.map(shellWord).join(" ") : file.command || "(command unknown)",
		file,
		meta: strip.meta,
		target: strip.target_ppb === null ? null : strip.target_ppb / 1e9,
		strip,
		duration: Math.max(1, file.duration_ns),
		ledger: report.ledger.filter(l => l.file === i),
		counters: report.counters[i],
		naps: report.naps.filter(n => n.file === i),
		processes: report.processes.filter(p => p.file === i),
	};
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
	return {
		index, site, frames,
		name: frames.length ? frameName(frames[0]) : "(stack unknown)",
		place: frames.length ? framePlace(frames[0]) : "",
		text: frames.map(f => frameName(f) + " " + framePlace(f)).join("\n").toLowerCase() || "(stack unknown)",
		byRun: runs.map(r => r.strip.sites[index][0]),
		asleep: runs.map(r => r.strip.sites[index][1]),
	};
});
for (const run of runs)
	for (const nap of run.naps) {
		const site = siteOfStack.get(nap.alloc_stack);
		nap.site = site === undefined ? siteOfStack.get(0) : site;
		nap.end_ns = nap.start_ns + nap.length_ns;
	}

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
