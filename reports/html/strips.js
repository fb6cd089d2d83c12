/* The strips that there are, and how each kind is drawn. */

/* --- lines --- */

class LineStrip extends Strip {
	/* @lines: one for each run or null; @format: a value for people. */
	constructor(name, lines, format, options = {}) {
		super(name, options.height || 42, name + " " + (options.group || ""));
		Object.assign(this, {lines, format, target: options.target, colour: options.colour, stack: options.stack});
		this.hint = options.note || "";
		this.title.append(make("span", {class: "aside", title: this.hint}, this.hint));
		this.note.remove();
	}
	colourOf(run) { return colours.get(runs.length > 1 || !this.colour ? run.colour : this.colour); }

	draw(c, width, height, shown) {
		const cols = shown.map(r => this.lines[r.index] && columns(this.lines[r.index], width, view.from, view.to));
		const {top, most} = this.scale(view.from, view.to);
		const y = v => height - 1 - Math.min(1, Math.max(0, v) / top) * (height - 7);
		if (this.stack && shown.length === 1) this.drawStack(c, width, height, shown[0], y);
		shown.forEach((r, i) => {
			if (!cols[i]) return;
			const colour = this.colourOf(r);
			if (!this.stack || shown.length > 1) {
				c.fillStyle = faded(colour, 0.13);
				trace(c, cols[i].peak, y, height, true);
				c.fillStyle = faded(colour, shown.length > 1 ? 0.12 : 0.22);
				trace(c, cols[i].mean, y, height, true);
			}
			c.strokeStyle = this.stack && shown.length === 1 ? colours.get("ink") : colour;
			c.lineWidth = 1.25;
			trace(c, cols[i].mean, y, height, false);
		});
		const targets = this.target ? shown.filter(r => this.target(r)) : [];
		c.setLineDash([5, 4]);
		for (const r of targets) {
			const at = Math.round(y(this.target(r))) + 0.5;
			c.strokeStyle = colours.get("target");
			c.lineWidth = 1;
			c.beginPath();
			c.moveTo(0, at);
			c.lineTo(width, at);
			c.stroke();
		}
		c.setLineDash([]);
		/* One above its line, the lower of two below. */
		const values = [...new Set(targets.map(r => this.target(r)))].sort((a, b) => b - a);
		c.textAlign = "right";
		c.fillStyle = colours.get("target");
		values.forEach((v, i) => c.fillText("target " + this.format(v), width - 6, y(v) + (i ? 8 : -7)));
		if (most > top) scaleText(c, this.format(top) + ", at the start up to " + this.format(most), 9);
		else if (cols.some(x => x) && !(targets.length && top <= this.target(targets[0]) * 1.31)) scaleText(c, this.format(top), 9);
	}
	/* What the height stands for, and the most there is. In all rows alike, so that they can be compared. */
	scale(from, to) {
		let most = 0;
		for (const line of this.lines) if (line) most = Math.max(most, line.peak(from, to) || 0);
		let top = most;
		for (const line of this.lines) if (line && line.usual !== undefined) top = Math.min(top, this.usual() * 1.3);
		for (const r of runs) if (this.target && this.target(r)) top = Math.max(top, this.target(r) * 1.3);
		return {top: top > 0 ? top : 1, most};
	}
	usual() { return Math.max(...this.lines.map(l => l ? l.usual : 0)); }
	drawStack(c, width, height, run, y) {
		const lines = this.stack(run);
		const below = new Array(Math.ceil(width)).fill(0);
		const layers = lines.map((line, k) => {
			const {mean} = columns(line, width, view.from, view.to);
			return {k, values: mean.map((v, x) => v === null ? null : (below[x] += v))};
		});
		/* From the highest down, each over the one above it. */
		for (const {k, values} of layers.reverse()) {
			c.fillStyle = colours.get("paper");
			trace(c, values, y, height, true);
			c.fillStyle = faded(colours.get("hue-" + k), 0.55);
			trace(c, values, y, height, true);
		}
	}
	showNow() {
		const at = view.cursor, s = view.selection || view;
		const texts = runs.map(r => {
			const line = this.lines[r.index];
			if (!line) return null;
			const step = (view.to - view.from) / axis.width;
			const v = at !== null ? line.value(at, at + step) : line.whole ? line.whole(s.from, s.to) : line.value(s.from, s.to);
			/* Of two there is room for the numbers only. */
			const what = at !== null || runs.length > 1 ? "" : line.whole ? "in all " : "mean ";
			return make("span", {}, runs.length > 1 ? make("i", {class: "swatch " + (r.index ? "b" : "a")}) : null,
				(runs.length > 1 ? " " : "") + (v === null ? "–" : what + this.format(v)) + "  ");
		});
		this.now.replaceChildren(...texts.filter(t => t));
	}
	hover(event) {
		const time = axis.time(event.clientX - axis.left), step = (view.to - view.from) / axis.width;
		const rows = [[this.name + " at " + pointText(time, step)]];
		for (const r of runs) {
			const line = this.lines[r.index];
			if (!line) continue;
			const v = line.value(time, time + step), p = line.peak(time, time + step);
			rows.push([runs.length > 1 ? r.name : "value", v === null ? "nothing known" : this.format(v)]);
			if (p !== null && v !== null && p > v * 1.005) rows.push(["largest of this pixel", this.format(p)]);
			if (this.stack && runs.length === 1 && v !== null)
				this.stack(r).forEach((l, k) => {
					const part = l.value(time, time + step);
					if (part) rows.push(["  " + MECHANISM_TEXT[k], this.format(part)]);
				});
		}
		if (this.hint) rows.push(["", this.hint]);
		tip.show(event, rows);
	}
}

