#!/usr/bin/python3
"""read-trace.py FILE [FROM TO [THREAD]] - all records of a trace, or those of a part of the
session in ns, as smco-report --juwel has them, then keys and stacks as t/drive/tables-drive has.
Written from reports/FORMAT.md alone, nothing is taken from the C code: where they disagree, one
of them or the page is wrong. What does not fit is an assertion that fails, and a damaged chunk."""
import io, itertools, struct, subprocess, sys, zlib
from collections import defaultdict, namedtuple
M32, M64, PRIME = 2**32 - 1, 2**64 - 1, 2654435761
META, STRINGS, FRAMES, STACKS, END, RECORDS, INDEX, SCHEMA, NAMES = 1, 2, 3, 4, 6, 7, 9, 10, 11
Chunk = namedtuple("Chunk", "at end kind flags seq items back raw crc stored")
HEADER, DICTIONARY = "<8sHHIQ36xI", sys.path[0] + "/../reports/dictionary.bin"
Field = namedtuple("Field", "name offset widths coding a b unit")
unzigzag = lambda v: v >> 1 ^ -(v & 1)

class Bytes(io.BytesIO):
    def take(self, n):
        assert len(data := self.read(n)) == n
        return data
    def varint(self, bits=64, second=None, others=None):  # bytes that are elsewhere
        v, shift, source = self.take(1)[0], 7, second or self
        while v >> shift and shift < 70:
            v += source.take(1)[0] - 1 << shift
            shift, source = shift + 7, others or self
        assert not v >> bits
        return v
    def varints(self, n, bits=64):
        return [self.varint(bits) for _ in range(n)]
    def text(self):
        return self.take(self.varint(17)).decode("utf-8", "surrogateescape")

class Slot:  # what is known of an event
    def __init__(self):
        self.event, self.cpu, self.thread = 0, M32, 0
        self.last = self.stride = self.follows = self.most = self.near = 0
        self.follower, self.fields, self.step = [0] * 256, [0] * 32, [0] * 32
        self.came, self.paces, self.places = [0] * 33, {}, {}  # came: of a parameter, too
    def learn(self, param):
        if param != self.last:
            self.follower[(self.last * PRIME & M32) >> 24] = param
            self.last, self.stride = param, param - self.last & M32
            self.follows = self.follower[(param * PRIME & M32) >> 24]
            self.most = max(self.most, param)
    def place(self, step=0):  # of a record: its number; time and fields of what is there
        who = self.last + step & M32, self.thread
        at = ((who[0] + 97 * who[1]) * PRIME & M32) >> 18
        there, *past = self.places.get(at, [None])
        return at, *(past if there == who else (0, None))
    def expects(self, i, field, time):  # of field i: the value, and its code's sign
        new, a, b = self.fields, field.a, field.b
        return ((0, 0), (new[i], 1), (time, -1), (-1, 1), (self.last, 1), (time - new[a], -1),
                (new[a] - new[b], -1), (0, 0), (new[i], 1))[field.coding]
    def payload(self, size, fields):
        return sum(v << 8 * f.offset for f, v in zip(fields, self.fields)).to_bytes(size, "little")
def new_slot(slots, event):  # its number: 0 if there is no room for one more
    nr = len(slots) % 16
    slots += [Slot()] if nr else []
    slots[nr].event = event
    return nr

def columns(c, items, schema):
    time, *lengths = c.varints(4)
    head, time0, time1, time2, value = (Bytes(c.take(n)) for n in (items, items, *lengths))
    cpu, thread, slots = M32, 0, [Slot()]
    for _ in range(items):
        h = head.take(1)[0]
        slot = slots[h & 15 or new_slot(slots, value.varint(32))]
        more = value.varint(2) if h & 128 else 0
        if h & 16:
            cpu = value.varint(32) - 1 & M32
            thread = thread + unzigzag(value.varint(32)) & M32
        steps = 0, slot.follows - slot.last, slot.stride
        step = steps[h >> 5 & 3] if h & 96 < 96 else unzigzag(value.varint(32))
        slot.learn(slot.last + step & M32)
        time = time + (-1 if more & 1 else 1) * time0.varint(64, time1, time2) & M64
        size, _, fields = schema.get(slot.event, (0, 1, [])) if more < 2 else (0, 1, [])
        present = c.varint(len(fields)) if fields else 0
        for i, field in enumerate(fields):
            bits = 4 * (field.widths & -2)
            code = c.varint(bits) if present >> i & 1 else 0
            want, sign = slot.expects(i, field, time)
            slot.fields[i] = want + (sign * unzigzag(code) if sign else code) & (1 << bits) - 1
        data = c.take(c.varint()) if more & 2 else slot.payload(size, fields)
        yield slot.event, time, cpu, thread, slot.last, data

