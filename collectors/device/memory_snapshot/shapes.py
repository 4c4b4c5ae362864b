"""What the compiled reader of a snapshot fills: flat arrays, and the words that it knows.

A value of the pickle is one 64-bit number: its kind in the lowest four bits, above them the whole number itself, or the
number of a text, a dictionary or a list. Texts, frames and stacks are kept once each, however often they are written.
"""

from typing import NamedTuple

import numpy as np

NOTHING, INT, TEXT, FLAG, DICT, LIST, OTHER, HUGE = range(8)  # kinds of values; HUGE: a whole number beyond WIDEST
KIND_BITS = 4
WIDEST = np.int64(1 << 59)  # numbers from here on are no sizes, addresses or times
NONE = np.int64(-(1 << 63))  # a number that is not there, or is none

PLAIN, FRAME, EVENT, BLOCK, SEGMENT, ROOT = range(6)  # what a dictionary turned out to be
EMPTY, FRAMES, MIXED = range(3)  # what a list holds; MIXED: anything but frames alone

WORDS = (
    *("action", "addr", "size", "stream", "time_us", "frames"),
    *("name", "filename", "line"),
    *("address", "requested_size", "state", "blocks", "device", "total_size", "is_expandable"),
    *("segments", "device_traces", "device_free"),
    *("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap"),
    *("oom", "active_allocated", "active_pending_free", "inactive"),
)  # they are the first texts, so that their numbers are constants
ACTION, ADDR, SIZE, STREAM, TIME, STACK = range(6)
NAME, FILENAME, LINE = range(6, 9)
ADDRESS, REQUESTED, STATE, BLOCKS, DEVICE, TOTAL, EXPANDABLE = range(9, 16)
SEGMENTS, TRACES, DEVICE_FREE = range(16, 19)
KEYS = 19  # words that are keys; the rest are values
ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP = range(19, 26)
OOM, ALLOCATED, PENDING, INACTIVE = range(26, 30)

POS, STACKED, MARKED, MEMOED, DICTS, LISTS, EVENTS, BLOCK_ROWS, SEGMENT_ROWS, FRAME_ROWS, STACK_ROWS, REFS = range(12)
TEXTS, ARENA, ROOT_DICT, ROOT_SEGMENTS, ROOT_TRACES, TOP, REFUSED_STACKS, REFUSED_TEXTS = range(12, 20)
COUNTERS = 20


class Machine(NamedTuple):
    """The state of the pickle's reading. Of a dictionary: what it is, and its row there. Of a list: what it holds; the
    stack that its frames are, else the list that it lies in; how many; and its place in that list."""

    stack: np.ndarray
    marks: np.ndarray
    memo: np.ndarray
    dict_kind: np.ndarray
    dict_row: np.ndarray
    list_what: np.ndarray
    list_value: np.ndarray
    list_length: np.ndarray
    list_place: np.ndarray


class Kept(NamedTuple):
    """Texts, frames and stacks, each once: open addressing by hash, -1 is free; starts are one more than rows."""

    text_table: np.ndarray
    text_start: np.ndarray
    arena: np.ndarray
    frame_table: np.ndarray
    frame: np.ndarray  # name, file, line
    stack_table: np.ndarray
    stack_start: np.ndarray
    refs: np.ndarray


class Rows(NamedTuple):
    """What was told, a row each; `*_list`: the list that the row lies in."""

    event_action: np.ndarray
    event_addr: np.ndarray
    event_size: np.ndarray
    event_time: np.ndarray
    event_stack: np.ndarray
    event_list: np.ndarray
    block: np.ndarray  # address, size, requested size, state
    block_stack: np.ndarray
    block_list: np.ndarray
    segment: np.ndarray  # device, address, total size, list of its blocks, whether it is expandable
    segment_list: np.ndarray
