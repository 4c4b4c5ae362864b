"""What stands where in the records of an event file, and how looking through them ends."""

import numpy as np

from runs.compiled import compiler

_compiler = compiler(__package__)
kernel = _compiler()
part = _compiler(forceinline=True)

HEADER, FOOTER = 12, 4  # bytes of a record: length and its checksum before the data, the data's checksum behind
MOST_RECORD = 1 << 26  # bytes of a record that is looked into: numbers take some dozens, a graph may take megabytes
MOST_VAIN, SHORT = 1 << 30, 256  # behind so many bytes (VAIN) no longer records are looked for than SHORT bytes
MOST_TAG = 800  # bytes of a name that are kept: 200 characters
MASK_DELTA = 0xA282EAD8  # checksums are kept turned by 15 bits, with this added
POLYNOMIAL = 0x82F63B78  # of CRC-32C, its lowest bit first

# how a look ends
NEEDS_BYTES, NEEDS_ROOM, TOO_LONG = range(3)

# counters of a look: behind the last record, values that are entered, bytes of their names, values of the record at
# hand that were entered before, and what was passed over; where what is damaged began, and whether that is a record of
# which the file holds a part; the time of the first version of the format, as its bits;
# bytes whose checksum was reckoned and is wrong
(
    POS,
    VALUES,
    TAG_BYTES,
    ENTERED,
    RECORDS,
    VERSIONS,
    GRAPHS,
    OTHERS,
    HISTOGRAMS,
    IMAGES,
    SOUNDS,
    SEVERAL,
    NO_NUMBER,
    DAMAGED,
    DAMAGED_BYTES,
    FIRST_DAMAGED,
    MALFORMED,
    CUT,
    LOST,
    HALF,
    BEGUN,
    VAIN,
) = range(22)
COUNTERS = 22

# columns of what is entered of a value
WALL, STEP, FORM, BITS, AT, LENGTH, OF = range(7)
COLUMNS = 7

# how a value is written in its bits; TEXT: bytes that stand AT a place, of a LENGTH
FLOAT, DOUBLE, HALF, BFLOAT, WHOLE, UNSIGNED, TEXT = range(1, 8)


def _forms():
    """How numbers of each type of TensorFlow are written, and their bytes in raw content; 0: no number."""
    form, size = np.zeros(64, np.int64), np.zeros(64, np.int64)
    for dtype, how, width in (
        (1, FLOAT, 4),
        (2, DOUBLE, 8),
        (3, WHOLE, 4),  # int32
        (4, UNSIGNED, 1),
        (5, WHOLE, 2),
        (6, WHOLE, 1),
        (7, TEXT, 0),
        (9, WHOLE, 8),
        (10, UNSIGNED, 1),  # bool
        (14, BFLOAT, 2),
        (17, UNSIGNED, 2),
        (19, HALF, 2),
        (22, UNSIGNED, 4),
        (23, UNSIGNED, 8),
    ):
        form[dtype], size[dtype] = how, width
    return form, size


FORM_OF, SIZE_OF = _forms()


def _table():
    """The checksum of each byte, and of each that seven at most follow."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(POLYNOMIAL), one >> 1).astype(np.uint32)
    rows = [one]
    for _ in range(7):
        rows.append(((rows[-1] >> 8) ^ one[rows[-1] & 0xFF]).astype(np.uint32))
    return np.stack(rows)


TABLE = _table()


def masked_crc(data: bytes) -> int:
    """The checksum of a few bytes as event files keep it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ int(TABLE[0, (crc ^ byte) & 0xFF])
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF
