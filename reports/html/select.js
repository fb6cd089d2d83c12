/* Mouse and keys: select, zoom, move. */

function stripsMouse() {
	const box = $("strips");
	let drag = null;
	const inPicture = e => e.clientX >= axis.left && e.clientX <= axis.left + axis.width;
	box.addEventListener("pointerdown", e => {
		if (e.button !== 0 || e.target.tagName !== "CANVAS") return;
		drag = {x: e.clientX, moved: false};
		e.target.setPointerCapture(e.pointerId);
	});
	box.addEventListener("pointermove", e => {
		view.point(inPicture(e) && e.target.tagName === "CANVAS" ? axis.time(e.clientX - axis.left) : null);
		if (!drag || (!drag.moved && Math.abs(e.clientX - drag.x) < 4)) return;
		drag.moved = true;
		view.select(axis.time(drag.x - axis.left), axis.time(e.clientX - axis.left));
	});
	box.addEventListener("pointerup", () => {
		if (drag && !drag.moved) view.select(null);
		drag = null;
	});
	box.addEventListener("pointercancel", () => { drag = null; });
	box.addEventListener("pointerleave", () => view.point(null));
	box.addEventListener("dblclick", e => {
		if (e.target.tagName === "CANVAS") view.zoom(0.4, axis.time(e.clientX - axis.left));
	});
	$("timeline").addEventListener("wheel", e => {
		const sideways = e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX;
		if (e.ctrlKey || e.metaKey) {
			e.preventDefault();
			view.zoom(Math.exp(Math.max(-120, Math.min(120, e.deltaY)) / 250), axis.time(e.clientX - axis.left));
		} else if (Math.abs(sideways) > Math.abs(e.shiftKey ? 0 : e.deltaY)) {
			e.preventDefault();
			view.move(sideways / 900);
		}
	}, {passive: false});
}

function zoomToSelection() {
	const s = view.selection;
	if (s) view.show(s.from, s.to);
}

function pressed(key) {
	switch (key) {
	case "w": case "W": case "+": case "=": case "ArrowUp": return view.zoom(0.7, view.cursor);
	case "s": case "S": case "-": case "ArrowDown": return view.zoom(1 / 0.7, view.cursor);
	case "a": case "A": case "ArrowLeft": return view.move(-0.15);
	case "d": case "D": case "ArrowRight": return view.move(0.15);
	case "z": case "Z": return zoomToSelection();
	case "0": return view.show(0, duration);
	case "/": return $("filter").focus();
	case "?": return $("help").showModal();
	case "Escape":
		$("filter").value = "";
		view.setFilter("");
		return view.select(null);
	}
	return false;
}

function keyboard() {
	document.addEventListener("keydown", e => {
		if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
		if (e.target.tagName === "INPUT" && e.key !== "Escape") return;
		const inTable = e.target.closest && e.target.closest("#tables, #splitter");
		if (inTable && e.key.startsWith("Arrow")) return;
		if (pressed(e.key) !== false) e.preventDefault();
		if (e.key === "Escape") document.activeElement.blur();
	});
	$("filter").addEventListener("input", () => view.setFilter($("filter").value));
	$("zoom-in").addEventListener("click", () => view.zoom(0.5));
	$("zoom-out").addEventListener("click", () => view.zoom(2));
	$("zoom-all").addEventListener("click", () => view.show(0, duration));
	$("zoom-selection").addEventListener("click", zoomToSelection);
	$("keys").addEventListener("click", () => $("help").showModal());
}

/* The line between the strips and the tables. */
function splitter() {
	const bar = $("splitter"), upper = $("timeline");
	let drag = null;
	const set = height => {
		const room = upper.parentNode.clientHeight;
		upper.style.flexBasis = Math.max(100, Math.min(room - 60, height)) + "px";
		painter.some();
	};
	bar.addEventListener("pointerdown", e => {
		drag = {y: e.clientY, height: upper.clientHeight};
		bar.setPointerCapture(e.pointerId);
	});
	bar.addEventListener("pointermove", e => drag && set(drag.height + e.clientY - drag.y));
	bar.addEventListener("pointerup", () => { drag = null; });
	bar.addEventListener("keydown", e => {
		if (e.key === "ArrowUp" || e.key === "ArrowDown") set(upper.clientHeight + (e.key === "ArrowUp" ? -30 : 30));
	});
}
