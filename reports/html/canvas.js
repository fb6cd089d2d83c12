/* Where times are on the screen, and what several pictures draw alike. */

const axis = {
	left: 0,
	width: 1,
	measure() {
		const box = $("ruler").getBoundingClientRect();
		this.left = box.left;
		this.width = Math.max(1, box.width);
	},
	x(time) { return (time - view.from) / (view.to - view.from) * this.width; },
	time(x) { return view.from + x / this.width * (view.to - view.from); },
};

const font = {};
later(font, "text", () => "11px " + getComputedStyle(document.body).fontFamily);

/* A context in CSS pixels, cleared. */
function begin(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	const w = Math.round(width * ratio), h = Math.round(height * ratio);
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	const c = canvas.getContext("2d");
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	c.clearRect(0, 0, width, height);
	c.font = font.text;
	c.textBaseline = "middle";
	return c;
}

/* Mean and peak of @line for each pixel of [from, to). */
function columns(line, width, from, to) {
	const n = Math.max(1, Math.ceil(width)), step = (to - from) / width;
	const mean = new Array(n), peak = new Array(n);
	for (let x = 0; x < n; x++) {
		const a = from + x * step, b = a + step;
		mean[x] = line.value(a, b);
		peak[x] = line.peak(a, b);
	}
	return {mean, peak};
}

/* One path over the columns that have a value; a gap where they have none. */
function trace(c, values, y, bottom, fill) {
	let start = -1;
	const close = x => {
		if (fill) {
			c.lineTo(x, bottom);
			c.lineTo(start, bottom);
		}
		start = -1;
	};
	c.beginPath();
	for (let x = 0; x < values.length; x++) {
		if (values[x] === null) {
			if (start >= 0) close(x);
			continue;
		}
		if (start < 0) {
			start = x;
			if (fill) c.moveTo(x, bottom);
			else c.moveTo(x, y(values[x]));
		}
		c.lineTo(x, y(values[x]));
		c.lineTo(x + 1, y(values[x]));
	}
	if (start >= 0) close(values.length);
	if (fill) c.fill();
	else c.stroke();
}

function gridLines(c, width, height) {
	c.strokeStyle = colours.get("faint");
	c.lineWidth = 1;
	c.beginPath();
	for (const t of ticks(view.from, view.to, width)) {
		const x = Math.round(axis.x(t)) + 0.5;
		c.moveTo(x, 0);
		c.lineTo(x, height);
	}
	c.stroke();
}

/* What the top of a strip stands for. */
function scaleText(c, text, y) {
	const width = c.measureText(text).width;
	c.fillStyle = faded(colours.get("paper"), 0.8);
	c.fillRect(2, y - 7, width + 6, 14);
	c.fillStyle = colours.get("dim");
	c.textAlign = "left";
	c.fillText(text, 5, y);
}

function ticks(from, to, width) {
	const step = niceTime((to - from) / Math.max(1, width / 110)), out = [];
	for (let i = Math.ceil(from / step); i * step <= to; i++) out.push(i * step);
	out.step = step;
	return out;
}
