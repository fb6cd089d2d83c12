/* Numbers for people. Times are nanoseconds of session time throughout. */

const NS = 1e9;

/* Three figures, no exponent, no trailing zeros. */
function figures(v) {
	if (v === 0 || !isFinite(v)) return String(v);
	const size = Math.floor(Math.log10(Math.abs(v)));
	const text = v.toFixed(Math.min(6, Math.max(0, 2 - size)));
	return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function scaled(v, units, step) {
	let i = 0;
	while (Math.abs(v) >= step * 0.9995 && i + 1 < units.length) {
		v /= step;
		i++;
	}
	return figures(v) + units[i];
}

const bytesText = v => scaled(v, [" B", " KiB", " MiB", " GiB", " TiB"], 1024);
const byteSecondsText = v =>
	scaled(v, [" B·s", " KiB·s", " MiB·s", " GiB·s", " TiB·s"], 1024);
const shortText = v => scaled(v, ["", " k", " M", " G", " T"], 1000);
/* A whole number, in groups of three. */
const countText = v => Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
/* So many, with the noun that goes with it. */
const manyText = (v, one, many = one + "s") => countText(v) + " " + (Math.round(v) === 1 ? one : many);
const shareText = v => figures(v * 100) + " %";

function timeText(ns) {
	const a = Math.abs(ns);
	if (a < 1e3) return figures(ns) + " ns";
	if (a < 1e6) return figures(ns / 1e3) + " µs";
	if (a < NS) return figures(ns / 1e6) + " ms";
	if (a < 120 * NS) return figures(ns / NS) + " s";
	const s = Math.round(a / NS), h = Math.floor(s / 3600);
	const minutes = Math.floor(s / 60 % 60), words = h ? [h + " h"] : [];
	if (minutes) words.push(minutes + " min");
	if (!h && s % 60) words.push(s % 60 + " s");
	return (ns < 0 ? "−" : "") + words.join(" ");
}

/* A point in time, as finely as @step asks for. */
function pointText(ns, step) {
	if (ns === 0) return "0 s";
	if (step >= 60 * NS) return timeText(ns);
	if (Math.abs(ns) >= 600 * NS)
		return Math.floor(ns / 60 / NS) + ":" +
			(ns / NS % 60).toFixed(decimals(step)).padStart(decimals(step) ? decimals(step) + 3 : 2, "0");
	return (ns / NS).toFixed(decimals(step)) + " s";
}

const decimals = step => Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / NS) - 1e-9)));

/* 1, 2 or 5 times a power of ten, not below @least. */
function niceStep(least) {
	const power = 10 ** Math.floor(Math.log10(least));
	for (const n of [1, 2, 5, 10])
		if (n * power >= least * 0.999999) return n * power;
	return 10 * power;
}

/* The same for times: above a minute minutes and hours. */
function niceTime(least) {
	for (const s of [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400])
		if (least > 50 * NS && s * NS >= least) return s * NS;
	return niceStep(least);
}