class Model:  # what modelled chunks have taught; and where decoding stands
    def __init__(self):
        self.seen = defaultdict(lambda: defaultdict(lambda: (32768, 0)))
        self.slots, self.slot, self.time = [Slot()], 0, 0
        self.id, self.most, self.last, self.followed = 0, 0, [], {}  # by what, how steadily
    def begin(self, data):
        self.data, self.low, self.high = Bytes(data + bytes(4)), 0, M32
        self.code = int.from_bytes(self.data.take(4), "big")
    def bit(self, which="even odds", *where):  # of no context: they stay so
        odds, times = self.seen[where][which]
        middle = self.low + ((self.high - self.low) * odds >> 16)
        bit = self.code <= middle
        self.low, self.high = (self.low, middle) if bit else (middle + 1, self.high)
        step = (65536 - odds if bit else odds) * 2 // (2 * times + 3)
        if where:
            self.seen[where][which] = odds + (step if bit else -step), times + (times < 30)
        while self.low >> 24 == self.high >> 24:
            self.low, self.high = self.low << 8 & M32, self.high << 8 & M32 | 255
            self.code = self.code << 8 & M32 | self.data.take(1)[0]
        return bit
    def bits(self, nr, *where):
        v = 1
        while v < 1 << nr:
            v = v << 1 | self.bit(v, *where)
        return v - (1 << nr)
    def number(self, *where, bits=32, known=False):
        assert (length := self.bits(7, *where)) <= bits
        v = int(length > 0)
        for _ in range(length - 1):
            learned = length <= 16 if known else v < 8
            v = v << 1 | (self.bit((length, v), *where) if learned else self.bit())
        return v
    def choice(self, guesses, *where):
        for i, guess in enumerate(guesses):
            if guess is not None and guess not in guesses[:i] and self.bit(i, *where):
                return i, guess
        return len(guesses), None
    def measure(self, base, bits, unit, by, *where):  # base: None if there is none
        if unit > 1 and not self.bit("even", *where):
            unit, by = 1, "odd"
        v = self.number(*where, by, bits=bits)
        v = v * unit if base is None else base - base % unit + unzigzag(v) * unit
        return v & (1 << bits) - 1
    def record(self, schema):
        nr = self.bits(4, "slot", self.slot) or new_slot(self.slots, self.number("event"))
        slot, was_slot, self.slot = self.slots[nr], self.slot, nr
        if self.bit("who", nr):
            slot.cpu = self.number(nr, "cpu") - 1 & M32
            slot.thread = slot.thread + unzigzag(self.number(nr, "thread")) & M32
        size, unit, fields = schema.get(slot.event, (0, 1, []))
        last, distance, missed = slot.paces.get(slot.thread % 16, (None, 0, 0))
        if not self.bit("same", nr, nr == was_slot):
            want = self.time if last is None else last + distance & M64
            self.time = self.measure(want, 64, unit, "late", nr, "time")
        if last not in (None, self.time):
            now = (self.time - last + 2**63 & M64) - 2**63
            off = (now - distance + 2**63 & M64) - 2**63
            if abs(off) <= abs(distance) // 4:
                distance, missed = distance + (off + 31 * (off < 0)) // 32, 0
            else:
                distance, missed = (distance, missed + 1) if distance and missed < 2 else (now, 0)
        slot.paces[slot.thread % 16] = self.time, distance, missed
        guesses = slot.most + 1 & M32, slot.last + slot.stride & M32, slot.follows, slot.last
        slot.came[32], param = self.choice(guesses, nr, "parameter", slot.came[32])
        near = param is None and slot.event in schema
        slot.near = self.bit("near?", nr, slot.near) if near else slot.near
        if near and slot.near:
            param = slot.last + self.number(nr, "near") & M32
        elif param is None:
            above = self.bit("above?", nr)
            param = slot.most * above + self.number(nr, "far", above, known=not above) & M32
        slot.learn(param)
        (at, then, past), new, came = slot.place(), slot.fields, 0
        beside = slot.place(-1)[2] or slot.place(1)[2]
        for i, (_, _, widths, coding, a, _, unit) in enumerate(fields):
            bits, mask = 4 * (widths & -2), (1 << 4 * (widths & -2)) - 1
            base = slot.expects(i, fields[i], self.time)[0] & mask
            guesses = base, new[i], None, None
            if past:
                since = self.time - then & M64 if bits == 64 else None
                guesses = base, past[i], past[i] + slot.step[i] & mask, since
            came, v = self.choice(guesses, nr, i, past is not None, slot.came[i], came == 0)
            if v is None:
                like, by = (past, 1) if past else (beside, 2) if coding == 8 and beside else (0, 0)
                if like and coding in (0, 1, 7, 8):
                    scale = coding == 7 and like[a]
                    base = (like[i] * new[a] & M64) // scale if scale else like[i]
                elif coding in (0, 7):
                    base = None
                v = self.measure(base, bits, unit, by, nr, i)
            slot.step[i] = v - past[i] if past and v != past[i] else slot.step[i]
            slot.came[i], new[i] = came, v
        if nr:
            slot.places[at] = (slot.last, slot.thread), self.time, list(new)
        return slot.event, self.time, slot.cpu, slot.thread, slot.last, slot.payload(size, fields)
    def stack(self, _):
        self.id = self.id + 1 + unzigzag(self.number("id")) & M32
        now, came, symbol, (follows, steady) = [], 0, None, ([], 0)
        while symbol != 0:
            here = (self.last[len(now) :] or [0])[0]
            guesses = *follows, *[None] * (4 - len(follows)), self.most + 1 & M32, here
            came, symbol = self.choice(guesses, min(len(now), 2), len(follows), came, steady)
            if symbol is None:
                symbol = self.number("symbol", now == [], known=True)
            self.most = max(self.most, symbol)
            if now:
                steady = min(steady + 1, 3) if follows[:1] == [symbol] else 0
                follows = [symbol, *(s for s in follows if s != symbol)][:4]
                self.followed[now[-1] & 65535] = follows, steady
            follows, steady = self.followed.get(symbol & 65535, ([], 0))
            now.append(symbol)
        self.last = now
        return self.id, [symbol - 1 for symbol in now[:-1]]

