/*
 * Runs in the page, for t6201-html-browser.sh: uses it as a person would and
 * writes TAP into an element of its own. The page's own names are in scope.
 */
"use strict";
(() => {
	const lines = [];
	let nr = 0;
	function check(what, ok, more = "") {
		nr++;
		lines.push((ok ? "ok " : "not ok ") + nr + " - " + what + (ok ? "" : " # " + String(more).replace(/\s+/g, " ")));
	}
	const near = (a, b, by = 1e-3) => Math.abs(a - b) <= by * Math.max(1, Math.abs(a), Math.abs(b));
	const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
	const rowsOf = id => [...document.querySelectorAll(`#table-${id} tbody tr.row`)];
	const numbers = (id, column) => rowsOf(id).map(tr => Number(tr.children[column].dataset.value));
	const shown = s => s.element.getClientRects().length > 0;
	/* Scroll to a strip, and wait until it shows what holds now. */
	async function shows(strip) {
		strip.element.scrollIntoView({block: "nearest"});
		while (strip.isDirty || strip.isStale) {
			$("timeline").dispatchEvent(new Event("scroll"));
			await frame();
		}
	}

	/* How much of a canvas is not as empty as its first column. */
	function isDrawn(canvas) {
		const copy = make("canvas", {width: canvas.width, height: canvas.height}), c = copy.getContext("2d", {willReadFrequently: true});
		c.drawImage(canvas, 0, 0);
		const d = c.getImageData(0, 0, canvas.width, canvas.height).data;
		const seen = new Set();
		for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 24 | d[i + 1] << 16 | d[i + 2] << 8 | d[i + 3]);
		return seen.size > 3;
	}
	const pixels = canvas => canvas.toDataURL();
	function at(strip, time, type, more = {}) {
		const box = strip.canvas.getBoundingClientRect();
		strip.canvas.dispatchEvent(new PointerEvent(type, {bubbles: true, cancelable: true, button: 0, pointerId: 1,
			clientX: axis.left + axis.x(time), clientY: box.top + box.height / 2, ...more}));
	}
	/* Pointer capture is for real pointers only. */
	HTMLElement.prototype.setPointerCapture = () => {};

	async function drawing() {
		check("no script but the page's own ran", !document.title.includes("pwned") && !Object.prototype.polluted);
		check("there are strips", Strip.all.length > 0);
		const lines = [...document.querySelectorAll("#runs .run")].map(e => e.querySelector(".facts").textContent);
		check("a line for each run", lines.length === runs.length && $("runs").children.length === runs.length);
		for (const r of runs) {
			const last = r.ledger[r.ledger.length - 1], nr = sites.reduce((n, e) => n + e.byRun[r.index].naps, 0);
			const said = what => Number((lines[r.index].match(what) || ["", "-1"])[1].replace(/[^-\d.]/g, ""));
			check("what it cost", last ? near(said(/overhead (\S+) %/) * 1e7, last.overhead_ppb, 5e-3) : said(/overhead/) === -1, lines[r.index]);
			check("its naps", nr ? said(/unused in ([\d\s]*\d)/) === nr : said(/unused/) === -1, lines[r.index]);
			check("what was run", document.querySelectorAll("#runs code")[r.index].textContent.includes("<script>document.title"));
		}
		check("the overview is drawn", isDrawn($("overview")));
		const dearStart = {lines: [{peak: () => 2665, usual: 10}], usual: () => 10, target: () => 10};
		const scale = LineStrip.prototype.scale.call(dearStart, 0, duration);
		const many = [0, 0.6, 1, 2, 1234].map(n => manyText(n, "nap was", "naps were")).join("; ");
		check("one is one", many === "0 naps were; 1 nap was; 1 nap was; 2 naps were; 1\u202f234 naps were", many);
		check("nowhere are there 1 of many", !/(^|[^\d\s.,])\s*1 (naps|samples|records|times|stops|sites|threads)\b/.test(document.body.innerText),
			(document.body.innerText.match(/.{20}1 (naps|samples|records|times|stops|sites|threads)\b.*/) || [""])[0]);
		check("a dear start leaves the rest its height", near(scale.top, 13, 1e-9) && scale.most === 2665, JSON.stringify(scale));
		check("what was found comes before what it cost", tabs.findIndex(t => t[0] === "ranges") < tabs.findIndex(t => t[0] === "cost"));
		check("the ruler is drawn", isDrawn($("ruler")));
		$("timeline").style.flexBasis = "5000px";
		painter.all();
		await frame();
		for (const s of Strip.all.filter(shown).slice(0, 30)) check("drawn: " + JSON.stringify(s.name).slice(0, 30), isDrawn(s.canvas));
	}

	async function zooming() {
		const strip = Strip.all.find(shown), before = pixels(strip.canvas), whole = view.to - view.from;
		const middle = duration * 0.4;
		$("timeline").dispatchEvent(new WheelEvent("wheel", {deltaY: -120, ctrlKey: true, bubbles: true, cancelable: true,
			clientX: axis.left + axis.x(middle)}));
		check("Ctrl and the wheel zoom in", view.to - view.from < whole * 0.8);
		check("around the mouse", near(axis.time(middle / duration * axis.width), middle, 0.01));
		await frame();
		check("the picture follows", pixels(strip.canvas) !== before);
		const from = view.from, length = view.to - view.from;
		document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "d", bubbles: true}));
		check("D moves on", view.from > from && near(view.to - view.from, length));
		for (let i = 0; i < 200; i++) view.zoom(0.5);
		check("zooming in ends at a microsecond", view.to - view.from >= 999 && isFinite(view.from));
		for (let i = 0; i < 20; i++) view.move(5);
		check("moving ends at the end", view.to <= duration + 1 && view.from >= 0);
		$("zoom-all").click();
		check("All shows all", view.from === 0 && view.to === duration);
	}

	async function selecting() {
		const strip = Strip.all.find(shown);
		at(strip, duration * 0.2, "pointerdown");
		at(strip, duration * 0.5, "pointermove");
		at(strip, duration * 0.6, "pointermove");
		at(strip, duration * 0.6, "pointerup");
		const s = view.selection;
		check("dragging selects", s && near(s.from, duration * 0.2, 0.01) && near(s.to, duration * 0.6, 0.01));
		await frame();
		check("the selection is said", !$("interval").hidden && $("interval").textContent.includes("Selected"));
		check("and marked", !$("selection").hidden && parseFloat($("selection").style.width) > 10);
		if (sites.length) {
			showTab("sites");
			const of = sites.filter(e => e.asleep[0]).map(e => siteWithin(e, 0));
			const naps = report.naps.filter(n => n.file === 0);
			const want = naps.reduce((sum, n) => sum + n.size / 1e9 *
				Math.max(0, Math.min(endOf(n), s.to) - Math.max(n.start_ns, s.from)), 0);
			const have = of.reduce((a, b) => a + b, 0);
			if (report.left_out.naps === 0) check("byte seconds of the selection", near(have, want, 0.01), have + " " + want);
		}
		const ranges = report.phases.flatMap(p => p.ranges.map(r => [p.phase, r.variable, r.smallest, r.largest, r.sure_smallest, r.sure_largest]));
		check("ranges by phase have a table, or there are none", Boolean(document.querySelector('[data-tab="phase-ranges"]')) === ranges.length > 0);
		if (ranges.length) {
			showTab("phase-ranges");
			const shows = rowsOf("phase-ranges").map(tr => [...tr.children].slice(0, 6).map(td => td.textContent));
			const text = row => row.map(v => v === null ? "\u2013" : String(v)).join("|");
			check("a row for each variable of each phase", shows.map(text).sort().join() === ranges.map(text).sort().join(), shows);
		}
		if (runs[0].counters) {
			showTab("counters");
			const within = document.querySelectorAll("#table-counters th").length;
			view.select(null);
			await frame();
			check("the selection has columns of its own", document.querySelectorAll("#table-counters th").length < within);
		}
		view.select(0, duration);
		const line = Strip.all.find(x => x.lines && x.lines[0] instanceof BucketLine);
		if (line) check("all of it is all", near(line.lines[0].sum(0, duration)[0], line.lines[0].sums.reduce((a, b) => a + b, 0), 0.01));
		if (line) {
			const part = (a, b) => line.lines[0].sum(a, b)[0], middle = duration * 0.4321 + 7;
			check("its parts are it", near(part(0, middle) + part(middle, duration), part(0, duration), 1e-9));
		}
		$("zoom-selection").click();
		document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
		check("Escape forgets it", view.selection === null && $("selection").hidden);
	}

	async function numbersInTables() {
		view.show(0, duration);
		if (sites.length) {
			showTab("sites");
			check("a row for each site", rowsOf("sites").length === Math.min(100, report.sites.length));
			const want = report.sites.map((s, i) => report.strips[0].sites[i][0].byte_seconds).sort((a, b) => b - a).slice(0, 100);
			check("with its byte seconds, largest first", JSON.stringify(numbers("sites", 2)) === JSON.stringify(want));
			document.querySelectorAll("#table-sites th button")[2].click();
			const up = numbers("sites", 2);
			check("a click on the column turns it", up.every((v, i) => !i || v >= up[i - 1]));
			document.querySelectorAll("#table-sites th button")[2].click();
			rowsOf("sites")[0].click();
			check("a site opens", document.querySelector("#table-sites tr.detail .frames") !== null);
			flame.weight = "unused";
			showTab("about");
			const strip = Strip.all.find(x => x.site && shown(x));
			if (strip) {
				strip.label.click();
				check("a strip's name opens its site", openTab === "sites" && strip.element.classList.contains("chosen") &&
					document.querySelector("#table-sites tr.detail").previousSibling.children[0].dataset.value === String(strip.site.index + 1));
			}
			showTab("flame");
			await frame();
			check("the flame graph is drawn", isDrawn($("flame")));
			const sum = runs.reduce((n, r) => n + r.strip.sites.reduce((m, x) => m + x[0].byte_seconds, 0), 0);
			check("and weighs what the sites weigh", near(flame.total, sum));
		}
		if (report.samples) {
			showTab("functions");
			check("a row for each function", rowsOf("functions").length === Math.min(100, report.samples.functions.length));
			const self = numbers("functions", 1);
			check("with its share", self.every((v, i) => near(v * 1e9, report.samples.functions[i].self_ppb, 1e-6)));
			flame.weight = "samples";
			showTab("flame");
			await frame();
			check("samples have a flame graph", isDrawn($("flame")) && near(flame.total, report.samples.weight));
		}
		if (report.naps.length) {
			showTab("naps");
			check("a row for each nap", rowsOf("naps").length === Math.min(100, report.naps.length));
			const unseen = report.naps.filter(n => n.head_unseen);
			check("whose block's beginning was not watched is counted", !unseen.length ||
				$("notes").textContent.includes("In " + countText(report.unused.head_unseen) + (report.unused.head_unseen === 1 ? " nap " : " naps ") + "the block's beginning"),
				$("notes").textContent);
			check("and said of each", rowsOf("naps").length < report.naps.length ||
				rowsOf("naps").filter(tr => tr.textContent.includes("its beginning")).length === unseen.length);
			check("and of no other", report.naps.every(n => n.head_unseen === napTip(n).some(row => row[1] === "its beginning was not watched")));
		}
		if (phases.length) {
			const per = runs.length;
			showTab("phases");
			check("a row for each phase", rowsOf("phases").length === phases.length);
			const row = p => rowsOf("phases").find(tr => tr.children[0].textContent === p.name);
			check("entries", phases.every(p => Number(row(p).children[1].dataset.value) === p.byRun[0].count));
			for (const x of Strip.all) if (x instanceof PhaseStrip && shown(x)) await shows(x);
			check("of what was never timed it is not known", phases.every(p => p.byRun[0].timed || p.byRun[0].in_ns || row(p).children[1 + per].textContent === "\u2013") &&
				Strip.all.filter(x => x instanceof PhaseStrip && !x.entry.byRun[0].timed && x.entry.byRun[0].count).every(x => x.now.textContent.includes("never timed")));
			check("time in it", phases.every(p => near(Number(row(p).children[1 + per].dataset.value ?? 0), p.byRun[0].in_ns, 1e-6)));
			const heads = [...document.querySelectorAll("#table-phases thead th")].map(th => th.textContent);
			if (runs[0].counters && per === 1)
				check("counts in it", runs[0].counters.events.every((e, i) => phases.every(p =>
					Number(row(p).children[heads.lastIndexOf(e.name)].dataset.value) === p.byRun[0].counts[i])));
			document.querySelectorAll("#table-phases thead button")[0].click();
			const names = rowsOf("phases").map(tr => tr.children[0].textContent);
			check("sorted by name", names.every((n, i) => !i || names[i - 1].localeCompare(n) <= 0), names);
			rowsOf("phases")[0].click();
			check("a phase's details", document.querySelector("#table-phases tr.detail") !== null);
			const busy = phases.find(p => p.byRun[0].functions.length);
			if (busy && busy.name !== names[0]) row(busy).click();
			if (report.samples && report.samples.samples) check("where its time went", busy && document.querySelector("#table-phases").textContent.includes(
				shareText(busy.byRun[0].functions[0].self_ppb / 1e9) + busy.byRun[0].functions[0].function));
		}
		if (runs[0].counters) {
			showTab("counters");
			const c = runs[0].counters, have = new Map(rowsOf("counters").map(tr => [tr.children[0].textContent, Number(tr.children[1].dataset.value)]));
			check("counts", c.events.every((e, i) => have.get(e.name) === c.counts[i].scaled));
			const said = $("panel").textContent;
			check("what was not counted, or is in some that is not the program's", [c.missing, c.failed, c.stops].every(x => !x || said.includes(x)), said.slice(-300));
		}
		if (runs[0].ledger.length) {
			showTab("cost");
			const last = runs[0].ledger[runs[0].ledger.length - 1], column = runs.length > 1 ? 2 : 1;
			const all = rowsOf("cost").find(tr => tr.textContent.includes("in all") && (runs.length < 2 || tr.textContent.includes(runs[0].name)));
			check("overhead", near(Number(all.children[column].dataset.value) * 1e9, last.overhead_ppb, 1e-6));
			const strip = Strip.all.find(x => x.name === "Overhead");
			view.point(null);
			await shows(strip);
			check("its strip says the same of the whole run", strip.now.textContent.includes(shareText(last.overhead_ppb / 1e9)), strip.now.textContent);
			const at = (s, ran, spent) => ({time_ns: s * NS, run_ns: ran * NS, spent_ns: spent * NS, by_mechanism_ns: {}});
			const dear = overheadLines({index: 0, duration: 9 * NS, ledger: [at(0.1, 0.09, 0.08), at(3, 2.9, 0.2), at(9, 8.8, 0.8)]}).total;
			check("a dear start is no scale for the rest", near(dear.peak(0, NS), 8) && near(dear.usual, 0.1), dear.usual);
			check("nor part of a mean", near(dear.whole(0, 9 * NS), 0.1) && near(dear.whole(3 * NS, 9 * NS), 0.6 / 5.3), dear.whole(0, 9 * NS));
			const over = overheadLines(runs[0]);
			const told = runs[0].ledger.filter(l => l.local_target_ppb !== null), local = Strip.all.find(x => x.name === "Local target");
			check("the local target has a strip if it is known", Boolean(local) === runs.some(r => r.ledger.some(l => l.local_target_ppb !== null)));
			if (told.length) {
				const some = told[Math.floor(told.length / 2)];
				view.point(some.time_ns);
				await shows(local);
				check("which says it", local.now.textContent.includes(shareText(some.local_target_ppb / 1e9)), local.now.textContent);
				check("of the moment", near(local.lines[0].value(some.time_ns, some.time_ns + 1), some.local_target_ppb / 1e9, 1e-9));
				view.point(null);
			}
			const parts = over.of.reduce((sum, l) => sum + (l.value(0, duration) || 0), 0);
			check("its parts are no more than it", parts <= over.total.value(0, duration) * 1.001);
		}
		showTab("threads");
		check("a table of processes", rowsOf("threads").length >= report.processes.length);
		showTab("about");
		check("what is known of the run", rowsOf("about").length >= Object.keys(runs[0].meta).length);
	}

	/* A strip for each phase with times; what it says under the mouse. */
	async function phasesOverTime() {
		if (!phases.length) return;
		view.show(0, duration);
		$("timeline").style.flexBasis = "5000px";
		await frame();
		const strips = Strip.all.filter(s => s instanceof PhaseStrip);
		check("strips of phases", strips.length === phases.filter(p => p.tracks.some(t => t.length)).length && strips.every(shown), strips.length);
		for (const s of strips) {
			const all = phaseWithin(s.entry, 0, 0, duration);
			check("all of its time", near(all.inside, s.entry.byRun[0].in_ns, 1e-6), all.inside + " " + s.entry.byRun[0].in_ns);
			const half = [0, 0.37, 1].map(x => x * duration), parts = [0, 1].map(i => phaseWithin(s.entry, 0, half[i], half[i + 1]));
			check("is that of its parts", near(parts[0].inside + parts[1].inside, all.inside, 1e-6) && near(parts[0].nr + parts[1].nr, all.nr, 1e-6));
		}
		const strip = strips[0], track = strip.entry.tracks[0][0], [start, length] = track.pieces[Math.floor(track.pieces.length / 2)];
		await shows(strip);
		at(strip, start + length / 2, "pointermove");
		await shows(strip);
		check("in it at the mouse", strip.now.textContent.includes("100 % in it"), strip.now.textContent);
		if (runs.length === 1) {
			const bar = strip.bars[0].find(b => b.from === start), box = strip.canvas.getBoundingClientRect();
			const y = box.top + strip.height - 1 - (bar.at + 0.5) / strip.most * (strip.height - 3);
			at(strip, start + length / 2, "pointermove", {clientY: y});
			check("which thread, how long", $("tip").textContent.includes(String(track.tid)) && $("tip").textContent.includes(timeText(length)),
				$("tip").textContent);
		}
		/* How far from the paper's colour a bar of the first run is, in the middle. */
		const away = (s, bar) => {
			const ratio = s.canvas.width / axis.width, copy = document.createElement("canvas"), c = copy.getContext("2d");
			Object.assign(copy, {width: s.canvas.width, height: s.canvas.height});
			c.drawImage(s.canvas, 0, 0);
			const y = s.height - 1 - (bar.at + 0.5) / s.most * (s.height - 3);
			const d = c.getImageData(Math.round(axis.x((bar.from + bar.to) / 2) * ratio), Math.round(y * ratio), 1, 1).data;
			return colours.get("paper").match(/\d+/g).slice(0, 3).reduce((sum, v, i) => sum + Math.abs(v - d[i]), 0);
		};
		const whole = strip.bars[0].find(b => b.share === 1), some = strips[1].bars[0].find(b => b.share < 0.5 && b.from > duration / 2);
		check("the less of the time, the fainter", away(strip, whole) > 2 * away(strips[1], some) && away(strips[1], some) > 0,
			away(strip, whole) + " " + away(strips[1], some));
		const edge = pixels(strip.canvas);
		view.show(start - length, start + 2 * length);
		await frame();
		check("zoomed to one of it", pixels(strip.canvas) !== edge && near(axis.x(start), axis.width / 3, 0.01));
		view.select(start, start + length);
		await frame();
		showTab("phases");
		const column = [...document.querySelectorAll("#table-phases thead th")].findIndex(th => th.textContent.startsWith("in it, selection"));
		const tr = rowsOf("phases").find(x => x.children[0].textContent === strip.name);
		check("the selection's time in it", near(Number(tr.children[column].dataset.value), length, 1e-6));
		view.select(null);
		view.show(0, duration);
		await frame();
	}

	/* What is outside of the window is drawn when it is scrolled to, as what was
	 * zoomed to and filtered for meanwhile, and takes no other room then. */
	async function scrolling() {
		const box = $("timeline"), basis = box.style.flexBasis, strips = Strip.all.filter(shown);
		box.style.flexBasis = "100px";
		box.scrollTop = 0;
		view.show(0, duration);
		await frame();
		await frame();
		const outside = s => s.element.getBoundingClientRect().top > box.getBoundingClientRect().bottom + 200;
		const far = strips.filter(s => outside(s) && s.text.trim());
		check("some are outside of the window, or there are few", far.length > 0 || strips.length < 6, strips.length);
		for (const s of far.slice(-3)) {
			const paint = s.paint;
			let from = null;
			s.paint = function() { from = view.from; paint.call(this); };
			view.show(duration * 0.25, duration * 0.5);
			view.setFilter(s.text.trim().split(/\s+/)[0]);
			view.setFilter("");
			await frame();
			check("not drawn where it cannot be seen: " + JSON.stringify(s.name).slice(0, 30), from === null && s.isDirty && outside(s));
			const height = s.element.offsetHeight;
			await shows(s);
			await frame();
			const [line] = (s.lines || []).filter(x => x), was = pixels(s.canvas);
			check("it is when it is scrolled to", from === duration * 0.25 && !outside(s) && isDrawn(s.canvas) && s.element.offsetHeight === height);
			if (line) check("of the time that is shown", near(axis.time(axis.width), duration * 0.5) && s.now.textContent !== "");
			s.paint();
			check("and is what it would be anyhow", pixels(s.canvas) === was);
			s.paint = paint;
			view.show(0, duration);
			box.scrollTop = 0;
			await frame();
			await frame();
		}
		box.style.flexBasis = basis;
		painter.some();
	}

	async function filtering() {
		if (!sites.length) return;
		const input = $("filter"), before = Strip.all.filter(shown).length;
		showTab("sites");
		input.value = "MAIN no such function";
		input.dispatchEvent(new Event("input"));
		check("a filter that nothing passes", rowsOf("sites").length === 0 && Strip.all.filter(shown).length === 0);
		const name = sites[0].name;
		input.value = name;
		input.dispatchEvent(new Event("input"));
		check("the filter finds a function", rowsOf("sites").length >= 1 && rowsOf("sites").length < sites.length &&
			rowsOf("sites").some(tr => tr.children[1].textContent.startsWith(name)), rowsOf("sites").length);
		check("and its strip", Strip.all.filter(shown).length >= 1 && Strip.all.filter(shown).length < before);
		input.value = "";
		input.dispatchEvent(new Event("input"));
		check("without it all are back", Strip.all.filter(shown).length === before);
	}

	async function looks() {
		const strip = Strip.all.find(shown), before = pixels(strip.canvas), paper = getComputedStyle(document.body).backgroundColor;
		$("theme").click();
		await frame();
		check("light and dark differ", getComputedStyle(document.body).backgroundColor !== paper && pixels(strip.canvas) !== before);
		at(strip, duration / 2, "pointermove");
		check("a tip at the mouse", !$("tip").hidden && $("tip").textContent.length > 3);
		check("a value at the mouse", strip.now.textContent.length > 0 && !$("cursor").hidden);
		if (runs.length > 1) {
			const height = strip.canvas.getBoundingClientRect().height;
			$("split").click();
			await frame();
			check("side by side takes a row for each", strip.canvas.getBoundingClientRect().height >= height * 1.9);
		} else check("one run has no such choice", $("modes").hidden);
	}

	async function all() {
		try {
			for (const part of [drawing, zooming, selecting, numbersInTables, phasesOverTime, scrolling, filtering, looks]) await part();
			await frame();
		} catch (e) {
			check("no exception", false, e.stack);
		}
		check("no error", pageErrors.length === 0, pageErrors.join("; "));
		lines.push("1.." + nr);
		const pre = document.createElement("pre");
		pre.id = "tap";
		pre.textContent = lines.join("\n");
		document.body.append(pre);
	}
	all();
})();