/* --- bars: things that begin and end, as thick as they are large --- */

/*
 * Gives each of @bars {from, to, size} a place, at, where nothing else is while
 * it lasts, as low as there is one; returns how high that makes the pile.
 */
function pile(bars) {
	const live = []; /* by place */
	let height = 0;
	bars.sort((a, b) => a.from - b.from || b.to - a.to);
	for (const bar of bars) {
		let at = 0, nr = 0, place = -1;
		for (const other of live) {
			if (other.to <= bar.from) continue;
			live[nr++] = other;
			if (place < 0 && other.at - at >= bar.size) place = nr - 1;
			else if (place < 0) at = other.at + other.size;
		}
		live.length = nr;
		bar.at = at;
		live.splice(place < 0 ? nr : place, 0, bar);
		height = Math.max(height, at + bar.size);
	}
	return height;
}

class BarStrip extends Strip {
	/* @barsOf(run): {from, to, size, kind, label, tip()}, and share, how much
	 * of that time it was so; with options.most each has its place, too. They
	 * are made when they are first drawn. */
	constructor(name, barsOf, options = {}) {
		super(name, options.height || 48, options.text || name);
		this.isBytes = Boolean(options.lines);
		this.lines = options.lines || runs.map(() => null);
		later(this, "bars", () => runs.map(barsOf));
		later(this, "most", () => options.most ||
			Math.max(...this.bars.map(pile), ...this.lines.map(l => l ? l.peak(0, duration) || 0 : 0)));
	}
	/* Only bytes can be compared in one picture. */
	get rows() { return this.isBytes ? super.rows : runs.length; }
	inRow(row) { return this.isBytes ? super.inRow(row) : [runs[row]]; }

