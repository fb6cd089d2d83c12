/* A flame graph of stacks: callers above, the innermost function below, as
 * wide as what they weigh. Of allocation stacks, and of samples. */

const samples = report.samples ? report.samples.stacks : [];
const sampled = report.samples && /clock/.test(report.samples.event || "") ? timeText : countText;
/* Name, the weight of a stack in a run, that for people, the stacks. */
const WEIGHTS = {
	samples: ["sampled, " + (sampled === timeText ? "time on a CPU" : "events"), (s, r) => s.file === r ? s.weight : 0, sampled, samples],
	unused: ["unused, byte seconds", (e, r) => siteWithin(e, r), byteSecondsText, sites],
	end: ["unused at the end, bytes", (e, r) => e.byRun[r].unused_bytes, bytesText, sites],
	allocated: ["allocated, bytes", (e, r) => e.byRun[r].bytes, bytesText, sites],
	allocations: ["allocations", (e, r) => e.byRun[r].allocations, countText, sites],
};
for (const [key, w] of Object.entries(WEIGHTS)) if (!w[3].length) delete WEIGHTS[key];
const flame = {weight: Object.keys(WEIGHTS)[0], run: null, path: [], height: 19};

function flameTree() {
	const [, weigh, , all] = WEIGHTS[flame.weight], root = {name: "all", place: "", value: 0, children: new Map()};
	for (const e of all) {
		let v = 0;
		for (const r of runs) if (flame.run === null || flame.run === r.index) v += weigh(e, r.index) || 0;
		if (!(v > 0)) continue;
		root.value += v;
		let node = root;
		const of = e.frames || stacks.get(e.stack) || [];
		const frames = of.length ? framesWithin(of) : [{function: "(stack unknown)", file: "", module: "", offset: "0x0"}];
		for (let i = frames.length - 1; i >= 0; i--) {
			/* A function is one box, from whichever of its lines it calls. */
			const f = frames[i], name = frameName(f), key = name + "\n" + f.file + "\n" + f.module;
			if (!node.children.has(key))
				node.children.set(key, {key, name, place: framePlace(f), value: 0, children: new Map()});
			node = node.children.get(key);
			node.value += v;
			if (node.place !== framePlace(f)) node.place = framePlace({...f, line: 0});
		}
	}
	return root;
}

function flameLayout(root, width) {
	const boxes = [];
	const place = (node, x, w, depth) => {
		boxes.push({node, x, w, depth});
		let at = x;
		const children = [...node.children.values()].sort((a, b) => b.value - a.value);
		for (const child of children) {
			const part = w * child.value / node.value;
			if (part >= 0.5) place(child, at, part, depth + 1);
			at += part;
		}
	};
	place(root, 0, width, 0);
	return boxes;
}

/* Warm colours, the same for a function wherever it stands. */
function flameColour(name, isDark) {
	let h = 0;
	for (let i = 0; i < name.length; i++) h = (h * 31 + name.charCodeAt(i)) >>> 0;
	const hue = 18 + h % 38, light = (isDark ? 34 : 68) + (h >>> 8) % 9;
	return `hsl(${hue} ${isDark ? 48 : 82}% ${light}%)`;
}

function paintFlame() {
	const canvas = $("flame");
	if (!canvas) return;
	let root = flameTree();
	const total = root.value;
	for (const key of flame.path) root = root.children.get(key) || root;
	const width = Math.max(100, canvas.parentNode.clientWidth), h = flame.height;
	const boxes = total > 0 ? flameLayout(root, width) : [];
	const height = (Math.max(0, ...boxes.map(b => b.depth)) + 1) * h + 8;
	canvas.style.height = height + "px";
	const c = begin(canvas, width, height), isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
		(!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
	for (const b of boxes) {
		const matches = view.filter !== "" && view.passes((b.node.name + " " + b.node.place).toLowerCase());
		c.fillStyle = b.depth === 0 && !flame.path.length ? colours.get("faint") : matches ? colours.get("hue-2") :
			flameColour(b.node.name, isDark);
		c.fillRect(b.x + 0.5, b.depth * h + 0.5, Math.max(0.5, b.w - 1), h - 1);
		if (b.w < 26) continue;
		c.save();
		c.beginPath();
		c.rect(b.x, b.depth * h, b.w - 4, h);
		c.clip();
		c.fillStyle = matches ? colours.get("paper") : colours.get("ink");
		c.textAlign = "left";
		const text = b.depth === 0 && !flame.path.length ? WEIGHTS[flame.weight][0] + ": " + WEIGHTS[flame.weight][2](total) : b.node.name;
		c.fillText(text, b.x + 5, b.depth * h + h / 2 + 0.5);
		c.restore();
	}
	flame.boxes = boxes;
	flame.total = total;
}

function flameHit(event) {
	const box = $("flame").getBoundingClientRect(), x = event.clientX - box.left, depth = Math.floor((event.clientY - box.top) / flame.height);
	return (flame.boxes || []).find(b => b.depth === depth && x >= b.x && x < b.x + b.w);
}

function flameClick(event) {
	const hit = flameHit(event);
	if (!hit || hit.depth === 0) flame.path.pop();
	else {
		const parents = [];
		for (let d = 1; d <= hit.depth; d++) {
			const b = flame.boxes.find(o => o.depth === d && o.x <= hit.x + 1e-6 && o.x + o.w >= hit.x + hit.w - 1e-6);
			parents.push(b.node.key);
		}
		flame.path.push(...parents);
	}
	paintFlame();
}

function flamePanel() {
	const choose = (options, value, set) => make("select", {onchange(e) { set(e.target.value); flame.path = []; paintFlame(); }},
		...options.map(([v, text]) => make("option", {value: v, selected: v === value}, text)));
	const bar = make("div", {class: "flamebar"}, "Width: ",
		choose(Object.entries(WEIGHTS).map(([k, w]) => [k, w[0]]), flame.weight, v => { flame.weight = v; }),
		runs.length > 1 ? choose([["all", "all runs"], ...runs.map(r => [String(r.index), r.name])], flame.run === null ? "all" : String(flame.run),
			v => { flame.run = v === "all" ? null : Number(v); }) : null,
		make("span", {class: "dim"}, "Click a function to zoom into it, the top to go back."));
	const canvas = make("canvas", {id: "flame", onclick: flameClick, onpointerleave: () => tip.hide(), onpointermove(e) {
		const hit = flameHit(e);
		if (!hit) return tip.hide();
		const text = WEIGHTS[flame.weight][2];
		tip.show(e, [[hit.node.name], ["", hit.node.place], ["weighs", text(hit.node.value)], ["of all", shareText(hit.node.value / flame.total)]]);
	}});
	requestAnimationFrame(paintFlame);
	return make("div", {}, bar, canvas);
}
