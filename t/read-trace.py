#!/usr/bin/python3
"""read-trace.py FILE - all records of a trace, as smco-report --juwel has them.

Written from reports/FORMAT.md alone, nothing is taken from the C code: where they
disagree, one of them or the page is wrong. Compressed chunks go through zstd(1)."""
import struct
import subprocess
import sys
import zlib

M32, M64 = 2**32 - 1, 2**64 - 1

class Column:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        if self.at > len(self.data):
            raise ValueError("end of column")
        return self.data[self.at - n : self.at]

    def varint(self, bits=64):
        v = 0
        for shift in range(0, 70, 7):
            b = self.take(1)[0]
            v |= (b & 127) << shift
            if b < 128:
                return fits(v, bits)
        raise ValueError("varint")

def fits(v, bits):
    if v >> bits:
        raise ValueError("number")
    return v

def unzigzag(v):
    return v >> 1 ^ -(v & 1)

def read_header(data):
    if data[:8] != b"\x89SMCO\r\n\x1a":
        sys.exit("not a trace")
    if zlib.crc32(data[:60]) != struct.unpack_from("<I", data, 60)[0]:
        return 64
    oldest, size, features = struct.unpack_from("<HIQ", data, 10)
    if oldest != 5 or features & ~1:
        sys.exit("needs a newer reader")
    return max(size, 64)

def read_chunks(data, at, preset):  # type, flags, how far back, number, items, payload
    while 0 <= at < len(data):
        try:
            c = Column(data[at : at + 32])
            magic, kind = c.take(2), c.take(1)[0]
            seq, items, stored = (c.varint(32) for _ in range(3))
            raw = c.varint(32) if kind & 16 else stored
            back = c.varint(16) if kind & 32 else 0
            crc, sum_ = struct.unpack("<IH", c.take(6))
            body = data[at + c.at : at + c.at + stored]
            right = magic == b"SM" and zlib.crc32(c.data[: c.at - 2]) & 65535 == sum_
            if not right or max(stored, raw) > 4 << 20 or len(body) < stored:
                raise ValueError("no chunk")
        except ValueError:
            at = data.find(b"SM", at + 1)
            continue
        at += c.at + stored
        if zlib.crc32(body) == crc and kind >> 4 in (0, 1, 2, 5):
            if kind & 16:
                unzstd = ["zstd", "-dcq", *(["-D", preset] if kind & 64 else [])]
                body = subprocess.run(unzstd, input=body, stdout=subprocess.PIPE).stdout
            yield kind & 15, kind >> 4, back, seq, items, body

def read_schema(items, payload, schema):
    c = Column(payload)
    for _ in range(items):
        event = c.varint(32)
        c.take(c.varint()), c.take(c.varint())
        size, nr, unit = (c.varint(32) for _ in range(3))
        fields = []
        for _ in range(nr):
            c.take(c.varint())
            offset, width, *coding, field_unit = (c.varint(32) for _ in range(6))
            fields.append((offset, width >> 1, field_unit, *coding))
        schema[event] = (size, fields, unit)

class Slot:
    def __init__(self, event=None):
        self.event, self.cpu, self.thread = event, M32, 0
        self.last = self.stride = self.most = 0
        self.follower, self.fields, self.step = [0] * 256, [0] * 32, [0] * 32
        self.came = [0] * 33  # of each field, and of the parameter
        self.paces, self.past, self.near = {}, {}, False

    def payload(self, size, fields):
        data = bytearray(size)
        for (offset, width, *_), v in zip(fields, self.fields):
            data[offset : offset + width] = v.to_bytes(width, "little")
        return data

    def hashed(self):
        return (self.last * 2654435761 & M32) >> 24

    def took(self, param):
        if param != self.last:
            self.follower[self.hashed()] = param
            self.last, self.stride = param, param - self.last & M32

def wanted(coding, a, b, i, fields, time, param):  # and its code's sign
    plain, same, until = (0, None), (fields[i], 1), (time - fields[a], -1)
    between = fields[a] - fields[b], -1
    return (plain, same, (time, -1), (-1, 1), (param, 1), until, between, plain, same)[coding]

