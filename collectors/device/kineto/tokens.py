"""Compiled reading of JSON's tokens where they lie, without making anything of them.

Readers of JSON refuse what profilers really write: control characters in names, `inf` and `N/A` where a number
belongs, decimal commas. Here a token ends where its bytes say so, and what it is worth is for the caller to judge. A
position below 0 tells that a token does not end within the bytes at hand (MORE), or cannot be one (BAD).
"""

import numpy as np

from runs.compiled import compiler

MORE, BAD = -1, -2
TEXT, NUMBER, BARE, NESTED = 1, 2, 3, 4  # kinds of tokens; BARE: true, false, null and whatever else is unquoted
NONE = np.int64(-(1 << 63))  # a number that is not there, or is none
_LIMIT = np.int64(1 << 59)  # digits beyond are not needed: times that long are no times
_DEEPEST = 60  # levels of nesting within an event; profilers write three

_compiler = compiler(__package__)
kernel = _compiler()
part = _compiler(forceinline=True)  # of a kernel: a call would cost more than what it does


@part
def blank(buf, pos, stop):
    """Position behind white space and commas, of which there may be any number."""
    while pos < stop and (buf[pos] == 32 or buf[pos] == 10 or buf[pos] == 13 or buf[pos] == 9 or buf[pos] == 44):
        pos += 1
    return pos


@part
def closing(buf, pos, stop):
    """Position of the quote that ends a text which begins at `pos`, behind its first quote."""
    while pos < stop:
        c = buf[pos]
        if c == 34:
            return pos
        pos += 2 if c == 92 else 1
    return np.int64(MORE)


@kernel
def nested(buf, pos, stop):
    """Position behind the brackets that open at `pos`. BAD where they close in another order, or nest too deep."""
    depth = 0
    kinds = np.int64(0)  # a bit for each open bracket: whether it is a brace
    while pos < stop:
        c = buf[pos]
        if c == 34:
            pos = closing(buf, pos + 1, stop)
            if pos < 0:
                return np.int64(MORE)
        elif c == 123 or c == 91:
            if depth == _DEEPEST:
                return np.int64(BAD)
            kinds = kinds << 1 | np.int64(c == 123)
            depth += 1
        elif c == 125 or c == 93:
            if kinds & 1 != np.int64(c == 125):
                return np.int64(BAD)
            kinds >>= 1
            depth -= 1
            if depth == 0:
                return pos + 1
        pos += 1
    return np.int64(MORE)


@part
def value(buf, pos, stop):
    """(kind, where its content begins, where that ends, position behind it) of the value at `pos`."""
    c = buf[pos]
    if c == 34:
        end = closing(buf, pos + 1, stop)
        return TEXT, pos + 1, end, end + 1 if end >= 0 else end
    if c == 123 or c == 91:
        end = nested(buf, pos, stop)
        return NESTED, pos, end, end
    end = pos
    while end < stop:
        c = buf[end]
        if c == 44 or c == 125 or c == 93 or c <= 32 or c == 34 or c == 58 or c == 123 or c == 91:
            break
        end += 1
    if end >= stop:
        return BARE, pos, end, np.int64(MORE)
    if end == pos:
        return BARE, pos, end, np.int64(BAD)
    first = buf[pos + 1] if buf[pos] == 45 and end - pos > 1 else buf[pos]
    return NUMBER if 48 <= first <= 57 else BARE, pos, end, end


@kernel
def scaled(buf, pos, end, decimals):
    """The number written in [pos, end) times 10 ** decimals, to the nearest whole; NONE where it is no number or has
    no room. Exact for any number of digits: no floating point is involved."""
    negative = pos < end and buf[pos] == 45
    if negative:
        pos += 1
    digits, total, exponent, seen = np.int64(0), np.int64(0), np.int64(decimals), False
    point = False
    while pos < end:
        c = np.int64(buf[pos])
        if 48 <= c <= 57:
            seen = True
            if total < _LIMIT:
                total = total * 10 + (c - 48)
                if point:
                    exponent -= 1
            elif not point:
                exponent += 1
        elif c == 46 and not point:
            point = True
        else:
            break
        pos += 1
    if pos < end and seen and (buf[pos] == 101 or buf[pos] == 69):
        pos += 1
        down = pos < end and buf[pos] == 45
        if pos < end and (buf[pos] == 45 or buf[pos] == 43):
            pos += 1
        if pos == end:
            return NONE
        while pos < end and 48 <= buf[pos] <= 57:
            digits = min(digits * 10 + np.int64(buf[pos] - 48), np.int64(10000))
            pos += 1
        exponent += -digits if down else digits
    if pos != end or not seen:
        return NONE
    while exponent > 0 and total:
        if total > (np.int64(1) << 62) // 10:
            return NONE
        total *= 10
        exponent -= 1
    while exponent < -1 and total:
        total //= 10
        exponent += 1
    if exponent == -1:
        total = (total + 5) // 10
    return -total if negative else total


@kernel
def real(buf, pos, end):
    """The number written in [pos, end) as a real one; not a number where it is none."""
    negative = buf[pos] == 45
    if negative:
        pos += 1
    mantissa, exponent, point, down, shift = 0.0, 0, False, False, 0
    while pos < end:
        c = np.int64(buf[pos])
        if 48 <= c <= 57:
            mantissa = mantissa * 10.0 + (c - 48)
            if point:
                exponent -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        pos += 1
    if pos < end:
        if buf[pos] != 101 and buf[pos] != 69:
            return np.nan
        pos += 1
        down = pos < end and buf[pos] == 45
        if pos < end and (buf[pos] == 45 or buf[pos] == 43):
            pos += 1
        while pos < end and 48 <= buf[pos] <= 57:
            shift = min(shift * 10 + int(buf[pos]) - 48, 1000)
            pos += 1
        if pos < end:
            return np.nan
        exponent += -shift if down else shift
    if exponent < 0:
        mantissa /= 10.0 ** min(-exponent, 308)
    elif exponent > 0:
        mantissa *= 10.0 ** min(exponent, 308)
    return -mantissa if negative else mantissa


@part
def hashed(buf, pos, end):
    """A hash of the bytes in [pos, end)."""
    h = np.int64(-3750763034362895579)
    while pos < end:
        h = (h ^ np.int64(buf[pos])) * np.int64(1099511628211)
        pos += 1
    return h ^ (h >> 29)