def table(c, items, kind):  # what a chunk has, each with its key
    last, frame = c.varint(32) - 1 if kind in (STRINGS, FRAMES) else 0, 0
    for _ in range(items):
        last += c.varint() if kind == INDEX else 1  # place in the file
        if kind in (META, STRINGS, FRAMES):
            yield c.text() if kind == META else last, c.varints(6) if kind == FRAMES else c.text()
        elif kind in (STACKS, NAMES):
            last = c.varint(32) if kind == STACKS else last - 1 + unzigzag(c.varint(32)) & M32
            frame = frame if kind == NAMES else 0
            steps = c.varints(c.varint(32), 32)
            yield last, [frame := frame + unzigzag(step) & M32 for step in steps]
        elif kind == INDEX:
            _, first, length = c.varints(3)
            yield last, (first, first + length, int.from_bytes(c.take(8), "little"))
        elif kind == SCHEMA:
            event, _, _, size, nr, unit = c.varint(32), c.text(), c.text(), *c.varints(3, 32)
            yield event, (size, unit, [Field(c.text(), *c.varints(6, 32)) for _ in range(nr)])

def read_chunks(data, at):
    while 0 <= at < len(data):
        try:
            c = Bytes(data[at : at + 32])
            magic, kind, seq, items, stored = c.take(2), c.take(1)[0], *c.varints(3, 32)
            raw = c.varint(32) if kind & 16 else stored
            back = c.varint(16) if kind & 32 else 0
            head, (crc, head_crc) = c.tell() + 4, struct.unpack("<IH", c.take(6))
            end = at + head + 2 + stored
            assert magic == b"SM" and zlib.crc32(data[at : at + head]) & 65535 == head_crc
            assert max(stored, raw) <= 4 << 20 and end <= len(data)
            this = at, end, kind & 15, kind >> 4, seq, items, back, raw, crc
            yield Chunk(*this, data[end - stored : end])
            at = end
        except AssertionError:
            at = data.find(b"SM", at + 1)

