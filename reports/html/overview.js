/* The whole run at the top, and the window that the strips show of it. */

/* The first thing that there is: unused memory, overhead, a counter. */
function overviewLines() {
	for (const s of Strip.all)
		if (s instanceof LineStrip && s.name === "Unused memory") return s;
	return Strip.all.find(s => s instanceof LineStrip) || null;
}

function paintOverview() {
	const width = axis.width, height = 42, c = begin($("overview"), width, height), strip = overviewLines();
	if (strip) {
		const {top} = strip.scale(0, duration);
		const y = v => height - 1 - Math.min(1, v / top) * (height - 8);
		for (const r of runs) {
			if (!strip.lines[r.index]) continue;
			const {mean} = columns(strip.lines[r.index], width, 0, duration);
			c.fillStyle = faded(strip.colourOf(r), 0.3);
			trace(c, mean, y, height, true);
			c.strokeStyle = strip.colourOf(r);
			trace(c, mean, y, height, false);
		}
	}
	const x = t => t / duration * width;
	if (view.selection) {
		c.fillStyle = colours.get("select");
		c.fillRect(x(view.selection.from), 0, Math.max(1, x(view.selection.to) - x(view.selection.from)), height);
	}
	const from = x(view.from), to = x(view.to);
	c.fillStyle = faded(colours.get("panel"), 0.75);
	c.fillRect(0, 0, from, height);
	c.fillRect(to, 0, width - to, height);
	c.strokeStyle = colours.get("accent");
	c.lineWidth = 1;
	if (view.from > 0 || view.to < duration) {
		c.strokeRect(from + 0.5, 0.5, Math.max(1, to - from - 1), height - 1);
		c.fillStyle = colours.get("accent");
		c.fillRect(from - 1, height / 2 - 8, 4, 16);
		c.fillRect(to - 3, height / 2 - 8, 4, 16);
	}
	if (strip) scaleText(c, strip.name, 9);
}

function overviewMouse() {
	const canvas = $("overview"), scale = () => duration / axis.width;
	let drag = null;
	canvas.addEventListener("pointerdown", e => {
		const t = (e.clientX - axis.left) * scale(), slack = 6 * scale();
		const isAll = view.from === 0 && view.to === duration;
		const part = isAll ? "new" : Math.abs(t - view.from) < slack ? "from" : Math.abs(t - view.to) < slack ? "to" :
			t > view.from && t < view.to ? "both" : "new";
		drag = {part, t, from: view.from, to: view.to};
		canvas.setPointerCapture(e.pointerId);
	});
	canvas.addEventListener("pointermove", e => {
		if (!drag) return;
		const t = (e.clientX - axis.left) * scale(), by = t - drag.t;
		if (drag.part === "from") view.show(Math.min(drag.from + by, drag.to - 1000), drag.to);
		else if (drag.part === "to") view.show(drag.from, Math.max(drag.to + by, drag.from + 1000));
		else if (drag.part === "both") {
			const room = Math.max(-drag.from, Math.min(duration - drag.to, by));
			view.show(drag.from + room, drag.to + room);
		} else if (Math.abs(by) > 3 * scale()) view.show(Math.max(0, Math.min(t, drag.t)), Math.min(duration, Math.max(t, drag.t)));
	});
	const end = () => { drag = null; };
	canvas.addEventListener("pointerup", end);
	canvas.addEventListener("pointercancel", end);
	canvas.addEventListener("dblclick", () => view.show(0, duration));
}
