"""The work of index.py in rounds without end, each on pieces of all of the file;
a line for each: what the monotonic clock says, and its own CPU time."""
import collections
import json
import sys
import time
import zlib

from index import build, query

PIECE = 4096
PIECES = 8
KEPT = 200


def pieces(data):
    stride = len(data) // PIECES
    while True:
        for at in range(0, stride - PIECE, PIECE):
            yield b"".join(data[start + at:start + at + PIECE]
                           for start in range(0, PIECES * stride, stride))


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    kept = collections.deque(maxlen=KEPT)
    for piece in pieces(data):
        print("%.6f %.6f" % (time.monotonic(), time.process_time()), flush=True)
        index = build(piece)
        words = sorted(index)
        for i in range(0, len(words), max(1, len(words) // 20)):
            query(index, words[i:i + 40:9])
        kept.append((index, zlib.compress(json.dumps(index).encode(), 1)))


main()