	draw(c, width, height, shown) {
		const room = height - (this.isBytes ? 6 : 3), y = v => height - 1 - v / this.most * room;
		const isOnly = shown.length === 1;
		for (const r of shown) {
			const line = this.lines[r.index];
			if (!line) continue;
			const {mean} = columns(line, width, view.from, view.to), colour = colours.get(isOnly ? "dim" : r.colour);
			c.fillStyle = faded(colour, isOnly ? 0.25 : 0.15);
			trace(c, mean, y, height, true);
			c.strokeStyle = colour;
			c.lineWidth = 1.25;
			if (!isOnly) trace(c, mean, y, height, false);
		}
		if (isOnly) this.drawBars(c, width, y, shown[0]);
		if (this.isBytes) scaleText(c, bytesText(this.most), 9);
	}
	drawBars(c, width, y, run) {
		for (const bar of this.bars[run.index]) {
			if (bar.to < view.from || bar.from > view.to) continue;
			const x = Math.max(-2, axis.x(bar.from)), w = Math.max(1, Math.min(width + 2, axis.x(bar.to)) - x);
			const top = y(bar.at + bar.size), h = y(bar.at) - top, gap = h > 4 ? 1 : 0;
			if (h > 3) {
				c.fillStyle = colours.get("paper");
				c.fillRect(x, top, w, h - gap);
			}
			c.fillStyle = faded(colours.get(bar.kind), bar.share === undefined ? 0.82 : 0.1 + 0.72 * bar.share);
			c.fillRect(x, top, w, Math.max(0.6, h - gap));
			if (!bar.label || h < 11 || w < 40) continue;
			c.save();
			c.beginPath();
			c.rect(x, top, w - 3, h);
			c.clip();
			c.fillStyle = colours.get("paper");
			c.textAlign = "left";
			c.fillText(bar.label, Math.max(0, x) + 5, top + (h - gap) / 2 + 0.5);
			c.restore();
		}
	}
	hover(event) {
		const {row, x, y} = this.rowAt(event), time = axis.time(x);
		const run = this.inRow(row).length > 1 ? null : this.inRow(row)[0];
		const slack = 2 * (view.to - view.from) / axis.width;
		const perPixel = this.most / (this.height - (this.isBytes ? 6 : 3)), at = (this.height - 1 - y) * perPixel;
		if (run) {
			const hit = this.bars[run.index].find(b => b.at - perPixel <= at && at <= b.at + b.size + perPixel &&
				b.from - slack <= time && time <= b.to + slack);
			if (hit) return tip.show(event, hit.tip());
		}
		const rows = [[this.name + " at " + pointText(time, slack)]];
		for (const r of runs)
			if (this.lines[r.index])
				rows.push([runs.length > 1 ? r.name : "unused", bytesText(this.lines[r.index].value(time, time + slack) || 0)]);
		return rows.length > 1 ? tip.show(event, rows) : tip.hide();
	}
	showNow() {
		const at = view.cursor, step = (view.to - view.from) / axis.width, s = view.selection || view;
		if (!this.isBytes) return this.now.replaceChildren(this.bars.map(b => countText(b.length)).join(", "));
		this.now.replaceChildren(...runs.map(r => {
			const line = this.lines[r.index];
			const text = at !== null ? bytesText(line && line.value(at, at + step) || 0) :
				byteSecondsText(line ? line.sum(s.from, s.to)[0] : 0) + (runs.length > 1 ? "" : ", mean " + bytesText(line.value(s.from, s.to) || 0));
			return make("span", {}, runs.length > 1 ? make("i", {class: "swatch " + (r.index ? "b" : "a")}) : null,
				(runs.length > 1 ? " " : "") + text + "  ");
		}));
	}
}

function napTip(nap) {
	const rows = [[bytesText(nap.size) + " unused for " + timeText(nap.length_ns)]];
	rows.push(["from", pointText(nap.start_ns, 1e6)]);
	rows.push(["exact to", "± " + timeText(nap.error_ns)]);
	rows.push(["", END_TEXT[nap.ended] + (nap.syscall ? " (" + nap.syscall + ")" : "")]);
	rows.push(["allocated", nap.alloc_ns === null ? "before the attach" : "at " + pointText(nap.alloc_ns, 1e6)]);
	if (nap.never_accessed) rows.push(["", "never accessed before"]);
	if (nap.head_unseen) rows.push(["", "its beginning was not watched"]);
	const ended = stacks.get(nap.ended_stack);
	if (ended && ended.length) rows.push([nap.seen_nearby ? "seen nearby" : "by", frameName(ended[0]) + " " + framePlace(ended[0])]);
	rows.push(["block", nap.addr + " of process " + nap.pid]);
	return rows;
}

