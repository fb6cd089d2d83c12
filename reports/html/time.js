/* What part of the time is shown, what is selected, where the cursor is, what
 * is filtered for; and who wants to know of changes. */

const view = {
	from: 0,
	to: duration,
	selection: null, /* {from, to} */
	cursor: null,
	filter: "",
	overlaid: true,
	listeners: {},

	on(what, f) {
		for (const w of what.split(" ")) (this.listeners[w] = this.listeners[w] || []).push(f);
	},
	tell(what) {
		for (const f of this.listeners[what] || []) f();
	},

	/* Shown: [from, to), as far as the run goes, never less than 1 µs. */
	show(from, to) {
		const length = Math.min(duration, Math.max(1000, to - from));
		const middle = (from + to) / 2;
		from = Math.max(0, Math.min(duration - length, middle - length / 2));
		if (from === this.from && from + length === this.to) return;
		this.from = from;
		this.to = from + length;
		this.tell("view");
	},
	zoom(factor, around) {
		const at = around == null ? (this.from + this.to) / 2 : around;
		this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
	},
	/* By a share of what is shown. */
	move(share) {
		const by = (this.to - this.from) * share;
		const room = by < 0 ? Math.max(by, -this.from) : Math.min(by, duration - this.to);
		this.show(this.from + room, this.to + room);
	},
	select(from, to) {
		if (from === null) {
			if (!this.selection) return;
			this.selection = null;
		} else {
			const [a, b] = from < to ? [from, to] : [to, from];
			this.selection = {from: Math.max(0, a), to: Math.min(duration, b)};
		}
		this.tell("select");
	},
	point(time) {
		if (time === this.cursor) return;
		this.cursor = time;
		this.tell("cursor");
	},
	setFilter(text) {
		this.filter = text.trim().toLowerCase();
		this.tell("filter");
	},
	/* Every word of the filter occurs in @text, which is in lower case. */
	passes(text) {
		return this.filter.split(/\s+/).every(word => text.includes(word));
	},
};
