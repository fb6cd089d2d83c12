/* A strip: a label and a picture over time. It is drawn again when what it
 * shows changes, once a frame, and only while it can be seen. */

class Strip {
	/* @name, @height of one row; @text: what the filter looks at. */
	constructor(name, height, text) {
		Object.assign(this, {name, height, text: text.toLowerCase(), isDirty: true});
		this.canvas = make("canvas", {"aria-label": name});
		this.title = make("div", {class: "name"}, make("span", {title: name}, name));
		this.note = make("div", {class: "note"});
		this.now = make("div", {class: "now"});
		this.label = make("div", {class: "label"}, this.title, this.now, this.note);
		this.element = make("div", {class: "strip"}, this.label, this.canvas);
		this.canvas.addEventListener("pointermove", e => this.hover(e));
		this.canvas.addEventListener("pointerleave", () => tip.hide());
		Strip.all.push(this);
	}
	/* Runs whose data are in row @row. */
	inRow(row) { return view.overlaid ? runs : [runs[row]]; }
	get rows() { return view.overlaid ? 1 : runs.length; }

	paint() {
		const height = this.height * this.rows;
		this.canvas.style.height = height + "px";
		const c = begin(this.canvas, axis.width, height);
		gridLines(c, axis.width, height);
		for (let row = 0; row < this.rows; row++) {
			c.save();
			c.translate(0, row * this.height);
			c.beginPath();
			c.rect(0, 0, axis.width, this.height);
			c.clip();
			this.draw(c, axis.width, this.height, this.inRow(row));
			/* Whose row it is. */
			c.fillStyle = colours.get(runs[row].colour);
			if (this.rows > 1) c.fillRect(0, 2, 3, this.height - 4);
			c.restore();
		}
		this.isDirty = false;
	}
	/* The run that the mouse is at, where there is one for each row. */
	rowAt(event) {
		const y = event.clientY - this.canvas.getBoundingClientRect().top;
		const row = Math.max(0, Math.min(this.rows - 1, Math.floor(y / this.height)));
		return {row, y: y - row * this.height, x: event.clientX - axis.left};
	}
	hover() {}
	/* Values at the cursor, in the label. */
	showNow() {}
	isShown() { return !this.element.hidden && this.element.offsetParent !== null; }
}
Strip.all = [];

const painter = {
	isDue: false,
	all() {
		for (const s of Strip.all) s.isDirty = true;
		this.some();
	},
	some() {
		if (this.isDue) return;
		this.isDue = true;
		requestAnimationFrame(() => this.flush());
	},
	flush() {
		this.isDue = false;
		axis.measure();
		const box = $("timeline").getBoundingClientRect();
		for (const s of Strip.all) {
			if (!s.isDirty || !s.isShown()) continue;
			const at = s.element.getBoundingClientRect();
			if (at.bottom >= box.top - 200 && at.top <= box.bottom + 200) s.paint();
		}
	},
};
