"""The tables of recorders that are no profile: flight recorders of collectives, and histories of allocations.
See `runs.schema`."""

from runs.columns import FLAG, ID, INT, REAL, SOURCE, TEXT, Column, TableSchema

_CAPTURE = Column("capture", ID, "which profile capture of this run (key of `captures`)")

COLLECTIVE_TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "enqueued",
        "an operation that a rank's host handed to the library of collectives, as its flight recorder tells",
        (
            Column("rank", ID, "global rank whose recorder tells of it"),
            Column("host", TEXT, "host or process, if known"),
            Column("group", TEXT, "global ranks of its process group, comma-separated; null: not known"),
            Column("group_name", TEXT, "name of the process group, one for all ranks"),
            Column("description", TEXT, "what the job calls the group, such as TENSOR_MODEL_PARALLEL_GROUP"),
            Column("call", TEXT, "the operation as the recorder names it, without the library: all_reduce, send 0->3"),
            Column("kind", TEXT, "see ENQUEUED_KINDS; null: of a name that is not known"),
            Column("peer", ID, "of a send or receive: global rank at its other end; null: not known"),
            Column(
                "seq", INT, "number among the collectives of its group, the same on all ranks; null: sends, receives"
            ),
            Column("p2p_seq", INT, "number among the rank's own sends and receives in the group"),
            Column("op", INT, "number among all operations of the rank in the group, also those launched as one"),
            Column("bytes", REAL, "bytes of its inputs on this rank"),
            Column("output_bytes", REAL, "bytes of its outputs on this rank"),
            Column("dtype", TEXT, "element type of its first input"),
            Column("shape", TEXT, "shapes of inputs -> shapes of outputs"),
            Column("state", TEXT, "scheduled, started or completed, as the recorder knew; null: it cannot know"),
            Column("enqueued_ns", INT, "when the host handed it over, ns since the epoch on the rank's clock"),
            Column("started_ns", INT, "when a watchdog noticed that it had started: later than it did"),
            Column("completed_ns", INT, "when a watchdog noticed that it had completed: later than it did"),
            Column("dur_ns", INT, "how long the device took, by its own events, where timing was switched on"),
            Column("timeout_ms", INT, "after how long a watchdog ends it"),
            Column("retired", FLAG, "whether a watchdog let go of it: if it had not completed, it timed out"),
            Column("frame", TEXT, "line of the user's program that called it, if recorded"),
            Column("order", INT, "position in the dump, from 0: the order in which the host handed them over"),
            SOURCE,
        ),
    ),
    TableSchema(
        "group_progress",
        "how far a rank came in one of its process groups, as its flight recorder tells; of a dump that tells of no "
        "group one row without any",
        (
            Column("rank", ID, "global rank whose recorder tells of it"),
            Column("host", TEXT, "host or process, if known"),
            Column("group", TEXT, "global ranks of the group, comma-separated; null: not known"),
            Column("group_name", TEXT, "name of the process group, one for all ranks; null: not known which it is"),
            Column("description", TEXT, "what the job calls the group"),
            Column("local_group", INT, "the rank's own number of the group"),
            Column("last_enqueued", INT, "number of its last operation there, a collective or not; null: none"),
            Column("last_started", INT, "number of the last that started; null: none, or timing was off"),
            Column("last_completed", INT, "number of the last that completed, as a watchdog noticed; null: none"),
            Column("entries", INT, "operations in the group that the dump lists"),
            Column("version", TEXT, "version of the recorder's format"),
            Column("fault", TEXT, "why the dump tells nothing; null: it was read"),
            SOURCE,
        ),
    ),
    TableSchema(
        "collective_times",
        "how long one operation of a library of collectives took on one device, as a profiler within it tells",
        (
            Column("host", TEXT, "host and process, such as node7-pid468528: one device each"),
            Column("communicator", TEXT, "the library's own id of the communicator, one for all its ranks"),
            Column("communicator_name", TEXT, "what the job calls the communicator"),
            Column("communicator_rank", ID, "the device's rank within the communicator, no global one"),
            Column("group_size", ID, "ranks of the communicator"),
            Column("nodes", ID, "nodes that they are spread over"),
            Column("kind", TEXT, "all-reduce, all-gather, reduce-scatter, all-to-all, permute, broadcast"),
            Column("call", TEXT, "the operation as the library names it: AllReduce, Send"),
            Column("peer", ID, "of a send or receive: the rank within the communicator at its other end"),
            Column("seq", INT, "number among the communicator's operations of this call; some may be missing"),
            Column("bytes", REAL, "bytes of the operand on this device; null: its meaning for the call is not known"),
            Column("dur_ns", INT, "duration on the device, or of the call where `timing` says so; waiting included"),
            Column("timing", TEXT, "what was timed: kernel_gpu, kernel_cpu or collective_cpu"),
            Column("algorithm", TEXT, "algorithm that the library chose, such as RING"),
            Column("protocol", TEXT, "protocol that it chose, such as LL"),
            Column("algbw_bytes_per_s", REAL, "algorithm bandwidth as told, waiting included"),
            Column("busbw_bytes_per_s", REAL, "bus bandwidth as told, waiting included"),
            Column("start_ns", INT, "start of its first kernel on the host's clock, ns since the epoch, where traced"),
            Column("dumped_ns", INT, "when it was written, ns since the epoch: later than its end"),
            SOURCE,
        ),
    ),
)

ALLOCATION_TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "allocations",
        "a block of device memory that a program held while its allocator's history was recorded",
        (
            _CAPTURE,
            Column("host", TEXT, "host or process"),
            Column("device", ID, "device number in that process"),
            Column("address", INT, "where it lies"),
            Column("bytes", INT, "bytes that were asked for"),
            Column("placed_bytes", INT, "bytes that it takes, rounding included; null but for what is held at the end"),
            Column("alloc_event", INT, "position in the history of its beginning; null: held when that begins"),
            Column("free_event", INT, "position in the history of its end; null: held when that ends"),
            Column("alloc_ns", INT, "when it was given, ns since the epoch"),
            Column("free_ns", INT, "when it could be given again, ns since the epoch"),
            Column("stack", INT, "the calls that asked for it (key, with `capture`, of `stacks`); null: not recorded"),
        ),
    ),
    TableSchema(
        "stacks",
        "a frame of a stack of calls",
        (
            _CAPTURE,
            Column("stack", INT, "its number in the capture"),
            Column("depth", ID, "place in the stack, from 0: the innermost"),
            Column("function", TEXT, "function"),
            Column("file", TEXT, "file as the program names it"),
            Column("line", INT, "line in it; null where it is not known"),
            Column("kind", TEXT, "whose code, see FRAME_KINDS"),
        ),
    ),
    TableSchema(
        "memory_segments",
        "a piece of device memory that a caching allocator had from the device at the end of its history",
        (
            _CAPTURE,
            Column("host", TEXT, "host or process"),
            Column("device", ID, "device number in that process"),
            Column("address", INT, "where it begins"),
            Column("bytes", INT, "bytes of it"),
            Column("held_bytes", INT, "bytes of its blocks that are held, rounding included"),
            Column("requested_bytes", INT, "bytes that were asked for in those blocks"),
            Column("free_bytes", INT, "bytes of its free blocks"),
            Column("largest_free_bytes", INT, "bytes of the largest free block"),
            Column("held_blocks", INT, "blocks that are held"),
            Column("free_blocks", INT, "free blocks"),
            Column("expandable", FLAG, "whether it can grow (expandable_segments)"),
        ),
    ),
)