def read_fields(c, fields, slot, time):
    present = fits(c.varint(), len(fields))
    for i, (_, width, _, *coding) in enumerate(fields):
        v = c.varint(8 * width) if present >> i & 1 else 0
        want, sign = wanted(*coding, i, slot.fields, time, slot.last)
        slot.fields[i] = (v if sign is None else want + sign * unzigzag(v)) & (1 << 8 * width) - 1

def read_columns(items, payload, schema):
    c = Column(payload)
    _, time, *lengths = (c.varint() for _ in range(5))
    lengths = items, items, *lengths
    head, time0, time1, time2, value = (Column(c.take(n)) for n in lengths)
    cpu, thread, slots = M32, 0, [Slot()]
    for _ in range(items):
        h = head.take(1)[0]
        slot = slots[h & 15]
        event = slot.event if h & 15 else value.varint(32)
        if not h & 15 and len(slots) < 16:
            slot = Slot(event)
            slots.append(slot)
        more = fits(value.take(1)[0], 2) if h & 128 else 0
        if h & 16:
            cpu = value.varint(32) - 1 & M32
            thread = thread + unzigzag(value.varint(32)) & M32
        steps = [0, slot.follower[slot.hashed()] - slot.last, slot.stride]
        step = steps[h >> 5 & 3] if h & 96 < 96 else unzigzag(value.varint(32))
        slot.took(slot.last + step & M32)
        far = time0.take(1)[0]
        if far & 128:
            far += (time1.take(1)[0] - 1) << 7
            if far >> 14:
                far += (time2.varint() - 1) << 14
        time = (time - far if more & 1 else time + far) & M64
        size, fields, _ = schema.get(event, (0, [], 1))
        if not more & 2 and fields:
            read_fields(c, fields, slot, time)
        data = c.take(c.varint()) if more & 2 else slot.payload(size, fields)
        yield event, time, cpu, thread, slot.last, data

