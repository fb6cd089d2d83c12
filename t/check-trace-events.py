"""Is a file a trace in the JSON form of the Trace Event Format, in every detail
that a reader of it may rely on? The document that describes the format has the
kinds of events (ph), what each must have, and that times are microseconds.

	check-trace-events.py FILE       says what is wrong; status 0: nothing is
"""
import collections
import json
import re
import sys

NAME, TS, PID, TID, CAT, ID, ARGS = "name", "ts", "pid", "tid", "cat", "id", "args"
ASYNC = ({NAME, CAT, ID, PID, TS}, {TID, ARGS})
# ph: (what must be there, what may be there)
KINDS = {
    "M": ({NAME, PID, ARGS}, {TID, TS}),
    "B": ({NAME, PID, TID, TS}, {CAT, ARGS}),
    "E": ({PID, TID, TS}, {NAME, CAT, ARGS}),
    "X": ({NAME, PID, TID, TS, "dur"}, {CAT, ARGS}),
    "i": ({NAME, PID, TS}, {TID, CAT, "s", ARGS}),
    "C": ({NAME, PID, TS, ARGS}, {TID, CAT, ID}),
    "b": ASYNC, "e": ASYNC, "n": ASYNC,
    "P": ({NAME, PID, TID, TS}, {CAT, ARGS, "sf"}),
}
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name",
            "thread_sort_index"}
MAX_ID = 2 ** 32


class Wrong(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Wrong(what)


class Number(str):
    """As it was written: no reader may need more digits than a double has."""


def once(pairs):
    keys = [k for k, _ in pairs]
    need(len(keys) == len(set(keys)), "a key stands twice: %s" % keys)
    return dict(pairs)


def no_constant(text):
    raise Wrong("%s is no JSON" % text)


def read(path):
    with open(path, "rb") as f:
        text = f.read().decode("utf-8", "strict")
    return json.loads(text, object_pairs_hook=once, parse_constant=no_constant,
                      parse_float=Number, parse_int=Number)


def is_id(v):
    return isinstance(v, Number) and re.fullmatch(r"\d+", v) and int(v) < MAX_ID


def time_of(event, key=TS):
    """In nanoseconds."""
    need(isinstance(event[key], Number) and re.fullmatch(r"\d+(\.\d{1,3})?", event[key]),
         "%s is no time in microseconds" % event[key])
    whole, _, part = event[key].partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def check_fields(e):
    need(isinstance(e, dict) and e.get("ph") in KINDS, "no known ph")
    must, may = KINDS[e["ph"]]
    have = set(e) - {"ph"}
    need(have >= must, "lacks %s" % sorted(must - have))
    need(have <= must | may, "has %s" % sorted(have - must - may))
    for key in (PID, TID):
        need(key not in e or is_id(e[key]), "%s is no number of one" % key)
    for key in (NAME, CAT):
        need(key not in e or type(e[key]) is str and e[key], "%s is no text" % key)
    need(ID not in e or type(e[ID]) is str, "id is no text")
    need(ARGS not in e or isinstance(e[ARGS], dict), "args is no object")
    if TS in e:
        time_of(e)


def check_alone(e, frames):
    ph = e["ph"]
    if ph == "M":
        need(e[NAME] in METADATA, "no known metadata")
        if e[NAME].endswith("_name"):
            need(type(e[ARGS].get("name")) is str, "no name in args")
    if ph == "C":
        need(e[ARGS] and all(isinstance(v, Number) for v in e[ARGS].values()),
             "a counter of something that is no number")
    if ph == "X":
        time_of(e, "dur")
    if ph == "i":
        need(e.get("s", "t") in ("g", "p", "t"), "no known scope")
        need(e.get("s", "t") != "t" or TID in e, "an instant of which thread?")
    if "sf" in e:
        need(e["sf"] in frames, "no frame %s" % e["sf"])


def check_nesting(events):
    """Readers sort by time, those of one time as they stand in the file."""
    open_ = collections.defaultdict(list)
    for e in sorted((e for e in events if e["ph"] in "BEbe"), key=time_of):
        sync = e["ph"] in "BE"
        stack = open_[(e[PID], e[TID]) if sync else (e[CAT], e[ID])]
        if e["ph"] in "Bb":
            stack.append(e)
            continue
        need(stack, "an end without a beginning: %s" % e)
        begin = stack.pop()
        need(e.get(NAME, begin[NAME]) == begin[NAME], "%s ends %s" % (e, begin))
        need(begin[PID] == e[PID], "%s ends one of another process" % e)
    for stack in open_.values():
        need(not stack, "without an end: %s" % stack)


def check_frames(frames):
    for name, f in frames.items():
        need(isinstance(f, dict) and type(f.get("name")) is str, "frame %s has no name" % name)
        need(set(f) <= {"name", "category", "parent"}, "frame %s has more" % name)
        seen = set()
        while "parent" in f:
            need(f["parent"] not in seen, "frame %s is its own caller" % name)
            seen.add(f["parent"])
            need(f["parent"] in frames, "frame %s is called by nobody" % name)
            f = frames[f["parent"]]


def check(doc):
    need(isinstance(doc, dict), "no object")
    need(set(doc) <= {"traceEvents", "displayTimeUnit", "otherData", "stackFrames"},
         "unknown keys: %s" % sorted(doc))
    need(doc.get("displayTimeUnit", "ms") in ("ms", "ns"), "no known unit")
    need(isinstance(doc.get("traceEvents"), list), "no events")
    frames = doc.get("stackFrames", {})
    check_frames(frames)
    for e in doc["traceEvents"]:
        try:
            check_fields(e)
            check_alone(e, frames)
        except Wrong as wrong:
            raise Wrong("%s: %s" % (json.dumps(e), wrong)) from None
    check_nesting(doc["traceEvents"])


try:
    check(read(sys.argv[1]))
except (Wrong, ValueError) as wrong:
    sys.exit("%s: %s" % (sys.argv[1], wrong))
