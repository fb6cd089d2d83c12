/*
 * Values over time. A series is an array of lines; each is a line of one run
 * and knows:
 *	value(from, to)    mean over that time, null where nothing is known
 *	peak(from, to)     the largest that a bucket of that time has, or null
 *	end                until when it says anything
 */

/* Sums in buckets of equal length: what, per second or per something else. */
class BucketLine {
	/* @den: by what each bucket is divided; null: by its length in seconds. */
	constructor(run, bucket, sums, den, end, first = 0) {
		Object.assign(this, {run, bucket, sums, den, end, first});
	}
	clip(from, to) {
		from = Math.max(from, 0);
		to = Math.min(to, this.end);
		return to > from ? [from, to] : null;
	}
	/* [numerator, denominator] of that time. */
	sum(from, to) {
		let num = 0, den = 0;
		const c = this.clip(from, to);
		if (!c) return [0, 0];
		const b = this.bucket, last = Math.ceil(c[1] / b) - 1;
		for (let i = Math.floor(c[0] / b); i <= last; i++) {
			const end = Math.min((i + 1) * b, this.end);
			const share = (Math.min(end, c[1]) - Math.max(i * b, c[0])) / (end - i * b);
			num += share * (this.sums[i - this.first] || 0);
			den += this.den ? share * (this.den[i - this.first] || 0) : share * (end - i * b) / NS;
		}
		return [num, den];
	}
	value(from, to) {
		const [num, den] = this.sum(from, to);
		return den > 0 ? num / den : null;
	}
	peak(from, to) {
		const c = this.clip(from, to);
		let most = null;
		if (!c) return null;
		const b = this.bucket, last = Math.ceil(c[1] / b) - 1;
		for (let i = Math.floor(c[0] / b); i <= last; i++) {
			const length = Math.min((i + 1) * b, this.end) - i * b;
			const den = this.den ? this.den[i - this.first] || 0 : length / NS;
			const v = den > 0 ? (this.sums[i - this.first] || 0) / den : null;
			if (v !== null && (most === null || v > most)) most = v;
		}
		return most;
	}
}

/* What was so from each point on until the next. */
class PointLine {
	constructor(run, times, values, end) {
		Object.assign(this, {run, times, values, end});
	}
	/* The last point not after @t, or -1. */
	index(t) {
		let low = -1, high = this.times.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (this.times[middle] <= t) low = middle;
			else high = middle - 1;
		}
		return low;
	}
	peak(from, to) {
		let most = null;
		if (from >= this.end) return null;
		for (let i = Math.max(0, this.index(from)); i < this.times.length && this.times[i] < to; i++)
			if (this.values[i] !== null && (most === null || this.values[i] > most)) most = this.values[i];
		return most;
	}
	value(from, to) {
		const end = Math.min(to, this.end);
		let sum = 0, time = 0;
		for (let i = Math.max(0, this.index(from)); i < this.times.length && this.times[i] < end; i++) {
			const until = i + 1 < this.times.length ? this.times[i + 1] : this.end;
			const length = Math.min(until, end) - Math.max(this.times[i], from);
			if (length > 0 && this.values[i] !== null) {
				sum += length * this.values[i];
				time += length;
			}
		}
		return time > 0 ? sum / time : null;
	}
}

/* Bytes unused; html.c has the mean of each bucket. */
function asleepLine(run, asleep) {
	const b = run.strip.bucket_ns;
	return new BucketLine(run, b, asleep.bytes.map(v => v * b / NS), null, run.duration, asleep.first);
}

/* --- overhead --- */

const MECHANISMS = ["stops", "agent", "touches", "arming", "cpu", "other"];
const MECHANISM_TEXT = ["stops", "agent", "touches", "arming", "supervisor CPU", "other"];
const WINDOW = 10 * NS;

/* What it cost in [@from, @to) of the time that the program ran by itself then;
 * null where nothing is known. */
function overheadOf(run, from, to) {
	const zero = {run_ns: 0, spent_ns: 0};
	const a = ledgerAt(run, from) || zero, b = ledgerAt(run, to) || zero;
	const spent = b.spent_ns - a.spent_ns, free = b.run_ns - a.run_ns - spent;
	return free > 0 ? spent / free : null;
}

/* What it cost in the 10 s before each ledger record, and of what. */
function overheadLines(run) {
	const l = run.ledger, times = [0], total = [0];
	const of = MECHANISMS.map(() => [0]);
	const zero = {time_ns: 0, run_ns: 0, spent_ns: 0, by_mechanism_ns: {}};
	let back = -1;
	for (let i = 0; i < l.length; i++) {
		while (back + 1 < i && l[back + 1].time_ns <= l[i].time_ns - WINDOW) back++;
		const before = back < 0 ? zero : l[back];
		const spent = l[i].spent_ns - before.spent_ns;
		const free = l[i].run_ns - before.run_ns - spent;
		times.push(l[i].time_ns);
		total.push(free > 0 ? spent / free : null);
		MECHANISMS.forEach((m, k) => of[k].push(free > 0 ?
			(l[i].by_mechanism_ns[m] - (before.by_mechanism_ns[m] || 0)) / free : null));
	}
	/* A record tells of the time before it. */
	const shift = values => values.slice(1).concat(values[values.length - 1]);
	const line = new PointLine(run, times, shift(total), run.duration);
	line.whole = (from, to) => overheadOf(run, from, to);
	/* The start is dear beside what had run until then: no scale for the rest. */
	line.usual = Math.max(...line.values.filter((v, i) => times[i] >= Math.min(NS, run.duration / 4)), 0);
	return {
		total: line,
		of: of.map(v => new PointLine(run, times, shift(v), run.duration)),
	};
}

function ledgerLine(run, key, of = v => v) {
	return new PointLine(run, run.ledger.map(l => l.time_ns), run.ledger.map(l => l[key] === null ? null : of(l[key])), run.duration);
}

/* The ledger's entry that holds at @t: all 0 before the first. */
function ledgerAt(run, t) {
	let found = null;
	for (const l of run.ledger) if (l.time_ns <= t) found = l;
	return found;
}