class SiteStrip extends BarStrip {
	constructor(entry) {
		super(entry.name, run => (run.napsOfSite.get(entry.index) || []).map(n =>
			({from: n.start_ns, to: endOf(n), size: n.size, kind: endKind(n), tip: () => napTip(n)})), {
			text: entry.text,
			height: 50,
			lines: runs.map(r => entry.asleep[r.index] && asleepLine(r, entry.asleep[r.index])),
		});
		this.site = entry;
		this.title.className = "name mono";
		this.title.prepend(make("span", {class: "rank"}, String(entry.index + 1)));
		this.note.textContent = entry.place;
		this.label.classList.add("opens");
		this.label.addEventListener("click", () => showSite(entry.index));
		this.note.title = entry.lines;
	}
}

/* --- which there are --- */

/* The counters' events over time: their own rate, and what follows from it. */
function counterStrips() {
	const byName = new Map(), out = [];
	const add = (key, name, format, note, run, line, colour) => {
		if (!byName.has(key)) byName.set(key, {name, format, note, colour, lines: runs.map(() => null)});
		byName.get(key).lines[run.index] = line;
	};
	for (const run of runs) {
		const c = run.counters;
		if (!c) continue;
		const b = c.series.bucket_ns, sums = c.series.scaled;
		const of = (role, level = null) => {
			const i = c.events.findIndex((e, k) => e.role === role && e.level === level && c.counts[k].scaled > 0);
			return i < 0 ? null : sums[i];
		};
		const line = (s, den) => new BucketLine(run, b, s, den, run.duration);
		const times = (s, by) => s.map(v => v * by);
		c.events.forEach((e, i) => {
			const s = sums[i], key = e.name;
			const clock = of("task-clock"), cpu = clock && times(clock, 1 / NS);
			const instructions = of("instructions", e.level), cycles = of("cycles", e.level);
			if (e.role === "task-clock")
				return add(key, e.name, v => figures(v) + " CPUs", "CPUs used", run, line(times(s, 1 / NS), null), "hue-0");
			if (e.role === "tsc" || e.role === "cycles")
				return add(key, e.name, v => scaled(v, [" Hz", " kHz", " MHz", " GHz"], 1000),
					cpu ? "per second of CPU time" : "per second", run, line(s, cpu), "hue-2");
			const unit = e.unit ? " " + e.unit : "";
			add(key, e.name, v => shortText(v) + unit + "/s", "per second", run, line(times(s, e.scale || 1), null),
				e.role === "instructions" ? "hue-1" : e.role === "misses" ? "hue-4" : "hue-5");
			if (e.role === "instructions" && cycles) {
				add(key + " per cycle", e.name + " per cycle", v => figures(v), "per cycle (IPC)", run, line(s, cycles), "hue-1");
				add(key + " CPI", "cycles per instruction", v => figures(v), "CPI", run, line(cycles, s), "hue-2");
			}
			if (e.role === "misses" && instructions)
				add(key + " per 1000", e.name + " per 1000 instructions", v => figures(v), "", run,
					line(times(s, 1000), instructions), "hue-4");
		});
	}
	for (const {name, format, note, lines, colour} of byName.values())
		out.push(new LineStrip(name, lines, format, {note, colour, group: "counter"}));
	return out;
}

function overheadStrips() {
	const all = runs.map(r => r.ledger.length ? overheadLines(r) : null), out = [];
	if (!all.some(l => l)) return out;
	out.push(new LineStrip("Overhead", all.map(l => l && l.total), shareText, {
		height: 64, target: r => r.target, stack: r => all[r.index] ? all[r.index].of : [],
		note: "in the 10 s before", group: "overhead target",
	}));
	if (runs.some(r => r.ledger.some(l => l.local_target_ppb !== null)))
		out.push(new LineStrip("Local target", runs.map(r => r.ledger.length ? ledgerLine(r, "local_target_ppb", v => v / 1e9) : null), shareText,
			{height: 40, colour: "hue-1", note: "of each block", group: "overhead local target"}));
	const blocks = v => figures(v) + (v === 1 ? " block" : " blocks");
	for (const [key, name, note] of [["armed", "Watched now", "blocks"], ["known", "Known blocks", "alive, large enough"]])
		if (runs.some(r => r.ledger.some(l => l[key])))
			out.push(new LineStrip(name, runs.map(r => r.ledger.length ? ledgerLine(r, key) : null), blocks,
				{height: 40, colour: "hue-5", note, group: "overhead"}));
	return out;
}

