/* The axis that all strips share. */

function paintRuler() {
	const width = axis.width, c = begin($("ruler"), width, 22), at = ticks(view.from, view.to, width);
	c.strokeStyle = colours.get("line");
	c.fillStyle = colours.get("dim");
	c.beginPath();
	for (const t of at) {
		const x = axis.x(t), text = pointText(t, at.step);
		c.moveTo(Math.round(x) + 0.5, 15);
		c.lineTo(Math.round(x) + 0.5, 22);
		c.textAlign = x < 20 ? "left" : x > width - 24 ? "right" : "center";
		c.fillText(text, x < 20 ? Math.max(3, x) : Math.min(x, width - 3), 8);
	}
	c.stroke();
	$("shown").textContent = view.from === 0 && view.to === duration ? "whole run, " + timeText(duration) :
		pointText(view.from, at.step / 10) + " to " + pointText(view.to, at.step / 10) + ", " + timeText(view.to - view.from);
}
