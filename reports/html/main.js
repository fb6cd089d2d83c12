/* Puts the page together. */

function showNotes() {
	const note = text => $("notes").append(make("p", {}, text));
	for (const run of runs) {
		const f = run.file, name = runs.length > 1 ? run.name + ": " : "";
		if (f.truncated) note(name + "the trace has no end: smco-trace was killed, the disk was full, or it still runs. What is whole is shown.");
		if (f.damaged_chunks) note(name + "the trace is damaged: " + manyText(f.damaged_chunks, "part is", "parts are") +
			" missing, " + manyText(f.lost_records, "record") + ".");
		if (f.dropped_records) note(name + manyText(f.dropped_records, "record was", "records were") + " not written, because the disk was too slow.");
	}
	const unseen = report.unused.head_unseen;
	if (unseen) note("In " + manyText(unseen, "nap") + " the block's beginning (16 KiB, or a huge page) could not be watched: " +
		"it lies directly above a stack that was sampled.");
	if (report.not_selected) note(manyText(report.not_selected, "nap was", "naps were") + " left out by --where, --process, --from or --to.");
	if (report.suppressed.naps) note(manyText(report.suppressed.naps, "nap was", "naps were") + " suppressed.");
}

function placeMarks() {
	const s = view.selection, label = axis.left - $("strips").getBoundingClientRect().left;
	if (s) {
		const from = Math.max(-2, axis.x(s.from)), to = Math.min(axis.width + 2, axis.x(s.to));
		$("selection").hidden = to < 0 || from > axis.width;
		$("selection").style.left = label + from + "px";
		$("selection").style.width = Math.max(1, to - from) + "px";
	}
	$("cursor").hidden = view.cursor === null;
	if (view.cursor !== null) $("cursor").style.left = label + axis.x(view.cursor) + "px";
}

function repaint() {
	axis.measure();
	paintRuler();
	paintOverview();
	painter.all();
	placeMarks();
}

function start() {
	document.title = runs.map(r => r.name).join(", ") + " – smco-report";
	showNotes();
	buildStrips();
	buildTabs();
	stripsMouse();
	overviewMouse();
	keyboard();
	splitter();
	$("modes").hidden = runs.length < 2;
	const mode = overlaid => () => {
		view.overlaid = overlaid;
		$("overlay").setAttribute("aria-pressed", String(overlaid));
		$("split").setAttribute("aria-pressed", String(!overlaid));
		for (const s of Strip.all) s.layOut();
		repaint();
	};
	$("overlay").addEventListener("click", mode(true));
	$("split").addEventListener("click", mode(false));
	$("theme").addEventListener("click", () => {
		const root = document.documentElement, isDark = root.dataset.theme ? root.dataset.theme === "dark" :
			matchMedia("(prefers-color-scheme: dark)").matches;
		root.dataset.theme = isDark ? "light" : "dark";
		colours.forget();
		repaint();
		paintFlame();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.forget(); repaint(); paintFlame(); });
	let due = false;
	view.on("select", () => {
		placeMarks();
		showInterval();
		paintOverview();
		painter.values();
		/* Tables follow once a frame, however fast the mouse goes. */
		if (!due) requestAnimationFrame(() => { due = false; showTab(); });
		due = true;
	});
	view.on("view", repaint);
	view.on("cursor", () => { placeMarks(); painter.values(); });
	view.on("filter", () => { showTab(); painter.values(); });
	$("timeline").addEventListener("scroll", () => painter.some());
	addEventListener("resize", () => { repaint(); paintFlame(); });
	repaint();
}

start();
