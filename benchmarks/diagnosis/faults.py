"""The vocabulary of the benchmark: every kind of fault that is planted, where it sits, and whose business it is."""

from dataclasses import dataclass
from typing import Literal

Family = Literal["hosts", "network", "input", "compile", "program", "job", "evidence", "serving", "fleet"]
Place = Literal["ranks", "links", "steps", "hosts", "none"]


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    cause     its name in truths and answers
    place     what an answer has to name beside the cause: `ranks` or `hosts` by number or name, `links` as pairs of
              ranks, `steps` as the steps that were hurt, `none` where the whole job has it
    done      what is done to the run
    question  the question of this product whose business it is
    """

    cause: str
    family: Family
    title: str
    place: Place
    done: str
    question: str


FAULTS: tuple[Fault, ...] = (
    Fault("slow_host", "hosts", "One rank is slow", "ranks", "extra host work before each dispatch", "stragglers"),
    Fault(
        "garbage_collection", "hosts", "Collector pauses on one rank", "ranks", "gc.collect() of a heap", "stragglers"
    ),
    Fault("jitter", "hosts", "Another rank is late in each step", "none", "host work on a drawn rank", "stragglers"),
    Fault("python_overhead", "hosts", "The host is slower than the device", "none", "Python in each step", "overlap"),
    Fault("device_to_host", "hosts", "Copies to the host in each step", "none", "the state is copied out", "overlap"),
    Fault("leak", "hosts", "Steps grow", "steps", "a history that each step goes through", "slowdown"),
    Fault("step_up", "hosts", "Steps are longer from one on", "steps", "extra work after an event", "slowdown"),
    Fault("slow_link", "network", "One link is slow", "links", "a delay between two ranks", "collectives"),
    Fault("slow_network", "network", "All links are slow", "none", "a delay between all ranks", "collectives"),
    Fault(
        "excess_collectives", "network", "More is reduced than is needed", "none", "arrays sent again", "collectives"
    ),
    Fault("slow_loader", "input", "The loader is slow", "none", "waiting in each next()", "input"),
    Fault("uneven_loader", "input", "One rank's loader is slow", "ranks", "waiting in next() of one rank", "input"),
    Fault("loader_spikes", "input", "The loader stalls now and then", "steps", "waiting in every n-th next()", "input"),
    Fault("recompile_shape", "compile", "A shape is new every n steps", "steps", "batches of other sizes", "steps"),
    Fault(
        "recompile_constant", "compile", "A constant is baked in", "steps", "a learning rate in the program", "steps"
    ),
    Fault("cold_cache", "compile", "The compile cache is empty", "none", "the cache is deleted", "goodput"),
    Fault("batch_padding", "program", "Rows of the batch are padding", "none", "empty rows are computed", "padding"),
    Fault("dims_padding", "program", "A dimension is padded", "none", "the vocabulary is rounded up", "padding"),
    Fault("precision", "program", "Wider numbers than needed", "none", "float64 where float32 would do", "roofline"),
    Fault(
        "tiny_operations",
        "program",
        "Thousands of tiny programs",
        "none",
        "element-wise programs by hand",
        "operations",
    ),
    Fault("recomputation", "program", "The forward pass runs thrice", "none", "nested rematerialisation", "mfu"),
    Fault("wrong_flags", "program", "The compiler does not optimise", "none", "optimisation level 0", "roofline"),
    Fault("frequent_checkpoints", "job", "Saved too often", "none", "a save every other step", "checkpoints"),
    Fault("slow_checkpoint", "job", "Saves are slow", "none", "slow storage under each save", "checkpoints"),
    Fault("slow_restore", "job", "The restore is slow", "none", "slow storage under the restore", "checkpoints"),
    Fault("restart_loop", "job", "It crashes again and again", "ranks", "one rank crashes at a step", "interruptions"),
    Fault(
        "nan_rollback", "job", "The loss is no number", "steps", "weights become NaN; back to a save", "interruptions"
    ),
    Fault(
        "out_of_memory", "job", "The kernel kills a rank", "ranks", "killed, with the kernel's lines", "interruptions"
    ),
    Fault("hang", "job", "A rank falls silent", "ranks", "one rank does not enter a collective", "interruptions"),
    Fault("preemption", "job", "The machines are taken away", "none", "SIGTERM, then waiting", "interruptions"),
    Fault("evaluation", "job", "Evaluation every n steps", "steps", "forward passes between steps", "goodput"),
    Fault(
        "metrics_sync", "job", "Logging waits every n steps", "steps", "a metrics server that answers late", "goodput"
    ),
    Fault("profiler_inside", "job", "A profiler was left on", "steps", "traces start and stop inside steps", "goodput"),
    Fault("clock_skew", "evidence", "One host's clock is off", "ranks", "its profile's times are moved", "none"),
    Fault("missing_profile", "evidence", "One rank has no profile", "ranks", "its profile is left out", "none"),
    Fault("few_profiled_steps", "evidence", "Few steps are profiled", "steps", "three steps of all", "none"),
    Fault("queueing", "serving", "Requests queue", "none", "more arrive than are served", "latency"),
    Fault("kv_preemption", "serving", "Requests are put back", "none", "too few pages of the cache", "engine"),
    Fault(
        "prefix_thrash", "serving", "Shared prefixes are dropped", "none", "pages only for what runs", "prefix_cache"
    ),
    Fault("long_prompts", "serving", "Long prompts among short", "none", "a few prompts of ten times", "latency"),
    Fault("cold_start", "serving", "Programs are compiled while serving", "none", "no warm-up", "engine"),
    Fault(
        "speculation_waste", "serving", "Drafts are wrong", "none", "a draft model that knows nothing", "speculation"
    ),
    Fault(
        "fleet_slow_rank", "fleet", "One rank of a fleet is late", "ranks", "its share of a step grows", "stragglers"
    ),
    Fault("fleet_slow_period", "fleet", "The fleet is slow for days", "steps", "all steps of a stretch", "slowdown"),
    Fault("fleet_bad_host", "fleet", "One host breaks again and again", "hosts", "its failures", "interruptions"),
    Fault("fleet_rare_saves", "fleet", "Saves are too far apart", "none", "steps are lost", "checkpoints"),
    Fault("fleet_frequent_saves", "fleet", "Saves are too frequent", "none", "training waits for saves", "checkpoints"),
    Fault("fleet_slow_restart", "fleet", "Restarts are slow", "none", "waiting for machines", "interruptions"),
)

BY_CAUSE = {fault.cause: fault for fault in FAULTS}
