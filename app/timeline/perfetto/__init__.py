"""A timeline as a file that Perfetto opens: TrackEvent packets of protobuf, written as they are read.

    options    what may be chosen: a window, rows or lanes, and how many events at most
    choosing   which events that is, and a sentence where it is too many
    tracks     a track for each row, below its lane's place, in the timeline's order; the clock
    facts      what the trace says of an operation, as annotations that its events share
    wire       events as bytes (compiled)
    writing    all of it in order, piece by piece

An event stands in the file once: with its name, its row, its account as category, and its whole length also where the
window cuts it. Perfetto counts whole nanoseconds: begin and end are rounded down, and what is finer stands beside them.
"""