class Trace:
    def __init__(self, data):
        magic, version, oldest, end, features, crc = struct.unpack_from(HEADER, data.ljust(64))
        self.damaged, seq = int(zlib.crc32(data[:60]) != crc), 0
        known = self.damaged or version >= 7 >= oldest and features < 2
        if magic != b"\x89SMCO\r\n\x1a" or not known:
            sys.exit("not a trace, or not of this format")
        self.tables, self.models, self.chunks = defaultdict(dict), {}, defaultdict(list)
        end = 64 if self.damaged else end
        for chunk in read_chunks(data, end):
            self.damaged += max(chunk.seq - seq, chunk.at != end)
            seq, end = chunk.seq + 1, chunk.end
            if chunk.kind not in (END, RECORDS) and chunk.kind <= NAMES:
                self.tables[chunk.kind].update(self.items(chunk))
            self.chunks[chunk.kind].append(chunk)
        self.is_cut = end != len(data) or not self.chunks[END]
    def items(self, chunk):  # as far as they can be read
        kind, items, data, schema = chunk.kind, chunk.items, chunk.stored, self.tables[SCHEMA]
        try:
            assert zlib.crc32(data) == chunk.crc and chunk.flags in (0, 1, 5, 10)
            if chunk.flags & 1:
                zstd = ["zstd", "-dcq", *(["-D", DICTIONARY] if chunk.flags & 4 else [])]
                data = subprocess.run(zstd, input=data, stdout=subprocess.PIPE).stdout
            assert len(data) == chunk.raw and (kind != RECORDS or schema)
            c = Bytes(data)
            c.varints(kind == RECORDS)  # how many the writer dropped
            if chunk.flags == 10:
                before, model = self.models.pop(kind, (None, None))
                assert not chunk.back or chunk.seq - chunk.back == before
                model = model if chunk.back else Model()
                model.begin(c.read())
                read = {STACKS: model.stack, RECORDS: model.record}[kind]
                yield from (read(schema) for _ in range(items))
                self.models[kind] = chunk.seq, model
            else:
                yield from columns(c, items, schema) if kind == RECORDS else table(c, items, kind)
        except (AssertionError, ValueError, IndexError, KeyError):
            self.damaged += 1
    def records(self, start=0, end=M64 + 1, thread=None):  # by the index, if there is one
        chunks, needed = [], False
        for chunk in reversed(self.chunks[RECORDS]):  # also those that one continues
            first, last, threads = self.tables[INDEX].get(chunk.at, (start, start, M64))
            threads &= M64 if thread is None else 1 << ((thread * PRIME & M32) >> 26)
            needed = first < end and last >= start and threads or needed and chunks[-1].back
            chunks += [chunk] if needed else []
        records = itertools.chain.from_iterable(map(self.items, reversed(chunks)))
        yield from (r for r in records if start <= r[1] < end and thread in (None, r[3]))
        print(len(chunks), "of", len(self.chunks[RECORDS]), "chunks were read", file=sys.stderr)
    def frame(self, nr):
        function, file, line, *module, at = self.tables[FRAMES].get(nr, [0] * 6)
        names = (self.tables[STRINGS].get(name, "") for name in (function, file, *module))
        return "|".join((*names, str(line >> 1), str(line & 1), hex(at)))

trace = Trace(open(sys.argv[1], "rb").read())
sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
for *record, data in trace.records(*map(int, sys.argv[2:])):
    print(*record, data.hex() or "-")
for key in trace.tables[META].items():
    print("key", *(part.replace("\n", "\\n") for part in key))
for stack, frames in trace.tables[STACKS].items():
    frames = [name for f in frames for name in trace.tables[NAMES].get(f, [f])][:1024]
    print("stack", stack, " < ".join(map(trace.frame, frames)))
sys.exit(11 if trace.damaged else 10 if trace.is_cut else 0)
