/* Making elements. Texts of a trace get into the page as text only, never as
 * markup. */

const $ = id => document.getElementById(id);

/* make("td", {class: "number", onclick: f}, child or text, ...) */
function make(tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [key, value] of Object.entries(attributes || {}))
		if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
		else if (value === true) e.setAttribute(key, "");
		else if (value !== false && value != null) e.setAttribute(key, value);
	e.append(...children.filter(c => c != null));
	return e;
}

function swatch(kind, text) {
	return make("span", {}, make("i", {class: "swatch " + kind}), text);
}

/* Colours of the theme, by the names that chrome.css gives them. They are all
 * read at once: each reading may have the page styled anew. */
const colours = {
	known: null,
	get(name) {
		if (!this.known) this.read();
		return this.known[name];
	},
	read() {
		const probes = [...document.styleSheets[0].cssRules].filter(r => r.selectorText === ":root")
			.flatMap(r => [...r.style]).filter(name => name.startsWith("--")).map(name => {
				const probe = make("i", {hidden: true, "data-name": name.slice(2)});
				probe.style.color = `var(${name})`;
				return probe;
			});
		document.body.append(...probes);
		this.known = Object.fromEntries(probes.map(p => [p.dataset.name, getComputedStyle(p).color]));
		for (const p of probes) p.remove();
	},
	forget() { this.known = null; },
};

/* A colour with another opacity; browsers tell colours as rgb(...). */
function faded(colour, alpha) {
	const n = colour.match(/[\d.]+/g);
	return `rgba(${n[0]}, ${n[1]}, ${n[2]}, ${alpha})`;
}
