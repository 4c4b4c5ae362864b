"""Pickles of plain data: what Python's unpickler makes of them, and nothing else is let through to it."""

import pickle
import pickletools
import re
import struct
import subprocess
import sys
from itertools import cycle, islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.reading import plain_pickle
from collectors.reading.plain_pickle import CutShort, Refused, codes, loads
from tests.collectors import plain_pickle_oracle as oracle
from tests.collectors.flight_dumps import dump, entry, pickled

WHOLE = pickled(dump({"0": [0, 1]}, [entry("all_reduce"), entry("send 0->1", p2p=2, described="größer 集合")]))
STRICTER = re.compile("nothing to keep|to keep at place|marks open|of text")  # than the machine that it is held to


def shape(value):
    """A value as a row of tokens; a container that was met before is its number, so that loops end."""
    told, met, todo = [], {}, [value]
    while todo:
        one = todo.pop()
        if not isinstance(one, list | dict | tuple) or one == ():
            told.append((type(one), repr(one)))
        elif id(one) in met:
            told.append(met[id(one)])
        else:
            met[id(one)] = len(met)
            told.append((type(one), len(one)))
            told += list(one) if isinstance(one, dict) else []
            todo += list(one.values()) if isinstance(one, dict) else one
    return told


def either(read, data, errors):
    """(what it holds, None), or (None, the error)."""
    try:
        return shape(read(data)), None
    except errors as e:
        return None, e


def unlike(data):
    """In what `loads` and the machine that goes code by code differ; None where they agree."""
    mine, refusal = either(loads, data, (Refused, CutShort))
    theirs, error = either(oracle.loads, data, (oracle.Refused, oracle.CutShort))
    if refusal is None:
        return None if error is None and mine == theirs else (mine, theirs, error)
    framed = isinstance(refusal, CutShort) and b"\x95" in data
    if STRICTER.search(str(refusal)) or (framed and error is None):
        return None
    words = [re.sub(r"byte [\d,]+", "byte", str(e)) for e in (refusal, error)]
    return None if type(error).__name__ == type(refusal).__name__ and words[0] == words[1] else (refusal, error)


