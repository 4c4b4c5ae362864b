"""The tables a run may hold: one literal tuple, `TABLES`, with the meaning and unit of every column.

Times of day are `_ns`: integer nanoseconds since 1970-01-01 UTC on the clock of the host that wrote them.
Times inside a profile are `_ps`: integer picoseconds since the start of their capture (`captures.start_ns`),
because an epoch in picoseconds does not fit 64 bits. A column that is null means "not known", never zero.
"""

import pyarrow as pa

from runs.columns import FLAG, ID, INT, REAL, SOURCE, TEXT, Column, TableSchema
from runs.log_schema import LOG_TABLES
from runs.recorder_schema import ALLOCATION_TABLES, COLLECTIVE_TABLES
from runs.serving_schema import SERVING_TABLES

_CAPTURE = Column("capture", ID, "which profile capture of this run (key of `captures`)")
_STAT = (
    Column("name", TEXT, "name of the statistic as the trace spells it"),
    Column("int_value", INT, "its value where it is a whole number (unsigned values above 2^63 wrap)"),
    Column("float_value", REAL, "its value where it is a real number"),
    Column("text_value", TEXT, "its value where it is text or a reference to text"),
)

TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "steps",
        "a training step on a host, or of the whole job where `host` is null",
        (
            Column("attempt", ID, "which start of the job, from 0; null where the input cannot tell"),
            Column("step", INT, "step number as the job counts it"),
            Column("host", TEXT, "host or process; null for the job as a whole"),
            Column("start_ns", INT, "start of the step, ns since the epoch"),
            Column("dur_ns", INT, "duration in ns; null where only the start was recorded"),
            Column("tokens_per_s_per_chip", REAL, "tokens per second and chip as printed (MaxText: of a device)"),
            Column("model_flops_per_chip", REAL, "model FLOPs of the step by the job's own count, as the rate"),
            Column("loss", REAL, "training loss"),
            Column("capture", ID, "the profile capture it was seen in, if any"),
            Column("order", INT, "position in its input, from 0: the order in which the job wrote it"),
            Column("logged_ns", INT, "when the entry was written, ns since the epoch, where the input says so"),
            Column("format", TEXT, "the collector that read it, or NAME_entries: two may tell of the same steps"),
            Column(
                "device", ID, "device it was alone on: others of the host took it at another time; null: all took it"
            ),
            SOURCE,
        ),
    ),
    TableSchema(
        "lifecycle",
        "an interval of the job's life",
        (
            Column("kind", TEXT, "see LIFECYCLE_KINDS"),
            Column("start_ns", INT, "start, ns since the epoch; null where only the end was recorded"),
            Column("end_ns", INT, "end, ns since the epoch; null: it never ended, or the end was not recorded"),
            Column("attempt", ID, "which start of the job, from 0"),
            Column("step", INT, "step it belongs to, if any"),
            Column("host", TEXT, "host or process; null for the job as a whole"),
            Column("detail", pa.string(), "name of a custom event, or further fields as JSON"),
            Column("logged_ns", INT, "when the entry was written (of its start, where it has two)"),
            Column("order", INT, "position in its input, from 0"),
            Column("end_logged_ns", INT, "when the entry of its end was written, where it has one of its own"),
            Column("end_order", INT, "position of that entry in its input"),
            Column("device", ID, "device of the host that it is of alone; null: of the whole host, or of the job"),
            SOURCE,
        ),
    ),
    TableSchema(
        "captures",
        "one profile of one host",
        (
            _CAPTURE,
            Column("host", TEXT, "host or process that was profiled"),
            Column("process", ID, "process index in the job, if known"),
            Column("start_ns", INT, "start of the capture, ns since the epoch"),
            Column("stop_ns", INT, "end of the capture, ns since the epoch"),
            Column("devices", ID, "accelerator devices seen in it"),
            Column("device_type", TEXT, "device type as the trace names it"),
            Column("peak_flops_per_s", REAL, "peak FLOP/s of one device as the trace states it"),
            Column("peak_hbm_bytes_per_s", REAL, "peak HBM bytes/s of one device as the trace states it"),
            SOURCE,
        ),
    ),
    TableSchema(
        "ops",
        "an operation, aggregated over one line of one device in one capture",
        (
            _CAPTURE,
            Column("op_id", INT, "its number in the capture (key, with `capture`, of `op_events` and `op_stats`)"),
            Column("host", TEXT, "host or process"),
            Column("device", ID, "device number on the host; null for host threads"),
            Column("line", TEXT, "the timeline it ran on, as the trace names it"),
            Column("role", TEXT, "what the line shows, see LINE_ROLES"),
            Column("module", TEXT, "HLO module it belongs to"),
            Column("program", INT, "program number of that module (key of `modules`)"),
            Column("op", TEXT, "operation name"),
            Column("category", TEXT, "kind of operation, see OP_CATEGORIES"),
            Column("count", INT, "executions"),
            Column("total_ns", REAL, "summed duration, ns"),
            Column("self_ns", REAL, "summed duration less that of operations nested in it, ns"),
            Column("flops", REAL, "floating-point operations of one execution"),
            Column("bytes", REAL, "bytes read and written by one execution"),
            Column("cycles", REAL, "clock cycles of one execution as the compiler estimates them"),
            Column("source", TEXT, "line of the user's program it came from"),
            Column("shape", TEXT, "result shape with layout"),
            Column(
                "scope", TEXT, "modules or name scopes it came from, outermost first, joined by / (one in a name: %2F)"
            ),
            Column("direction", TEXT, "which pass it belongs to, see DIRECTIONS; null: not told"),
        ),
    ),
    TableSchema(
        "op_events",
        "one execution of an operation, or one event on a host thread",
        (
            _CAPTURE,
            Column("event", INT, "its number in the capture (key, with `capture`, of `event_stats`)"),
            Column("device", ID, "device number on the host; null for host threads"),
            Column("op_id", INT, "the operation (key, with `capture`, of `ops`)"),
            Column("start_ps", INT, "start, ps since the capture's start"),
            Column("dur_ps", INT, "duration, ps"),
        ),
    ),
    TableSchema(
        "launches",
        "the call on a host's thread that gave a device an operation to execute",
        (
            _CAPTURE,
            Column("event", INT, "the execution (key, with `capture`, of `op_events`); of a graph each of its own"),
            Column("device", ID, "device number on the host"),
            Column("call_event", INT, "the call (key, with `capture`, of `op_events`); null where it is not kept"),
            Column("call", TEXT, "the call's name, such as cudaLaunchKernel"),
            Column("line", TEXT, "the host's thread that made it, as the trace names it"),
            Column("call_start_ps", INT, "start of the call, ps since the capture's start"),
            Column("call_dur_ps", INT, "duration of the call, ps"),
            Column("graph", FLAG, "whether the call launched a graph of operations"),
        ),
    ),
    TableSchema(
        "event_stats",
        "one statistic of one event",
        (_CAPTURE, Column("event", INT, "the event (key of `op_events`)"), *_STAT),
    ),
    TableSchema(
        "op_stats",
        "one statistic of one operation",
        (_CAPTURE, Column("op_id", INT, "the operation (key of `ops`)"), *_STAT),
    ),
    TableSchema(
        "modules",
        "a compiled program (HLO module) that the profile carried",
        (
            _CAPTURE,
            Column("program", INT, "its program number in the capture"),
            Column("name", TEXT, "module name"),
            Column("file", TEXT, "the kept HloProto, below the run's `blobs/` folder, zstd"),
            Column("flops", REAL, "FLOPs of one execution, loops by trip count; null where one of a loop is not known"),
            Column("remat_flops", REAL, "the part of `flops` spent on recomputation (rematerialised operations)"),
            Column("bytes", REAL, "bytes of operands and results of one execution, loops counted likewise"),
            Column("instructions", INT, "instructions in all computations"),
            Column("runs_per_step", INT, "of a compiled program: how often a step runs it; null where not told"),
        ),
    ),
    TableSchema(
        "collectives",
        "one device's part in one collective operation",
        (
            _CAPTURE,
            Column("host", TEXT, "host or process"),
            Column("rank", ID, "global rank of the device, if known"),
            Column("device", ID, "device number on the host"),
            Column(
                "group", TEXT, "ranks that take part, comma-separated, ? for one not known; null: not even how many"
            ),
            Column(
                "places", TEXT, "the group by places in the program's own order, as mesh axes count; null: the same"
            ),
            Column("kind", TEXT, "all-reduce, all-gather, reduce-scatter, all-to-all, permute, broadcast"),
            Column("bytes", REAL, "bytes of the operand on this device"),
            Column("dtype", TEXT, "element type"),
            Column("op", TEXT, "operation name, equal on all ranks of the group"),
            Column("module", TEXT, "HLO module it belongs to"),
            Column("seq", INT, "how many times this op ran before on this device in this capture"),
            Column("step", INT, "step it ran in, if known"),
            Column("start_ns", INT, "start, ns since the epoch on this host's clock"),
            Column("end_ns", INT, "end, ns since the epoch on this host's clock"),
            Column("role", TEXT, "ranks of one role do the same work (a pipeline stage); null: all do, or not known"),
        ),
    ),
    *COLLECTIVE_TABLES,
    TableSchema(
        "pipeline",
        "one operation of a pipeline-parallel training step on one rank",
        (
            Column("step", INT, "step number as the job counts it"),
            Column("dp_rank", ID, "data-parallel rank"),
            Column("stage", ID, "pipeline stage, from 0"),
            Column("rank", ID, "global rank"),
            Column("op_type", TEXT, "what it does, see PIPELINE_OPS"),
            Column("microbatch", ID, "micro-batch, from 0 in each step; null for what is done once a step"),
            Column("chunk", ID, "model chunk of the stage (interleaved schedules), from 0; null where there is one"),
            Column("seq", INT, "position among the operations of its type on its rank in its step, from 0"),
            Column(
                "start_ns", INT, "start, ns since the epoch or since the capture's start, on one clock for all ranks"
            ),
            Column("dur_ns", INT, "duration, ns"),
            SOURCE,
        ),
    ),
    *LOG_TABLES,
    TableSchema(
        "matmuls",
        "a matrix multiplication in a program",
        (
            _CAPTURE,
            Column("program", INT, "program number of its module"),
            Column("module", TEXT, "HLO module"),
            Column("op", TEXT, "operation name"),
            Column("within", TEXT, "operation that a profile shows it in, as the fusion around it; null: not told"),
            Column("m", INT, "rows of the result"),
            Column("k", INT, "contracted dimension"),
            Column("n", INT, "columns of the result"),
            Column("batch", INT, "product of the batch dimensions"),
            Column("count", INT, "executions in one run of the module (trip counts multiplied); null: not known"),
            Column("dtype", TEXT, "element type of the left operand"),
            Column("layout", TEXT, "left, right and result shape with layout"),
            Column("remat", FLAG, "whether it is a recomputation"),
            Column("convolution", FLAG, "whether a window slides over space: no plain matrix product"),
            Column("source", TEXT, "line of the user's program"),
        ),
    ),
    TableSchema(
        "program_collectives",
        "a collective operation in a program",
        (
            _CAPTURE,
            Column("program", INT, "program number of its module"),
            Column("module", TEXT, "HLO module"),
            Column("op", TEXT, "operation name"),
            Column("kind", TEXT, "all-reduce, all-gather, reduce-scatter, all-to-all, permute, broadcast"),
            Column("axis", TEXT, "mesh axis or axes it runs over, joined by +; null where the mesh is not known"),
            Column("groups", ID, "groups of devices that each do it on their own"),
            Column("group_size", ID, "devices of one group; null where the program does not tell"),
            Column("bytes", REAL, "bytes of the operand on one device"),
            Column("dtype", TEXT, "element type"),
            Column("count", INT, "executions in one run of the module (trip counts multiplied); null: not known"),
            Column("asynchronous", FLAG, "whether it is split into a start and a done, with work between them"),
            Column("source", TEXT, "line of the user's program"),
        ),
    ),
    TableSchema(
        "memory",
        "a sample of memory in use, or a buffer at the peak",
        (
            _CAPTURE,
            Column("host", TEXT, "host or process"),
            Column("device", ID, "device number on the host"),
            Column("ts_ns", INT, "time, ns since the epoch"),
            Column("kind", TEXT, "what the number is, see MEMORY_KINDS"),
            Column("bytes", INT, "logical bytes"),
            Column("padded_bytes", INT, "bytes with layout padding"),
            Column("name", TEXT, "buffer or allocator"),
            Column("category", TEXT, "what a buffer is for, see BUFFER_CATEGORIES"),
            Column("copies", INT, "devices that hold the same piece of it, this one included; null where not told"),
            Column("reused", FLAG, "of an input: whether a result takes its place (donated); null where not told"),
            Column("awaits_backward", FLAG, "of a temporary: whether the backward pass needs it; null where not told"),
            Column("program", INT, "program number of the module that holds the buffer"),
            Column("shape", TEXT, "shape with layout"),
            Column("op", TEXT, "operation that makes it"),
            Column("source", TEXT, "line of the user's program"),
        ),
    ),
    *ALLOCATION_TABLES,
    *SERVING_TABLES,
    TableSchema(
        "scalars",
        "any other metric of the job",
        (
            Column("ts_ns", INT, "time, ns since the epoch"),
            Column("step", INT, "step, if any"),
            Column("name", TEXT, "metric name as the job spells it"),
            Column("value", REAL, "value"),
            Column("unit", TEXT, "unit, if known"),
            SOURCE,
        ),
    ),
)

