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

/* Colours of the theme, by the names that chrome.css gives them. */
const colours = {
	known: {},
	get(name) {
		if (!this.known[name]) {
			const probe = make("i", {hidden: true});
			probe.style.color = `var(--${name})`;
			document.body.append(probe);
			this.known[name] = getComputedStyle(probe).color;
			probe.remove();
		}
		return this.known[name];
	},
	forget() { this.known = {}; },
};

/* A colour with another opacity; browsers tell colours as rgb(...). */
function faded(colour, alpha) {
	const n = colour.match(/[\d.]+/g);
	return `rgba(${n[0]}, ${n[1]}, ${n[2]}, ${alpha})`;
}