TEXTS = st.text(max_size=6) | st.sampled_from(["", "größer", "集合", "\U0001f600", "x" * 300])
LEAVES = st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 63) | st.floats() | TEXTS
VALUES = st.recursive(
    LEAVES,
    lambda v: (
        st.lists(v, max_size=4)
        | st.dictionaries(TEXTS, v, max_size=4)
        | st.lists(v, max_size=5).map(tuple)
        | v.map(lambda x: [x, x, (x, {"again": x})])
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_are_what_python_makes_of_them(value, protocol):
    data = pickle.dumps(value, protocol)
    assert shape(loads(data)) == shape(pickle.loads(data)) == shape(oracle.loads(data))
    assert shape(loads(data + b"cos\nsystem\n.")) == shape(value)  # what lies behind the end is not looked at


def test_many_entries_and_frames_of_the_pickle_are_read():
    many = {"entries": [{"n": i, "text": f"größer {i}" * 9, "of": (i, i / 3)} for i in range(20_000)]}
    for protocol in (2, 4, 5):
        assert loads(pickle.dumps(many, protocol)) == many


def test_text_that_is_no_unicode_is_replaced_in_place():
    bad = b"\xff\xfe" * 200
    program = b"\x80\x04\x95" + struct.pack("<Q", 40) + b"(\x8c\x03\xed\xa0\x80\x94X\x01\0\0\0\xc3h\0\x8c\x02ok\x8d"
    value = loads(program + struct.pack("<Q", len(bad)) + bad + b"\x8c\xff" + bad[:255] + b"t.")
    assert value == ("\ufffd" * 3, "\ufffd", "\ufffd" * 3, "ok", "\ufffd" * 400, "\ufffd" * 255)


def test_more_foreign_texts_than_there_is_room_for_at_first():
    many = [f"ä{i}" for i in range(3 * plain_pickle._FIRST_NOTED)]
    assert loads(pickle.dumps(many, 4)) == many


PIECES = [bytes([code]) for code in b"(}])N.\x88\x89aesut\x85\x86\x87\x94"] + [
    b"K\x05",
    b"M\x05\x01",
    b"J\xff\xff\xff\xff",
    b"G\x3f\xf0\0\0\0\0\0\0",
    b"\x8a\x00",
    b"\x8a\x09" + b"\xff" * 9,
    b"\x8a\x0a" + b"\xff" * 10,
    b"\x8c\x01k",
    b"\x8c\x02\xc3\xa4",
    b"\x8c\x01\xff",
    b"X\x01\0\0\0v",
    b"\x8d\x01\0\0\0\0\0\0\0w",
    b"\x8d" + b"\xff" * 8,
    b"X\xff\xff\xff\xff",
    b"\x80\x02",
    b"\x80\x01",
    b"\x95\x03\0\0\0\0\0\0\0",
    b"\x95\xff\0\0\0\0\0\0\0",
    b"q\0",
    b"q\x01",
    b"q\xff",
    b"r\x02\0\0\0",
    b"r\xff\xff\xff\xff",
    b"h\0",
    b"h\x01",
    b"j\x02\0\0\0",
    b"cos\nsystem\n",
    b"R",
]
ENDING = (b".", b"R", b"cos\nsystem\n", b"\x80\x01")
GOOD = [p for p in PIECES if p not in ENDING and b"\xff" not in p]
LIKELY = [b"}(\x8c\x01kK\x01u", b"](K\x01h\0e", b"]\x94", b"}\x94", b"h\0h\0a", b"\x8c\x01kh\0s", b"(t"]
OF_BYTE = [*islice(cycle(GOOD), 86), *islice(cycle(LIKELY), 85), *islice(cycle(PIECES), 85)]
# A byte stands for a piece: to draw pieces one by one takes ten times as long as to read what they make.
PROGRAMS = st.tuples(st.binary(max_size=12), st.binary(max_size=13)).map(
    lambda drawn: b"".join(OF_BYTE[b] for b in b"".join(drawn))
)


@settings(max_examples=3_000, deadline=None)
@given(PROGRAMS)
@example(b"](q\x00e.")  # nothing to keep since the mark
@example(b"\x95" + b"\xff" * 8 + b"N.")
def test_any_program_gives_what_the_machine_gives(program):
    assert unlike(program + b".") is None and unlike(b"\x80\x02]\x94" + program + b"t.") is None


@settings(max_examples=1_000, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)), st.sampled_from([2, 4]))
def test_flipped_and_cut_files_give_what_the_machine_gives(at, byte, cut, protocol):
    whole = bytearray(pickle.dumps(pickle.loads(WHOLE), protocol))
    whole[at % len(whole)] = byte
    assert unlike(bytes(whole)) is None and unlike(bytes(whole[:cut])) is None


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_what_the_machine_gives(data):
    assert unlike(data) is None


def test_every_code_but_the_known_ones_is_refused_by_name_and_byte():
    known = {bytes([code]) for code in range(256) if codes.WIDTH[code] != codes.UNKNOWN}
    assert known == set(oracle._KNOWN)
    names = {op.code.encode("latin-1"): op.name for op in pickletools.opcodes}
    for code in (bytes([n]) for n in range(256)):
        if code not in known:
            with pytest.raises(Refused, match=rf"code {names.get(code, f'0x{code.hex()}')} at byte 3, which"):
                loads(b"\x80\x02]" + code + b"\0" * 20 + b".")


def test_the_unpickler_itself_finds_nothing_outside(monkeypatch):
    """Were a code let through by mistake, it would still not run."""
    for program in (b"cos\nsystem\n.", b"\x8c\x02os\x8c\x06system\x93.", b"Vx\nQ.", b"Px\n.", b"\x82\x01."):
        monkeypatch.setattr(plain_pickle, "_looked_through", lambda data: (len(data), []))
        with pytest.raises(Refused):
            loads(program)


MARKED = {
    b"N(\x85.": "a value is missing at byte 2",
    b"NN(N\x87.": "a value is missing at byte 4",
    b"]N(a.": "a value is missing at byte 3",
    b"](Na.": "no list to fill at byte 3",
    b"]((Ne.": "no list to fill at byte 4",
    b"}((u.": "no dict to fill at byte 3",
    b"}\x8c\x01k(Ns.": "a value is missing at byte 6",
    b"N(.": "a value is missing at byte 2",
    b"](\x94e.": "nothing to keep at byte 2",
}