SCHEMAS: dict[str, TableSchema] = {t.name: t for t in TABLES}

LIFECYCLE_KINDS: dict[str, str] = {
    "job": "from job start to job end; one row is one attempt; `detail` of what a scheduler tells is JSON with "
    "`scheduler`, and `outcome` where something cut it short (interrupted)",
    "accelerator_initialization": "setting up the accelerators",
    "training_preparation": "building the model, the mesh and the input pipeline; of a server, weights and compiling",
    "data_loading": "the training loop waiting for (or fetching) a batch",
    "checkpoint_save": "the training loop blocked by a checkpoint being saved",
    "checkpoint_restore": "a checkpoint being restored",
    "custom": "an event that the job named itself; `detail` is the name",
    "elastic_slice_down": "waiting after slices were lost",
    "elastic_scale_up": "waiting for slices to join",
    "elastic_reinitialization": "starting again on another number of slices",
    "slices": "slice counts from this time on; `detail` is JSON with active, total, available",
    "eval": "an evaluation between training steps",
    "queued": "waiting for machines that were asked for: nothing is held yet",
}

ENQUEUED_KINDS: dict[str, str] = {
    "all-reduce": "each rank ends up with the sum over all",
    "all-gather": "each rank ends up with what all have",
    "reduce-scatter": "each rank ends up with its piece of the sum",
    "all-to-all": "each rank sends a piece to each other",
    "barrier": "nobody goes on before all have come",
    "broadcast": "one rank sends to all",
    "reduce": "one rank ends up with the sum",
    "gather": "one rank ends up with what all have",
    "scatter": "one rank sends a piece to each",
    "send": "to one rank of the group",
    "recv": "from one rank of the group",
    "coalesced": "several operations launched as one; each is listed before it",
}

