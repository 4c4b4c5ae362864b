"""Compiled look through the records of an event file: each is checked, and its numbers are entered in flat arrays.

Nothing is allocated here. A look that runs out of bytes or of room says so, and goes on at the record where it stopped.
What is damaged is passed over up to the next record whose length is as its checksum says.
"""

import numpy as np

from collectors.training.tensorboard.codes import (
    AT,
    BEGUN,
    BITS,
    CUT,
    DAMAGED,
    DAMAGED_BYTES,
    ENTERED,
    FIRST_DAMAGED,
    FLOAT,
    FOOTER,
    FORM,
    FORM_OF,
    GRAPHS,
    HALF,
    HEADER,
    HISTOGRAMS,
    IMAGES,
    LENGTH,
    LOST,
    MALFORMED,
    MASK_DELTA,
    MOST_RECORD,
    MOST_TAG,
    MOST_VAIN,
    NEEDS_BYTES,
    NEEDS_ROOM,
    NO_NUMBER,
    OF,
    OTHERS,
    POS,
    RECORDS,
    SEVERAL,
    SHORT,
    SIZE_OF,
    SOUNDS,
    STEP,
    TABLE,
    TAG_BYTES,
    TEXT,
    TOO_LONG,
    VAIN,
    VALUES,
    VERSIONS,
    WALL,
    WHOLE,
    kernel,
    part,
)

VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5  # wire types of protobuf


@part
def little(buf, at, n):
    """An unsigned number of n bytes, of which the lowest comes first, as 64 bits."""
    v = np.uint64(0)
    for i in range(n):
        v |= np.uint64(buf[at + i]) << np.uint64(8 * i)
    return np.int64(v)


