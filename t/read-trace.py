#!/usr/bin/python3
"""read-trace.py FILE - all records of a trace, as smco-report --juwel has them.

Written from reports/FORMAT.md alone: where the two programs disagree, one of
them or the page is wrong. Nothing here is taken from the C code, and it is not
made for speed. Compressed chunks go through zstd(1).
"""
import struct
import subprocess
import sys
import zlib

M32 = 2**32 - 1
M64 = 2**64 - 1
MAGIC = b"\x89SMCO\r\n\x1a"


class Malformed(Exception):
    pass


class Column:
    """Bytes that are taken from the front."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def byte(self):
        if self.at >= len(self.data):
            raise Malformed("end of column")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Malformed("end of column")
        self.at += n
        return self.data[self.at - n : self.at]

    def varint(self, bits=64):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 127) << shift
            shift += 7
            if not b & 128:
                break
            if shift >= 70:
                raise Malformed("varint")
        if v >> bits:
            raise Malformed("varint")
        return v

    def text(self):
        n = self.varint()
        if n > 65536:
            raise Malformed("text")
        return self.take(n)


def unzigzag(v):
    return v >> 1 if not v & 1 else -(v >> 1) - 1


# ---------------------------------------------------------------- the file --


def read_header(data):
    if data[:8] != MAGIC:
        sys.exit("not a trace")
    if zlib.crc32(data[:60]) != struct.unpack_from("<I", data, 60)[0]:
        return 64
    oldest, size = struct.unpack_from("<HI", data, 10)
    features = struct.unpack_from("<Q", data, 16)[0]
    if oldest > 3 or features & ~1:
        sys.exit("needs a newer reader")
    return max(size, 64)


def read_chunks(data, at):
    """(type, items, compressed?, raw size, payload) of each whole chunk."""
    while at + 32 <= len(data):
        head = data[at : at + 32]
        (magic, kind, flags, _, _, items, stored, raw, crc, head_crc) = (
            struct.unpack("<4sBBHIIIIII", head)
        )
        body = data[at + 32 : at + 32 + stored]
        if (
            magic != b"SMCK"
            or zlib.crc32(head[:28]) != head_crc
            or max(stored, raw) > 4 << 20
            or len(body) < stored
        ):
            at = data.find(b"SMCK", at + 1)
            if at < 0:
                return
            continue
        at += 32 + stored
        if zlib.crc32(body) == crc and not flags & ~1:
            yield kind, items, flags & 1, raw, body


def decompressed(chunks):
    """(type, items, payload); one zstd for all frames."""
    frames = b"".join(c[4] for c in chunks if c[2])
    out = b""
    if frames:
        out = subprocess.run(
            ["zstd", "-dcq"], input=frames, stdout=subprocess.PIPE, check=True
        ).stdout
    at = 0
    for kind, items, compressed, raw, body in chunks:
        if compressed:
            body = out[at : at + raw]
            at += raw
        yield kind, items, body


# -------------------------------------------------------------- the schema --


def read_schema(items, payload, schema):
    c = Column(payload)
    for _ in range(items):
        event = c.varint(32)
        c.text()
        c.text()
        size = c.varint(32)
        fields = []
        for _ in range(c.varint(32)):
            c.text()
            offset, width, coding, a, b = (c.varint(32) for _ in range(5))
            fields.append((offset, width >> 1, coding, a, b))
        schema[event] = (size, fields)


# ------------------------------------------------------------- the records --


class Slot:
    def __init__(self, event):
        self.event = event
        self.last = self.stride = 0
        self.follower = [0] * 256
        self.fields = [0] * 32


def value_of(coding, a, b, code, index, slot, time, param):
    d = unzigzag(code)
    if coding == 0:
        return code
    if coding == 1:
        return slot.fields[index] + d
    if coding == 2:
        return time - d
    if coding == 3:
        return d - 1
    if coding == 4:
        return param + d
    if coding == 5:
        return time - slot.fields[a] - d
    if coding == 6:
        return slot.fields[a] - slot.fields[b] - d
    raise Malformed("coding")


def read_fields(c, event, slot, schema, time, param):
    size, fields = schema[event]
    payload = bytearray(size)
    present = c.varint()
    if present >> len(fields):
        raise Malformed("presence bits")
    for i, (offset, width, coding, a, b) in enumerate(fields):
        code = c.varint(8 * width) if present >> i & 1 else 0
        v = value_of(coding, a, b, code, i, slot, time, param)
        v &= M32 if width == 4 else M64
        slot.fields[i] = v
        payload[offset : offset + width] = v.to_bytes(width, "little")
    return bytes(payload)


def read_records(items, payload, schema):
    c = Column(payload)
    c.varint()  # dropped
    time = c.varint()
    n1, n2, nv = (c.varint() for _ in range(3))
    head, time0, time1, time2, value = (
        Column(c.take(n)) for n in (items, items, n1, n2, nv)
    )
    rest = Column(payload[c.at :])
    cpu, thread = M32, 0
    slots = [Slot(None)]
    for _ in range(items):
        h = head.byte()
        nr = h & 15
        if nr >= len(slots):
            raise Malformed("slot")
        slot = slots[nr]
        event = slot.event
        if nr == 0:
            event = value.varint(32)
            if len(slots) < 16:
                slot = Slot(event)
                slots.append(slot)
        more = value.byte() if h & 128 else 0
        if more & ~3:
            raise Malformed("more")
        if h & 16:
            cpu = (value.varint(32) - 1) & M32
            thread = (thread + unzigzag(value.varint(32))) & M32
        mode = h >> 5 & 3
        at = (slot.last * 2654435761 & M32) >> 24
        param = slot.last
        if mode == 1:
            param = slot.follower[at]
        elif mode == 2:
            param = (slot.last + slot.stride) & M32
        elif mode == 3:
            param = (slot.last + unzigzag(value.varint(32))) & M32
        if param != slot.last:
            slot.follower[at] = param
            slot.stride = (param - slot.last) & M32
            slot.last = param
        b = time0.byte()
        distance = b & 127
        if b & 128:
            b = time1.byte()
            distance |= (b & 127) << 7
            if b & 128:
                distance |= time2.varint() << 14
        time = (time - distance if more & 1 else time + distance) & M64
        data = b""
        if more & 2:
            n = rest.varint()
            if n > 1 << 20:
                raise Malformed("raw payload")
            data = rest.take(n)
        elif event in schema:
            data = read_fields(rest, event, slot, schema, time, param)
        yield event, time, cpu, thread, param, data


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    chunks = list(read_chunks(data, read_header(data)))
    schema = {}
    for kind, items, payload in decompressed(chunks):
        try:
            if kind == 8:
                read_schema(items, payload, schema)
            elif kind == 7:
                for r in read_records(items, payload, schema):
                    print(*r[:5], r[5].hex() or "-")
        except Malformed:
            pass  # the rest of the chunk is lost


main()