function processBars(run) {
	const bars = run.processes.map(p => ({
		size: 1, from: p.start_ns, to: p.end_ns === null ? run.duration : p.end_ns, kind: "hue-5",
		label: p.pid + " " + (p.command || ""),
		tip: () => [["process " + p.pid], ["command", p.command || "unknown"], ["came", p.came],
			["from", pointText(p.start_ns, 1e6)], ["to", p.end_ns === null ? "its end was not seen" : pointText(p.end_ns, 1e6)]],
	}));
	return bars.concat((run.counters ? run.counters.threads : []).filter(t => t.tid !== null && t.tid !== t.pid).map(t => ({
		size: 1, from: t.start_ns, to: t.end_ns, kind: "hue-0", label: "thread " + t.tid,
		tip: () => [["thread " + t.tid + " of process " + t.pid], ["counted from", pointText(t.start_ns, 1e6)], ["to", pointText(t.end_ns, 1e6)]]
			.concat(run.counters.events.map((e, i) => [e.name, countText(t.counts[i].scaled)])),
	})));
}

function processStrips() {
	const bars = runs.map(processBars), most = Math.max(...bars.map(b => b.length));
	return most > 1 ? [new BarStrip("Processes and threads", run => bars[run.index], {
		height: Math.min(120, 12 + 14 * Math.max(...bars.map(pile))), text: "processes threads",
	})] : [];
}

function siteStrips() {
	const out = [];
	if (runs.some(r => r.strip.asleep.bytes.length))
		out.push(new LineStrip("Unused memory", runs.map(r => asleepLine(r, r.strip.asleep)), bytesText,
			{height: 54, colour: "hue-3", note: "in naps of all sites", group: "naps"}));
	for (const entry of sites)
		if (entry.asleep.some(a => a)) out.push(new SiteStrip(entry));
	return out;
}

/* A heading, and strips below it; of many the first ones until asked. */
function addGroup(title, legend, strips, first) {
	if (!strips.length) return;
	const box = make("div", {class: "box"});
	const heading = make("div", {class: "heading", "aria-expanded": "true", onclick() {
		box.hidden = !box.hidden;
		heading.setAttribute("aria-expanded", String(!box.hidden));
		painter.some();
	}}, make("b", {}, title), make("span", {class: "legend"}, ...legend));
	let all = strips.length <= first;
	const button = make("button", {onclick() { all = true; refilter(); }});
	const more = make("div", {class: "more"}, button);
	const refilter = () => {
		let nr = 0, rest = 0;
		for (const s of strips) {
			const passes = view.passes(s.text);
			s.element.hidden = !passes || (!all && nr >= first);
			nr += passes;
			rest += passes && s.element.hidden;
		}
		more.hidden = !rest;
		button.textContent = rest + " more";
		heading.hidden = view.filter !== "" && !nr;
		painter.some();
	};
	for (const s of strips) s.layOut();
	box.append(...strips.map(s => s.element), more);
	$("strips").append(heading, box);
	view.on("filter", refilter);
	refilter();
}

function buildStrips() {
	const kinds = runs.length > 1 ? [] : MECHANISM_TEXT.map((m, k) => [m, k]).filter(([, k]) =>
		runs.some(r => r.ledger.some(l => l.by_mechanism_ns[MECHANISMS[k]]))).map(([m, k]) => swatch("m" + k, m));
	addGroup("Cost", kinds, overheadStrips(), 9);
	addGroup("Memory", [swatch("never", "never used again"), swatch("used", "used again"), swatch("freed", "freed"),
		swatch("unwatched", "watched no longer"), report.left_out.naps ? swatch("unlisted", "too many to show one by one") : null], siteStrips(), 9);
	addGroup("Phases", ["a row for each thread; the fainter, the less of that time"], phaseStrips(), 12);
	addGroup("Counters", [], counterStrips(), 40);
	addGroup("Processes", [], processStrips(), 1);
	if (!Strip.all.length)
		$("strips").append(make("p", {class: "more"}, "Nothing over time is in this trace: no counters, no naps, no phases, no ledger."));
}