@part
def masked(buf, at, end):
    """The checksum of the bytes from `at` to `end`, as it is kept."""
    crc = np.uint32(0xFFFFFFFF)
    while end - at >= 8:
        low = crc ^ np.uint32(little(buf, at, 4))
        crc = (
            TABLE[7, low & np.uint32(0xFF)]
            ^ TABLE[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ TABLE[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ TABLE[4, low >> np.uint32(24)]
            ^ TABLE[3, buf[at + 4]]
            ^ TABLE[2, buf[at + 5]]
            ^ TABLE[1, buf[at + 6]]
            ^ TABLE[0, buf[at + 7]]
        )
        at += 8
    while at < end:
        crc = (crc >> np.uint32(8)) ^ TABLE[0, (crc ^ np.uint32(buf[at])) & np.uint32(0xFF)]
        at += 1
    full = np.int64(crc) ^ 0xFFFFFFFF
    return (((full >> 15) | (full << 17)) + MASK_DELTA) & 0xFFFFFFFF


@part
def begins(buf, at):
    """Whether a record begins here: its length is what the checksum behind it says."""
    return little(buf, at + 8, 4) == masked(buf, at, at + 8)


@kernel
def field(buf, at, end, f):
    """Reads the field at `at`: its number, wire type, and where its content begins and ends (f); of a varint its value.
    Gives back where the next one begins; -1 where it is none."""
    key, at = varint(buf, at, end)
    if at < 0:
        return np.int64(-1)
    f[0], f[1] = (key >> 3) & 0x1FFFFFFF, key & 7
    f[2] = at
    if f[1] == VARINT:
        f[4], at = varint(buf, at, end)
        f[3] = at
        return at
    if f[1] == WIDE:
        f[3] = at + 8
    elif f[1] == NARROW:
        f[3] = at + 4
    elif f[1] == BYTES:
        size, at = varint(buf, at, end)
        if at < 0 or size < 0 or size > end - at:
            return np.int64(-1)
        f[2], f[3] = at, at + size
    else:
        return np.int64(-1)
    return f[3] if f[3] <= end else np.int64(-1)


@part
def varint(buf, at, end):
    """(value, place behind it) of a number in groups of seven bits; (0, -1) where it does not end."""
    v = np.uint64(0)
    for i in range(10):
        if at + i >= end:
            break
        byte = buf[at + i]
        v |= np.uint64(byte & 0x7F) << np.uint64(7 * i)
        if byte < 128:
            return np.int64(v), np.int64(at + i + 1)
    return np.int64(0), np.int64(-1)


@kernel
def elements(buf, at, end, f):
    """How many numbers a tensor of this shape holds: 0, 1, or 2 for more; -1 where it is no shape."""
    count = np.int64(1)
    while at < end:
        at = field(buf, at, end, f)
        if at < 0:
            return np.int64(-1)
        if f[0] == 3 and f[1] == VARINT and f[4]:  # rank not known
            return np.int64(2)
        if f[0] == 2 and f[1] == BYTES:
            inner, stop, size = f[2], f[3], np.int64(0)
            while inner < stop:
                inner = field(buf, inner, stop, f)
                if inner < 0:
                    return np.int64(-1)
                if f[0] == 1 and f[1] == VARINT:
                    size = f[4]
            count = np.int64(0) if size == 0 or count == 0 else count if size == 1 else np.int64(2)
    return count


@part
def widened(bits, size, form):
    """The bits of a number of so many bytes as 64, with its sign where it has one."""
    if form == WHOLE and size < 8 and bits >= np.int64(1) << (8 * size - 1):
        return bits - (np.int64(1) << (8 * size))
    return bits


@kernel
def tensor(buf, at, end, f, rows, n):
    """What a tensor holds, entered in row `n`: its form, or, below 0, why it is no number or text: -1 malformed,
    -2 several, -3 none."""
    dtype, count, has, bits = np.int64(0), np.int64(1), False, np.int64(0)
    start, stop = np.int64(0), np.int64(0)  # raw content
    text_at, text_size = np.int64(-1), np.int64(0)
    while at < end:
        at = field(buf, at, end, f)
        if at < 0:
            return np.int64(-1)
        number, wire = f[0], f[1]
        if number == 1 and wire == VARINT:
            dtype = f[4]
        elif number == 2 and wire == BYTES:
            count = elements(buf, f[2], f[3], f)
            if count < 0:
                return np.int64(-1)
        elif number == 4 and wire == BYTES:
            start, stop = f[2], f[3]
        elif number == 8 and wire == BYTES and text_at < 0:
            text_at, text_size = f[2], f[3] - f[2]
        elif not has and (number == 5 or number == 6):
            size = np.int64(4) if number == 5 else np.int64(8)
            if f[3] - f[2] >= size and wire != VARINT:
                bits, has = little(buf, f[2], size), True
        elif not has and (number == 7 or number == 10 or number == 11 or number == 13 or number == 16 or number == 17):
            if wire == VARINT:
                bits, has = f[4], True
            elif wire == BYTES and f[3] > f[2]:
                bits, behind = varint(buf, f[2], f[3])
                has = behind >= 0
    if not 0 <= dtype < FORM_OF.shape[0] or FORM_OF[dtype] == 0 or count == 0:
        return np.int64(-3)
    if count > 1:
        return np.int64(-2)
    form, size = FORM_OF[dtype], SIZE_OF[dtype]
    if form == TEXT:
        if text_at < 0:
            return np.int64(-3)
        rows[n, AT], rows[n, LENGTH] = text_at, text_size
        return form
    if not has:
        if stop - start != size:
            return np.int64(-3)
        bits = widened(little(buf, start, size), size, form)
    rows[n, BITS] = bits
    return form


@kernel
def summary(buf, at, end, record, f, rows, tags, offsets, c):
    """Enters the values of a summary but those that were entered before. 1: all; 0: no room; -1: malformed."""
    seen = np.int64(0)
    while at < end:
        at = field(buf, at, end, f)
        if at < 0:
            return -1
        if f[0] != 1 or f[1] != BYTES:
            continue
        seen += 1
        if seen <= c[ENTERED]:
            continue
        n = c[VALUES]
        if n >= rows.shape[0] or c[TAG_BYTES] + MOST_TAG > tags.shape[0]:
            return 0
        inner, stop = f[2], f[3]
        tag, tag_end, form, passed = np.int64(0), np.int64(0), np.int64(0), NO_NUMBER
        while inner < stop:
            inner = field(buf, inner, stop, f)
            if inner < 0:
                return -1
            number, wire = f[0], f[1]
            if number == 1 and wire == BYTES:
                tag, tag_end = f[2], f[3]
            elif number == 2 and wire == NARROW:
                rows[n, BITS], form = little(buf, f[2], 4), FLOAT
            elif number == 4 and wire == BYTES:
                passed = IMAGES
            elif number == 5 and wire == BYTES:
                passed = HISTOGRAMS
            elif number == 6 and wire == BYTES:
                passed = SOUNDS
            elif number == 8 and wire == BYTES:
                form = tensor(buf, f[2], f[3], f, rows, n)
                if form == -1:
                    return -1
                if form == -2:
                    passed = SEVERAL
        c[ENTERED] += 1
        if form <= 0:
            c[passed] += 1
            continue
        rows[n, WALL], rows[n, STEP], rows[n, FORM], rows[n, OF] = record[0], record[1], form, record[2]
        to = c[TAG_BYTES]
        for i in range(min(tag_end - tag, MOST_TAG)):
            tags[to + i] = buf[tag + i]
        c[TAG_BYTES] = to + min(tag_end - tag, MOST_TAG)
        c[VALUES] = n + 1
        offsets[n + 1] = c[TAG_BYTES]
    return 1


@kernel
def event(buf, at, end, record, f, rows, tags, offsets, c):
    """Enters what an event tells. 1: all of it; 0: there is no room; -1: it is no event."""
    record[0], record[1] = 0, 0
    what, from_, to = OTHERS, np.int64(0), np.int64(0)
    place = at
    while place < end:
        place = field(buf, place, end, f)
        if place < 0:
            return -1
        number, wire = f[0], f[1]
        if number == 1 and wire == WIDE:
            record[0] = little(buf, f[2], 8)
        elif number == 2 and wire == VARINT:
            record[1] = f[4]
        elif wire == BYTES and number == 3:
            what = VERSIONS
        elif wire == BYTES and (number == 4 or number == 9):
            what = GRAPHS
        elif wire == BYTES and number == 5:
            what, from_, to = VALUES, f[2], f[3]
    if what != VALUES:
        c[what] += 1
        if what == VERSIONS and c[BEGUN] == 0:
            c[BEGUN] = record[0]
        return 1
    return summary(buf, from_, to, record, f, rows, tags, offsets, c)


@part
def damage(c, at, to):
    """Notes that what stands from `at` to `to` of the file cannot be read."""
    if c[DAMAGED] == 0:
        c[FIRST_DAMAGED] = at
    c[DAMAGED] += 1
    c[DAMAGED_BYTES] += to - at


@kernel
def scan(buf, final, origin, record, f, rows, tags, offsets, c):
    """Looks through the records in `buf`, of which the first byte is that at `origin` of the file; `final`: nothing
    comes behind it. c[POS]: how far that came. c[LOST]: where of the file what cannot be read began, -1: nowhere."""
    stop, at, how = np.int64(buf.shape[0]), np.int64(0), NEEDS_BYTES
    while at + HEADER <= stop:
        if not begins(buf, at):
            if c[LOST] < 0:
                c[LOST] = origin + at
            at += 1
            continue
        length = little(buf, at, 8)
        if length > MOST_RECORD and c[LOST] < 0:
            how = TOO_LONG
            break
        behind = at + HEADER + length + FOOTER if 0 <= length <= MOST_RECORD else np.int64(-1)
        if behind > stop and not final:
            break
        whole = 0 <= behind <= stop and (length <= SHORT or c[VAIN] <= MOST_VAIN)
        if whole:
            whole = little(buf, behind - FOOTER, 4) == masked(buf, at + HEADER, behind - FOOTER)
            c[VAIN] += 0 if whole else length
        if whole:
            if c[LOST] >= 0:
                damage(c, c[LOST], origin + at)
                c[LOST], c[HALF] = -1, 0
            record[2] = origin + at
            done = event(buf, at + HEADER, behind - FOOTER, record, f, rows, tags, offsets, c)
            if done == 0:
                how = NEEDS_ROOM
                break
            c[MALFORMED] += done < 0
            c[RECORDS] += 1
            c[ENTERED] = 0
            at = behind
        else:  # others may stand within what its length says: bytes of it may be lost
            if c[LOST] < 0:
                c[LOST], c[HALF] = origin + at, behind > stop
            at += 1
    if final and how == NEEDS_BYTES:
        if c[LOST] >= 0 and not c[HALF]:
            damage(c, c[LOST], origin + stop)
        elif c[LOST] >= 0 or at < stop:
            c[CUT] += 1
        c[LOST], at = -1, stop
    c[POS] = at
    return how