PIPELINE_OPS: dict[str, str] = {
    "forward-compute": "forward pass of one micro-batch through one stage",
    "backward-compute": "backward pass of one micro-batch through one stage",
    "forward-send": "activations to the next stage",
    "forward-recv": "activations from the stage before",
    "backward-send": "gradients to the stage before",
    "backward-recv": "gradients from the next stage",
    "params-all-gather": "data-parallel ranks of a stage collect its parameters",
    "grads-reduce-scatter": "data-parallel ranks of a stage sum its gradients",
    "embedding-grads-all-reduce": "first and last stage sum the gradients of the shared embedding",
    "layernorm-grads-all-reduce": "tensor-parallel ranks sum the gradients of normalisation layers",
    "optimizer-clip-main-grad": "the global gradient norm: all ranks meet, and gradients are clipped",
    "optimizer": "the optimiser's update",
    "gc": "the Python interpreter collects garbage",
}

LINE_ROLES: dict[str, str] = {
    "compute": "operations executed by the device (or by host threads standing in for one)",
    "async": "asynchronous operations: copies and collectives that may overlap with compute",
    "module": "whole programs; spans the operations of `compute`",
    "step": "training steps",
    "host": "host threads: the program, its runtime, its input pipeline",
    "other": "anything else the trace carries",
}