class Model:  # what modelled chunks have taught; and where decoding stands
    def __init__(self):
        self.seen, self.slots, self.slot, self.time = {}, [Slot()], 0, 0

    def split(self, odds):
        middle = self.low + ((self.high - self.low) * odds >> 16)
        bit = self.code <= middle
        self.low, self.high = (self.low, middle) if bit else (middle + 1, self.high)
        while not (self.low ^ self.high) >> 24:
            self.low = self.low << 8 & M32
            self.high = self.high << 8 & M32 | 255
            self.code = self.code << 8 & M32 | self.data.take(1)[0]
        return bit

    def bit(self, *where):
        odds, times = self.seen.get(where, (32768, 0))
        bit = self.split(odds)
        step = (65536 - odds if bit else odds) * 2 // (2 * times + 3)
        self.seen[where] = odds + (step if bit else -step), min(times + 1, 30)
        return bit

    def bits(self, nr, *where):
        v = 1
        while v < 1 << nr:
            v = v << 1 | self.bit(*where, v)
        return v - (1 << nr)

    def number(self, *where, bits=64):
        n = self.bits(7, *where)
        v = int(n > 0)
        for _ in range(n - 1):
            v = v << 1 | (self.bit(*where, n, v) if v < 8 else self.split(32768))
        return fits(v, bits)

    def choice(self, guesses, *where):
        for i, guess in enumerate(guesses):
            if guess is not None and guess not in guesses[:i] and self.bit(*where, i):
                return i, guess
        return len(guesses), None

    def measure(self, unit, width, base, whole, odd, *where):  # what is not foretold
        if unit > 1 and not self.bit(*where[:2], "even"):
            unit, where = 1, odd
        base -= base % unit
        v = self.number(*where, bits=8 * width)
        return (v * unit if whole else base + unzigzag(v) * unit) & (1 << 8 * width) - 1

    def take_time(self, nr, slot, unit):
        last, distance, missed = e = slot.paces.setdefault(slot.thread % 16, [None, 0, 0])
        if not self.bit(nr, "same", nr == self.slot):
            want = self.time if last is None else last + distance
            self.time = self.measure(unit, 8, want & M64, False, (nr, "late"), nr, "time")
        e[0] = self.time
        now, off = ((self.time - (last or 0) - d + 2**63 & M64) - 2**63 for d in (0, distance))
        if last is None or not now:
            pass
        elif abs(off) <= abs(distance) >> 2:
            e[1:] = distance + (off // 32 if off > 0 else -(-off // 32)), 0
        else:
            e[1:] = (distance, missed + 1) if distance and missed < 2 else (now, 0)

    def take_param(self, nr, slot, known):
        last, step = slot.last, slot.last + slot.stride & M32
        guesses = [slot.most + 1 & M32, step, slot.follower[slot.hashed()], last]
        slot.came[32], param = self.choice(guesses, nr, "parameter", slot.came[32])
        if param is None and known:
            slot.near = self.bit(nr, "near?", slot.near)
            if slot.near:
                param = last + self.number(nr, "near", bits=32) & M32
        if param is None:
            above = self.bit(nr, "above")
            far = self.number(nr, "far", above, bits=32)
            param = slot.most + (far if above else -far) & M32
        slot.took(param)
        slot.most = max(slot.most, param)

    def place(self, slot, step):
        who = slot.last + step & M32, slot.thread
        at = ((who[0] + 97 * who[1]) * 2654435761 & M32) >> 18
        past = slot.past.get(at)
        return at, past if past and past[:2] == who else None

    def take_fields(self, nr, slot, fields):
        (at, past), new, after = self.place(slot, 0), slot.fields, True
        beside = None if past else self.place(slot, -1)[1] or self.place(slot, 1)[1]
        for i, (_, width, unit, *coding) in enumerate(fields):
            mask = (1 << 8 * width) - 1
            base = wanted(*coding, i, new, self.time, slot.last)[0] & mask
            guesses = [base, new[i], None, None]
            if past:
                since = self.time - past[2] & M64 if width == 8 else None
                guesses[1:] = past[3][i], past[3][i] + slot.step[i] & mask, since
            slot.came[i], v = self.choice(guesses, nr, i, bool(past), slot.came[i], after)
            if v is None:
                whole, by = not past and coding[0] in (0, 7), int(bool(past))
                if past and coding[0] in (0, 1, 7, 8):
                    base, a = past[3][i], coding[1]
                    if coding[0] == 7 and past[3][a]:
                        base = (base * new[a] & M64) // past[3][a]
                elif beside and coding[0] == 8:
                    base, by = beside[3][i], 2
                v = self.measure(unit, width, base, whole, (nr, "odd", i), nr, i, by)
            if past and v != past[3][i]:
                slot.step[i] = v - past[3][i]
            new[i], after = v, slot.came[i] == 0
        if nr:
            slot.past[at] = slot.last, slot.thread, self.time, list(new)

    def records(self, items, payload, schema):
        self.data = Column(payload + bytes(8))
        self.data.varint()
        self.low, self.high, self.code = 0, M32, int.from_bytes(self.data.take(4), "big")
        for _ in range(items):
            nr = self.bits(4, "slot", self.slot)
            slot = self.slots[nr]
            if not nr:
                event = self.number("event", bits=32)
                if len(self.slots) < 16:
                    nr, slot = len(self.slots), Slot()
                    self.slots.append(slot)
                slot.event = event
            if self.bit(nr, "who"):
                slot.cpu = self.number(nr, "cpu", bits=32) - 1 & M32
                slot.thread = slot.thread + unzigzag(self.number(nr, "thread", bits=32)) & M32
            size, fields, unit = schema.get(slot.event, (0, [], 1))
            self.take_time(nr, slot, unit)
            self.take_param(nr, slot, slot.event in schema)
            self.take_fields(nr, slot, fields)
            self.slot, who = nr, (slot.cpu, slot.thread)
            yield slot.event, self.time, *who, slot.last, slot.payload(size, fields)

def main():
    trace, schema, model, whole = open(sys.argv[1], "rb").read(), {}, None, None
    dictionary = sys.path[0] + "/../reports/dictionary.bin"
    for kind, flags, back, seq, items, payload in read_chunks(trace, read_header(trace), dictionary):
        try:
            if kind == 10:
                read_schema(items, payload, schema)
            if kind != 7 or back and seq - back != whole:
                continue
            model = model if back else Model()
            read, whole = (model.records if flags == 2 else read_columns), None
            for r in read(items, payload, schema):
                print(*r[:5], r[5].hex() or "-")
            whole = seq
        except (ValueError, IndexError):
            pass  # the rest of the chunk is lost
if __name__ == "__main__": main()
