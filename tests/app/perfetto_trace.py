"""Reads a trace as Perfetto's own importer does: packets in order of time, those of one instant as they stand in the
file, and a stack of slices for each track. Its messages are declared here by Perfetto's published field numbers."""

from dataclasses import dataclass, field

from collectors.reading.protobuf import message_types

FORM = message_types(
    "published.perfetto",
    """
    Trace: TracePacket* packet=1
    TracePacket: ClockSnapshot? clock_snapshot=6, uint64? timestamp=8, uint64 trusted_packet_sequence_id=10, TrackEvent? track_event=11, InternedData? interned_data=12, uint64 sequence_flags=13, bool previous_packet_dropped=42, uint64? timestamp_clock_id=58, TracePacketDefaults? trace_packet_defaults=59, TrackDescriptor? track_descriptor=60
    TracePacketDefaults: uint64 timestamp_clock_id=58
    ClockSnapshot: Clock* clocks=1, enum primary_trace_clock=2
    Clock: uint64 clock_id=1, uint64 timestamp=2
    TrackEvent: uint64* category_iids=3, DebugAnnotation* debug_annotations=4, enum type=9, uint64 name_iid=10, uint64 track_uuid=11
    DebugAnnotation: uint64 name_iid=1, uint64? uint_value=3, int64? int_value=4, double? double_value=5, uint64? string_value_iid=17
    InternedData: Interned* event_categories=1, Interned* event_names=2, Interned* debug_annotation_names=3, Interned* debug_annotation_string_values=29
    Interned: uint64 iid=1, bytes name=2
    TrackDescriptor: uint64 uuid=1, bytes name=2, uint64 parent_uuid=5, enum child_ordering=11, int32 sibling_order_rank=12, bytes description=14, enum sibling_merge_behavior=15, uint64 sibling_merge_key_int=17
    """,  # noqa: E501
)


@dataclass
class Slice:
    name: str
    category: str
    track: int
    start_ns: int
    end_ns: int
    instant: bool
    notes: dict = field(default_factory=dict)


@dataclass
class Trace:
    slices: list[Slice]
    tracks: dict[int, object]
    clocks: list[object]
    clock: int | None

    def path(self, track: int) -> tuple[str, ...]:
        one = self.tracks[track]
        above = self.path(one.parent_uuid) if one.parent_uuid else ()
        return (*above, one.name.decode())


def read(data: bytes) -> Trace:
    trace = FORM["Trace"]()
    assert trace.ParseFromString(data) == len(data)
    told: dict[str, dict[int, str]] = {name: {} for name in FORM["InternedData"].DESCRIPTOR.fields_by_name}
    tracks, clocks, clock, events = {}, [], None, []
    for at, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1 and not packet.previous_packet_dropped
        assert at or packet.sequence_flags == 1
        if packet.HasField("trace_packet_defaults"):
            clock = packet.trace_packet_defaults.timestamp_clock_id
        if packet.HasField("clock_snapshot"):
            clocks.append(packet.clock_snapshot)
        for name, texts in told.items():
            for text in getattr(packet.interned_data, name):
                assert text.iid > 0 and text.iid not in texts  # a number has one meaning
                texts[text.iid] = text.name.decode()
        if packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            assert one.uuid > 0 and one.uuid not in tracks
            assert not one.parent_uuid or one.parent_uuid in tracks
            tracks[one.uuid] = one
        if packet.HasField("track_event"):
            assert packet.sequence_flags == 2
            events.append((packet.timestamp, _event(packet.track_event, told, tracks)))
    events.sort(key=lambda one: one[0])
    return Trace(list(_slices(events)), tracks, clocks, clock)


def _event(event, told, tracks):
    assert event.track_uuid in tracks
    if event.type == 2:
        return event.type, event.track_uuid, "", "", {}
    notes = {}
    for note in event.debug_annotations:
        name = told["debug_annotation_names"][note.name_iid]
        assert name not in notes
        values = [
            getattr(note, kind) for kind in ("uint_value", "int_value", "double_value") if note.HasField(kind)
        ] + [told["debug_annotation_string_values"][n] for n in (note.string_value_iid,) if n]
        [notes[name]] = values
    [category] = (told["event_categories"][n] for n in event.category_iids)
    return event.type, event.track_uuid, told["event_names"][event.name_iid], category, notes


def _slices(events):
    """As slices begin and end; what is left open or ends what never began is an error."""
    opened: dict[int, list[Slice]] = {}
    for ns, (kind, track, name, category, notes) in events:
        if kind == 2:
            one = opened[track].pop()
            one.end_ns = ns
            yield one
            continue
        one = Slice(name, category, track, ns, ns, kind == 3, notes)
        assert kind in (1, 3) and not opened.setdefault(track, [])  # of one row, no event within another
        if kind == 1:
            opened[track].append(one)
        else:
            yield one
    assert not any(opened.values())
