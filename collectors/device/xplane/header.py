"""A line's own fields, found by walking over its events without looking into them."""

import numpy as np

from collectors.device.xplane.tables import EVENT_TAG
from collectors.device.xplane.wire import BAD, BYTES, DONE, MORE, kernel, skip, varint


@kernel
def line_header(buf, pos, stop, limit, header):
    """Reads a line's own fields into `header`, passing over its events; returns (next position, how it ended).

    header: 0 id, 1 name start, 2 name length, 3 timestamp (ns), 4 display name start, 5 its length, 6 events.
    """
    while pos < limit:
        if pos >= stop:
            return pos, MORE
        tag, p = varint(buf, pos, stop)
        value = np.int64(0)
        if p >= 0 and (tag & 7 == BYTES or tag & 7 == 0):
            value, p = varint(buf, p, stop)
        if p == -1 and stop < limit and stop - pos < 20:
            return pos, MORE
        if p < 0 or tag >> 3 <= 0:
            return pos, BAD
        if tag & 7 == BYTES:
            if value < 0 or value > limit - p:
                return pos, BAD
            if tag == EVENT_TAG:
                header[6] += 1
            elif tag == 0x12:
                header[1], header[2] = p, value
            elif tag == 0x5A:
                header[4], header[5] = p, value
            pos = p + value
        elif tag & 7 == 0:
            if tag == 0x08:
                header[0] = value
            elif tag == 0x18:
                header[3] = value
            pos = p
        else:
            q = skip(buf, tag, p, stop)
            if q == -1 and stop < limit and stop - pos < 20:
                return pos, MORE
            if q < 0:
                return pos, BAD
            pos = q
    return pos, DONE
