#!/usr/bin/python3
"""read-tables.py FILE - keys and stacks of a trace, as t/drive/tables-drive has
them, sorted by neither.

Written from reports/FORMAT.md alone, as read-trace.py beside it, which has the
chunks, the numbers and the modelled bits."""
import importlib.util
import sys

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("reader", sys.path[0] + "/read-trace.py")
reader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reader)
Column, unzigzag, M32 = reader.Column, reader.unzigzag, reader.M32

class Symbol:
    def __init__(self):
        self.follows = self.before = self.again = None
        self.steady = 0

    def learn(self, symbol):
        if self.follows == symbol:
            self.steady = min(self.steady + 1, 3)
            return
        self.before, self.follows, self.steady = self.follows, symbol, 0

class Stacks(reader.Model):
    def __init__(self):
        super().__init__()
        self.id = self.most = 0
        self.symbols, self.places, self.last = {}, {}, []

    def known(self, symbol):
        return self.symbols.setdefault(symbol & 65535, Symbol())

    def symbol(self, old, i, came, before):
        again = follows = earlier = same = None
        steady = 0
        if old is not None:
            was = old[i] if i < len(old) else 0
            again = self.known(was).again if was else 0
        else:
            same = self.last[i] if i < len(self.last) else 0
        if i:
            s = self.known(before)
            follows, earlier, steady = s.follows, s.before, s.steady
        nr_known = sum(g is not None for g in (again, follows, earlier))
        where = "guess", old is not None, min(i, 2), nr_known, came, steady
        guesses = [again, follows, earlier, self.most + 1 & M32, same]
        came, symbol = self.choice(guesses, *where)
        if symbol is None:
            far = self.number("other", old is not None, i > 0, bits=32)
            symbol = self.most - far & M32
        self.most = max(self.most, symbol)
        if i:
            self.known(before).learn(symbol)
        return came, symbol

    def stack(self):
        self.id = self.id + 1 + unzigzag(self.number("id", bits=32)) & M32
        place = self.places.get(self.id & 4095)
        old = place[1] if place and place[0] == self.id else None
        now, came, before = [], 0, 0
        while True:
            came, symbol = self.symbol(old, len(now), came, before)
            if not symbol:
                break
            now.append(symbol)
            before = symbol
        if old is not None and len(old) == len(now):
            for was, symbol in zip(old, now):
                self.known(was).again = symbol
        self.places[self.id & 4095] = self.id, now
        self.last = now
        return self.id, [symbol - 1 for symbol in now]

    def read(self, items, payload):
        self.data = Column(payload + bytes(8))
        self.low, self.high, self.code = 0, M32, int.from_bytes(self.data.take(4), "big")
        for _ in range(items):
            yield self.stack()

def read_plain(items, payload):
    c = Column(payload)
    for _ in range(items):
        stack, nr = c.varint(32), c.varint(32)
        frame, frames = 0, []
        for _ in range(nr):
            frame = frame + unzigzag(c.varint(32)) & M32
            frames.append(frame)
        yield stack, frames

def read_table(c, items, read):
    first = c.varint(32)
    return {first + i: read(c) for i in range(items)}

def text(c):
    return c.take(c.varint()).decode("utf-8", "surrogateescape")

def show(stack, frames, table, strings):
    lines = []
    for frame in frames:
        function, file, line, module, build, offset = table[frame]
        names = (strings.get(s, "") for s in (function, file, module, build))
        lines.append("|".join((*names, str(line >> 1), str(line & 1), hex(offset))))
    print("stack", stack, " < ".join(lines))

def main():
    trace = open(sys.argv[1], "rb").read()
    dictionary = sys.path[0] + "/../reports/dictionary.bin"
    keys, strings, frames, stacks, model, whole = {}, {}, {}, {}, None, None
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    start = reader.read_header(trace)
    for kind, flags, back, seq, items, payload in reader.read_chunks(trace, start, dictionary):
        c = Column(payload)
        if kind == 1:
            keys.update((text(c), text(c)) for _ in range(items))
        elif kind == 2:
            strings.update(read_table(c, items, text))
        elif kind == 3:
            frames.update(read_table(c, items, lambda c: [c.varint() for _ in range(6)]))
        elif kind == 4 and (not back or seq - back == whole):
            model = model if back else Stacks()
            stacks.update(model.read(items, payload) if flags == 2 else read_plain(items, payload))
            whole = seq
    for key, value in keys.items():
        print("key", key, value)
    for stack, of in stacks.items():
        show(stack, of, frames, strings)

main()
