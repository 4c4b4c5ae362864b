"""HighwayHash-64 with the key of Riegeli/records, by which its headers and data are checked (compiled).

Published algorithm: https://arxiv.org/abs/1612.06257. Four lanes of 64 bits are stirred by 32 bytes at a time, so a
long text is hashed piece by piece.
"""

import numpy as np

from collectors.device.xplane.wire import kernel, part

PACKET = 32  # bytes
_KEY = np.frombuffer(b"Riegeli/records\n" * 2, "<u8")
_MUL0 = np.array([0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3], np.uint64)
_MUL1 = np.array([0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377], np.uint64)
_U24, _U8, _U32, _U16, _U48, _U56 = (np.uint64(n) for n in (24, 8, 32, 16, 48, 56))
_LOW = np.uint64(0xFFFFFFFF)
# Bytes of a lane, from the lowest.
_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7 = (np.uint64(0xFF << 8 * n) for n in range(8))


@part
def _zipped(high, low):
    """(what is added to the lower lane, what to the higher): bytes of two lanes, mixed as a zip closes."""
    to_low = (
        (((low & _B3) | (high & _B4)) >> _U24)
        | (((low & _B5) | (high & _B6)) >> _U16)
        | (low & _B2)
        | ((low & _B1) << _U32)
        | ((high & _B7) >> _U8)
        | (low << _U56)
    )
    to_high = (
        (((high & _B3) | (low & _B4)) >> _U24)
        | (high & _B2)
        | ((high & _B5) >> _U16)
        | ((high & _B1) << _U24)
        | ((low & _B6) >> _U8)
        | ((high & _B0) << _U48)
        | (low & _B7)
    )
    return to_low, to_high


@kernel
def stir(state, lanes):
    """Stirs 32 bytes, as four lanes, into the state: rows v0, v1, mul0, mul1."""
    for i in range(4):
        state[1, i] += state[2, i] + lanes[i]
        state[2, i] ^= (state[1, i] & _LOW) * (state[0, i] >> _U32)
        state[0, i] += state[3, i]
        state[3, i] ^= (state[0, i] & _LOW) * (state[1, i] >> _U32)
    for to, of in ((0, 1), (1, 0)):
        for i in (0, 2):
            low, high = _zipped(state[of, i + 1], state[of, i])
            state[to, i] += low
            state[to, i + 1] += high


@kernel
def stir_all(state, packets):
    """Stirs rows of four lanes into the state."""
    for n in range(packets.shape[0]):
        stir(state, packets[n])


@kernel
def stir_rest(state, rest, size, lanes):
    """Stirs in the last `size` bytes, fewer than 32. `rest`: 32 bytes, `lanes`: scratch of four lanes of zeros."""
    n, turn = np.uint64(size), np.uint64(size)
    for i in range(4):
        state[0, i] += (n << _U32) + n
        low, high = state[1, i] & _LOW, state[1, i] >> _U32
        low = ((low << turn) | (low >> (_U32 - turn))) & _LOW
        high = ((high << turn) | (high >> (_U32 - turn))) & _LOW
        state[1, i] = low | (high << _U32)
    whole, odd = size & ~3, size & 3
    for i in range(whole):
        lanes[i >> 3] |= np.uint64(rest[i]) << np.uint64(8 * (i & 7))
    if size & 16:
        for i in range(4):
            at = 28 + i
            lanes[at >> 3] |= np.uint64(rest[whole + i + odd - 4]) << np.uint64(8 * (at & 7))
    elif odd:
        for i, of in ((16, 0), (17, odd >> 1), (18, odd - 1)):
            lanes[i >> 3] |= np.uint64(rest[whole + of]) << np.uint64(8 * (i & 7))
    stir(state, lanes)


@kernel
def settled(state, lanes):
    """The hash of what was stirred in. `lanes`: scratch."""
    for _ in range(4):
        for i in range(4):
            lane = state[0, (i + 2) & 3]
            lanes[i] = (lane >> _U32) | (lane << _U32)
        stir(state, lanes)
    return state[0, 0] + state[1, 0] + state[2, 0] + state[3, 0]


class Highway:
    """A hash in the making."""

    def __init__(self) -> None:
        turned = (_KEY >> _U32) | (_KEY << _U32)
        self._state = np.stack([_MUL0 ^ _KEY, _MUL1 ^ turned, _MUL0, _MUL1])
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Takes in what follows."""
        data = self._rest + data if self._rest else data
        whole = len(data) - len(data) % PACKET
        if whole:
            stir_all(self._state, np.frombuffer(data, "<u8", whole // 8).reshape(-1, 4))
        self._rest = data[whole:]

    def value(self) -> int:
        """The hash of all that was taken in; nothing may be added after it."""
        if self._rest:
            rest = np.frombuffer(self._rest.ljust(PACKET, b"\0"), np.uint8)
            stir_rest(self._state, rest, len(self._rest), np.zeros(4, np.uint64))
        return int(settled(self._state, np.zeros(4, np.uint64)))


def highway(data: bytes) -> int:
    """The hash of some bytes."""
    made = Highway()
    made.add(data)
    return made.value()
