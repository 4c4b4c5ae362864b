"""The accounts of ledgers of training and serving: names, titles and definitions, written down once.

Pages, help texts and docs show these definitions; figures take the order of drawing from here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccountKind:
    """An account's title on a page and what is entered in it."""

    title: str
    meaning: str


ACCOUNTS: dict[str, AccountKind] = {
    "held": AccountKind(
        "Chip time held", "Every chip-second from the first start of the job to its last sign of life, on all chips."
    ),
    "productive": AccountKind(
        "Kept steps",
        "Time inside training steps whose result was kept (not repeated after a restart), less the time in them "
        "that another account explains.",
    ),
    "profiled": AccountKind(
        "Profiled, steps not known",
        "Time that a profile covers and in which it shows no step: what devices did in it is told below. Whether any "
        "of it was a training step, and was kept, is not known.",
    ),
    "useful_maths": AccountKind(
        "Useful maths", "The model's FLOPs in kept steps, at the chip's peak rate: what a perfect chip would need."
    ),
    "padding": AccountKind("Padding", "Matmul time at peak spent on the zeros that fill up the matrix unit's tiles."),
    "recomputation": AccountKind(
        "Recomputation", "FLOPs done again on purpose (rematerialisation), at the chip's peak rate."
    ),
    "below_roofline": AccountKind(
        "Below roofline",
        "Time in which the device computed, less useful maths, recomputation and padding at peak: what slow, "
        "memory-bound or small operations cost, and FLOPs that the model's own count leaves out.",
    ),
    "exposed_communication": AccountKind(
        "Exposed communication",
        "Time in collectives that no computation on the same device covers, after the last rank had arrived.",
    ),
    "exposed_copies": AccountKind(
        "Exposed copies",
        "Time in copies, within the device's memory or to and from the host, that neither computation nor a collective "
        "on the same device covers.",
    ),
    "straggler_wait": AccountKind(
        "Straggler wait",
        "Time in exposed collectives before the last rank arrived: this rank's duration less the shortest of its "
        "group. Needs no common clock.",
    ),
    "input_wait": AccountKind("Input wait", "Device idle while the host fetched the next batch."),
    "device_idle": AccountKind(
        "Device idle",
        "Inside a kept, profiled step (inside the profile, where it shows no steps) no operation ran on "
        "the device and no known wait explains it.",
    ),
    "compilation": AccountKind(
        "Compilation in steps",
        "Device idle inside a kept, profiled step while its host traced, lowered or compiled a program: a new shape, a "
        "new constant, or a cache that missed. The first step of an attempt is startup.",
    ),
    "idle_launching": AccountKind(
        "Launching", "Device idle while its host launched programs or handed over their arguments."
    ),
    "idle_device_to_host": AccountKind("Copies to the host", "Device idle while its host copied arrays from it."),
    "idle_logging": AccountKind("Logging", "Device idle while its host logged or sent metrics."),
    "idle_checkpointing": AccountKind("Checkpointing", "Device idle while its host worked on a checkpoint."),
    "idle_evaluation": AccountKind("Evaluating", "Device idle while its host evaluated, inside a kept step."),
    "idle_garbage_collection": AccountKind("Collecting garbage", "Device idle while its host collected garbage."),
    "idle_profiling": AccountKind("Profiling", "Device idle while its host started or stopped a profile."),
    "idle_host_code": AccountKind(
        "Code on the host",
        "Device idle while the thread that feeds it ran code that no event marks, such as Python of the job itself.",
    ),
    "idle_between_kernels": AccountKind(
        "Between kernels",
        "Device idle though the call that launches its next kernel was done: the device's own time between kernels, or "
        "a kernel held back for another stream.",
    ),
    "pipeline_bubble": AccountKind(
        "Pipeline bubble",
        "Device idle while its stage of a pipeline waits for the first microbatches or the last ones of others, in a "
        "step that is modelled. A profile shows it as waiting in sends and receives.",
    ),
    "idle_unexplained": AccountKind("Idle, not explained", "Device idle, and no event of its host tells why."),
    "badput": AccountKind("Badput", "Time in which the job held the chips without taking a step that was kept."),
    "infrastructure_recovery": AccountKind(
        "Infrastructure recovery",
        "From the last sign of life of an interrupted attempt to the start of the next: failure detection, "
        "a new slice, rescheduling.",
    ),
    "accelerator_initialization": AccountKind("Accelerator initialisation", "Setting up the accelerators."),
    "training_preparation": AccountKind(
        "Training preparation", "Building the mesh, the model and the input pipeline before the first step."
    ),
    "program_startup": AccountKind(
        "Startup and compilation",
        "The first step of an attempt beyond a usual step of it: tracing, compilation, first transfers.",
    ),
    "data_loading": AccountKind("Data loading", "Waiting for data before the first step of an attempt."),
    "checkpoint_save": AccountKind("Checkpoint save", "The training loop blocked by a checkpoint being saved."),
    "checkpoint_restore": AccountKind("Checkpoint restore", "A checkpoint being restored."),
    "wasted_progress": AccountKind(
        "Wasted progress", "Steps whose result was lost with an interruption and that were taken again later."
    ),
    "hang": AccountKind(
        "Hang",
        "What a step took beyond a usual one where it took a hundred times as long, ten minutes at least, and "
        "nothing recorded says why.",
    ),
    "elastic_slice_down": AccountKind("Elastic slice-down", "Waiting after slices were lost."),
    "elastic_scale_up": AccountKind("Elastic scale-up", "Waiting for slices to join."),
    "elastic_reinitialization": AccountKind("Elastic reinitialisation", "Starting again on another number of slices."),
    "custom": AccountKind("Custom events", "Events that the job named itself, each its own account below."),
    "eval": AccountKind("Evaluation", "Evaluations between training steps."),
    "other": AccountKind(
        "Other", "Inside the job, after its last step or between its named phases: no event says what it was."
    ),
    "unattributed": AccountKind(
        "Unattributed", "Not known: no input tells what the chips did. A profile of these steps would."
    ),
    "served": AccountKind(
        "Served tokens",
        "Time of the engine for tokens that became part of an answer (within its objectives, where "
        "some are given): reading prompts and generating.",
    ),
    "prefill": AccountKind("Prefill", "Reading prompts: computing the keys and values of their tokens, once."),
    "decode": AccountKind("Decode", "Generating: the passes that gave the tokens of answers."),
    "lost_work": AccountKind("Lost work", "Time in which the engine computed what no answer needed, or came too late."),
    "missed_objective": AccountKind(
        "Missed objectives", "Time spent on answers that came later than the objectives asked for allow."
    ),
    "bucket_padding": AccountKind(
        "Bucket padding", "The part of a pass spent on tokens that only fill up a compiled shape."
    ),
    "rejected_speculation": AccountKind(
        "Rejected speculation", "Verifying draft tokens that were not kept, and proposing them where that was recorded."
    ),
    "preemption_recompute": AccountKind(
        "Preemption recompute", "Computing tokens again whose keys and values were given up to make room."
    ),
    "failed_requests": AccountKind("Failed requests", "Time spent on requests that failed or were aborted."),
    "scheduling": AccountKind(
        "Scheduling overhead",
        "Requests were in the engine, but the device did not compute: scheduling, sampling on "
        "the host, sending answers.",
    ),
    "no_requests": AccountKind("No requests", "The engine held its chips and had nothing to do."),
    "not_broken_down": AccountKind("Not broken down", "Entered as one amount by one of the runs added here."),
    "no_single_rank": AccountKind("No single rank", "Ranks waited, but no one rank was last by a clear margin."),
}