@pytest.mark.parametrize("program", MARKED)
def test_nothing_below_a_mark_is_touched(program):
    with pytest.raises(Refused, match=f"^{MARKED[program]}$"):
        loads(program)


def test_a_frame_beyond_the_end_is_a_file_that_was_cut():
    whole = pickle.dumps(["x" * 9] * 9, 4)
    length = struct.unpack("<Q", whole[3:11])[0]
    with pytest.raises(CutShort):
        loads(whole[:3] + struct.pack("<Q", length + 1) + whole[11:])
    assert loads(whole[:3] + struct.pack("<Q", length - 1) + whole[11:]) == ["x" * 9] * 9  # too short: it goes on


def test_a_place_that_is_filled_again_counts_once():
    assert loads(b"(N\x94q\x00]\x94h\x01t.") == (None, [], [])


def test_a_place_far_up_in_the_memo_is_refused():
    for program in (b"Nr\xff\xff\xff\x7f.", b"Nr\xff\xff\xff\xff.", b"Nq\xff."):
        with pytest.raises(Refused, match="to keep at place"):
            loads(b"\x80\x02" + program)


def test_bounds(monkeypatch):
    with pytest.raises(Refused, match="more than 1,000 marks open at byte 1,002"):
        loads(b"\x80\x02" + b"(" * 1_001 + b".")
    monkeypatch.setattr(plain_pickle, "MOST_TEXT", 10)
    assert loads(b"(\x8c\x05abcde\x8c\x05abcdet.") == ("abcde",) * 2
    with pytest.raises(Refused, match="more than 10 bytes of text"):
        loads(b"(\x8c\x05abcde\x8c\x06abcdeft.")


MEGABYTE = 1 << 20
BOMBS = {
    "places": b"N" * 200_000 + b"r\x00\x0d\x03\x00" * 160_000 + b".",
    "a far place": b"Nr\xff\xff\xff\x7f.",
    "dicts": b"(" + b"}" * (MEGABYTE - 4) + b"t.",
    "dicts of one": b"\x8c\x01kq\x00(" + b"}h\0Ns" * 200_000 + b"t.",
    "lists in lists": b"]" * (MEGABYTE // 2) + b"a" * (MEGABYTE // 2 - 1) + b".",
    "tuples in tuples": b"N" + b"\x85" * MEGABYTE + b".",
    "references": b"]q\x00(" + b"h\x00" * (MEGABYTE // 2 - 4) + b"e.",
    "foreign texts": b"(" + b"\x8c\x01\xff" * (MEGABYTE // 3) + b"t.",
    "frames": b"\x95\xff\xff\x0f\0\0\0\0\0" * (MEGABYTE // 9) + b"N.",
    "a text beyond the end": b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 1000,
    "wide text": b"X\x00\x00\x0f\x00" + "\U0001f600".encode() + b"x" * ((15 << 16) - 4) + b".",
    "marks": b"(" * MEGABYTE,
}
CHILDREN = """
import os, resource, signal, sys
from collectors.reading.plain_pickle import CutShort, Refused, loads
from collectors.reading.plain_pickle.warm import warm
warm()
while length := sys.stdin.buffer.readline():
    data = sys.stdin.buffer.read(int(length))
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.alarm(300)
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (160 << 20),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    loads(data)
    print("read", end=" ", flush=True)
except (Refused, CutShort):
    print("refused", end=" ", flush=True)
"""


@pytest.fixture(scope="module")
def ends() -> dict[str, str]:
    """What came of each bomb in a process of its own: whether it was read or refused, and how that process ended. They
    come of one that is warm: to be that takes longer than a bomb does."""
    given = b"".join(b"%d\n" % len(bomb) + bomb for bomb in BOMBS.values())
    run = subprocess.run([sys.executable, "-c", CHILDREN], input=given, stdout=subprocess.PIPE, timeout=900)
    return dict(zip(BOMBS, run.stdout.decode().splitlines(), strict=False))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is told and bounded by Linux alone")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_hostile_megabyte_takes_bounded_memory(ends, bomb):
    """160 MB: a dict or list a byte takes 90."""
    assert ends.get(bomb) in ("read 0", "refused 0")
