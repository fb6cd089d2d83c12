"""Builds and queries an inverted index of a file: the python3 workload."""
import collections
import json
import re
import sys
import zlib


def documents(data, size=4096):
    data = data.decode("latin-1")
    for start in range(0, len(data), size):
        yield start // size, data[start:start + size]


def build(data):
    index = collections.defaultdict(list)
    for number, text in documents(data):
        for word, count in collections.Counter(
                re.findall("[a-z]{2,12}", text)).items():
            index[word].append((number, count))
    return index


def query(index, words):
    scores = collections.Counter()
    for word in words:
        for number, count in index.get(word, ()):
            scores[number] += count
    return scores.most_common(10)


def main():
    with open(sys.argv[1], "rb") as f:
        index = build(f.read())
    words = sorted(index)
    total = 0
    for i in range(0, len(words), max(1, len(words) // 1500)):
        total += sum(n for n, _ in query(index, words[i:i + 40:9]))
    packed = zlib.compress(json.dumps(index).encode(), 1)
    print(len(words), total, len(packed))


if __name__ == "__main__":
    main()