DIRECTIONS: dict[str, str] = {
    "forward": "the forward pass",
    "backward": "the backward pass: gradients; of PyTorch without modules in its trace, what it computes again too, "
    "unless a checkpoint is called by its name",
    "recompute": "a part of the forward pass computed again for the backward pass, to save memory",
}

MEMORY_KINDS: dict[str, str] = {
    "bytes_in_use": "a sample over time of what an allocator has handed out",
    "bytes_limit": "what the device or the compiler lets a program use",
    "arguments": "inputs of a program: parameters, optimiser state, batch",
    "outputs": "results of a program that do not reuse the memory of its inputs",
    "temporaries": "what a program needs besides, at its peak",
    "code": "the program itself",
    "peak": "the most that a program needs at once, on one device",
    "peak_buffer": "one buffer that is alive when a program needs most",
    "argument": "one input of a program",
    "bytes_reserved": "a sample over time of what a device keeps back for the compiled program itself",
    "bytes_available": "a sample over time of what an allocator still can hand out",
    "peak_bytes_in_use": "a sample over time of the most that an allocator had handed out so far",
    "pool_bytes": "a sample over time of what a caching allocator has from the device, handed out or not",
    "refused": "bytes that were asked for and not given, at `source`",
    "device_free": "bytes that the device had left when it refused some",
}

FRAME_KINDS: dict[str, str] = {
    "own": "the user's own Python",
    "library": "Python of a library, or generated",
    "native": "compiled code",
}

BUFFER_CATEGORIES: dict[str, str] = {
    "argument": "an input of the program: parameters, optimiser state, batch",
    "output": "a result that does not reuse the memory of an input",
    "constant": "a constant of the program",
    "temporary": "a value between operations: saved activations, gradients, copies",
    "fragmentation": "room between temporaries that the compiler's packing leaves unused at the peak",
}

OP_CATEGORIES: tuple[str, ...] = (
    "matmul",
    "convolution",
    "fusion",
    "collective",
    "copy",
    "custom-call",
    "control",
    "infeed",
    "outfeed",
    "elementwise",
    "data-movement",
    "host",
    "annotation",
    "other",
)
