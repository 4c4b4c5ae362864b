"""Perfetto's messages, as far as they are written one by one: what thousands of events share, never an event."""

from typing import Any

from collectors.reading.protobuf import message_types

_TYPES = message_types(
    "chipledger.perfetto",
    """
    Trace: TracePacket* packet=1
    TracePacket: Clocks clock_snapshot=6, uint64 timestamp=8, uint64 trusted_packet_sequence_id=10, Interned interned_data=12, uint64 sequence_flags=13, Defaults trace_packet_defaults=59, Track track_descriptor=60, bool first_packet_on_sequence=87
    Defaults: uint64 timestamp_clock_id=58
    Clocks: Clock* clocks=1, enum primary_trace_clock=2
    Clock: uint64 clock_id=1, uint64 timestamp=2
    Track: uint64 uuid=1, bytes name=2, uint64 parent_uuid=5, enum child_ordering=11, int32 sibling_order_rank=12, bytes description=14, enum sibling_merge_behavior=15, uint64 sibling_merge_key_int=17
    Interned: Text* event_categories=1, Text* event_names=2, Text* debug_annotation_names=3, Text* debug_annotation_string_values=29
    Text: uint64 iid=1, bytes text=2
    Event: Note* debug_annotations=4
    Note: uint64 name_iid=1, int64? int_value=4, double? double_value=5, uint64 string_value_iid=17
    """,  # noqa: E501
)
Trace, Event = _TYPES["Trace"], _TYPES["Event"]
EXPLICIT = 3  # child tracks stand in the order of their ranks
BY_KEY = 3  # tracks of one parent and one key are drawn as one, their events below one another
REALTIME, BOOTTIME = 1, 6  # clocks: time of day, and the one that a trace counts by where nothing else is said


def text(said: object) -> bytes:
    """As UTF-8: a null is shown as its picture, since a viewer would end there, and half a character as a question
    mark."""
    return str(said).replace("\0", "\u2400").encode("utf-8", "replace")


def packets(*told: Any) -> bytes:
    """Packets as they stand in a file, of keyword arguments each."""
    return Trace(packet=list(told)).SerializeToString()
