/* A strip: a label and a picture over time. It is drawn, and its values told,
 * again when what it shows changes, once a frame, and only while it can be
 * seen or nearly: what is scrolled to is drawn then. */

class Strip {
	/* @name, @height of one row; @text: what the filter looks at. */
	constructor(name, height, text) {
		Object.assign(this, {name, height, text: text.toLowerCase(), isDirty: true, isStale: true});
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

	/* Also while it is not drawn it takes the room that it will. */
	layOut() { this.canvas.style.height = this.height * this.rows + "px"; }

	paint() {
		const c = begin(this.canvas, axis.width, this.height * this.rows);
		gridLines(c, axis.width, this.height * this.rows);
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
}
Strip.all = [];

const painter = {
	isDue: false,
	/* All pictures are others now. */
	all() {
		for (const s of Strip.all) s.isDirty = true;
		this.values();
	},
	/* All values are. */
	values() {
		for (const s of Strip.all) s.isStale = true;
		this.some();
	},
	/* Others can be seen. */
	some() {
		if (this.isDue) return;
		this.isDue = true;
		requestAnimationFrame(() => this.flush());
	},
	/* First look where they all are, then draw: what changes a page between two
	 * looks has it laid out anew. */
	flush() {
		this.isDue = false;
		axis.measure();
		const box = $("timeline").getBoundingClientRect();
		const seen = Strip.all.filter(s => {
			if (!s.isDirty && !s.isStale) return false;
			const at = s.element.getBoundingClientRect();
			return at.height > 0 && at.bottom >= box.top - 200 && at.top <= box.bottom + 200;
		});
		for (const s of seen) {
			if (s.isDirty) s.paint();
			if (s.isStale) s.showNow();
			s.isStale = false;
		}
	},
};
