/* What one sees of the thing under the mouse. */

const tip = {
	/* @rows: pairs of a label and a value; a label alone is a heading. */
	show(event, rows) {
		const table = make("table");
		for (const [label, value] of rows)
			table.append(value === undefined ?
				make("tr", {}, make("th", {colspan: 2}, make("b", {}, label))) :
				make("tr", {}, make("th", {}, label), make("td", {}, value)));
		$("tip").replaceChildren(table);
		$("tip").hidden = false;
		const box = $("tip").getBoundingClientRect();
		const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
		const top = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
		$("tip").style.left = Math.max(2, left) + "px";
		$("tip").style.top = Math.max(2, top) + "px";
	},
	hide() { $("tip").hidden = true; },
};
