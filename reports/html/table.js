/*
 * Tables that sort by any column. A column is
 *	{name, value(row), text(row), number, wide, code, bar, title}
 * and a table {id, columns, rows, sort, down, detail(row), text(row)}; text is
 * what the filter looks at. How one is sorted outlives that it is made again.
 */

const ROWS_AT_ONCE = 100;
const sortedBy = {};

function compare(a, b) {
	if (a === b) return 0;
	if (a === null || a === undefined) return 1;
	if (b === null || b === undefined) return -1;
	return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function sortRows(t, rows) {
	const {column, down} = sortedBy[t.id];
	const col = t.columns[column];
	return rows.map(row => [col.value(row), row]).sort((a, b) => {
		if (a[0] === null || b[0] === null) return compare(a[0], b[0]);
		return down ? compare(b[0], a[0]) : compare(a[0], b[0]);
	}).map(pair => pair[1]);
}

function cell(col, row, most) {
	const text = col.text ? col.text(row) : String(col.value(row) ?? "");
	const td = make("td", {class: [col.number && "number", col.wide && "wide", col.code && "code"].filter(x => x).join(" ")},
		text);
	const value = col.value(row);
	if (col.number && value !== null) td.dataset.value = value;
	if (col.wide) td.title = col.title ? col.title(row) : td.textContent;
	if (col.bar && most > 0) {
		const bar = make("i");
		bar.style.width = Math.max(0, value) / most * 100 + "%";
		td.append(make("span", {class: "bar"}, bar));
	}
	return td;
}

function tableOf(t) {
	if (!sortedBy[t.id]) sortedBy[t.id] = {column: t.sort || 0, down: t.down !== false};
	const order = sortedBy[t.id];
	if (order.column >= t.columns.length) Object.assign(order, {column: t.sort || 0, down: t.down !== false});
	const head = t.columns.map((col, i) => make("th", {
		class: col.number ? "number" : null, scope: "col",
		"aria-sort": i === order.column ? order.down ? "descending" : "ascending" : null,
	}, make("button", {title: col.about || "sort by this", onclick() {
		sortedBy[t.id] = {column: i, down: i === order.column ? !order.down : Boolean(col.number)};
		wrapper.replaceWith(tableOf(t));
	}}, col.name)));
	const rows = sortRows(t, t.rows.filter(row => view.passes(t.text ? t.text(row) : "")));
	const most = t.columns.map(c => c.bar ? Math.max(0, ...t.rows.map(r => c.value(r) || 0)) : 0);
	const body = make("tbody");
	let shown = 0;
	const button = make("button", {onclick: more});
	const rest = make("p", {class: "rest"}, button);
	function more() {
		for (const end = shown + ROWS_AT_ONCE; shown < rows.length && shown < end; shown++) body.append(line(rows[shown]));
		rest.hidden = shown >= rows.length;
		button.textContent = countText(rows.length - shown) + " more";
	}
	function line(row) {
		const tr = make("tr", {class: "row" + (t.detail ? " opens" : "")}, ...t.columns.map((c, i) => cell(c, row, most[i])));
		if (t.detail) tr.addEventListener("click", () => {
			if (tr.nextSibling && tr.nextSibling.className === "detail") return tr.nextSibling.remove();
			tr.after(make("tr", {class: "detail"}, make("td", {colspan: t.columns.length}, t.detail(row))));
		});
		return tr;
	}
	more();
	const wrapper = make("div", {class: "wrapper"}, make("table", {class: "data", id: "table-" + t.id},
		make("thead", {}, make("tr", {}, ...head)), body), rest);
	if (!rows.length) wrapper.append(make("p", {class: "dim"}, t.rows.length ? "Nothing matches the filter." : "None."));
	if (t.more) wrapper.append(make("p", {class: "dim"}, t.more));
	return wrapper;
}
