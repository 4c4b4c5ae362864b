"""What the host did while its device was idle: every millisecond of made profiles is looked at by hand."""

import random
from itertools import pairwise

import pytest

from analyzers.device.host_work import HOST_CODE, KINDS, host_work
from analyzers.intervals import length
from analyzers.time import ledger
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.conftest import seeds

MS = 1_000_000
EPOCH = 1_767_571_200_000_000_000
STEP_MS, STEPS = 100, 4
COLLECTS = "PythonRefManager::CollectGarbage"
READS = "$array.py:615 _value"
NAMES = {  # what a profile calls it: the account
    "PjitFunction(train_step)": "idle_launching",
    "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice": "idle_launching",
    "CommonPjRtBuffer::Await": "idle_unexplained",
    "PjRtBuffer::ToLiteral": "idle_device_to_host",
    "np.asarray(jax.Array)": "idle_device_to_host",
    "log_metrics": "idle_logging",
    "save_checkpoint": "idle_checkpointing",
    "evaluation": "idle_evaluation",
    "gc.collect": "idle_garbage_collection",
    "$gc collect": "idle_garbage_collection",
    "<built-in function collect>": "idle_garbage_collection",
    "$loop.py:40 collect": "idle_host_code",
    "trainer.py(12): log_metrics": "idle_logging",
    "torch/_dynamo/eval_frame.py(838): _fn": "idle_host_code",
    "<eval_with_key>.8(4): forward": "idle_host_code",
    "monitor.py(49): validate_arguments": "idle_host_code",
    "trainer.py(80): validate": "idle_evaluation",
    "aten::log_softmax": "idle_launching",
    "torch/nn/functional.py(2081): log_softmax": "idle_host_code",
    "trainer.py(30): compute_log_prob": "idle_host_code",
    "torch/fx/experimental/symbolic_shapes.py(6001): evaluate_expr": "idle_host_code",
    "trainer.py(20): evaluate_all": "idle_evaluation",
    "autograd::engine::evaluate_function: MmBackward0": "idle_launching",
    "cudaDeviceSynchronize": "idle_unexplained",
    "stop_trace": "idle_profiling",
    "backend_compile_and_load": "compilation",
    "lower_sharding_computation": "compilation",
    "my own function": "idle_host_code",
    "$array.py:615 _value": "idle_device_to_host",
    "$my_array.py:615 _value": "idle_host_code",
    "$metrics.py:12 flatten": "idle_host_code",
    "$train.py:80 log_metrics": "idle_logging",
    "$ad_checkpoint.py:300 remat_partial_eval": "idle_host_code",
    "$partial_eval.py:80 trace_to_subjaxpr_nounits": "idle_host_code",
    "$async_checkpointer.py:90 save": "idle_checkpointing",
    COLLECTS: "idle_host_code",
}
ORDER = ["idle_host_code", *("idle_unexplained" if k == "waiting" else f"idle_{k}" for k in KINDS)]
ORDER[-1] = "compilation"


def profile(events, busy=(), other=()) -> MemoryTables:
    """`events`: (name, start ms, end ms) on the thread of the steps; `other`: on another; `busy`: of the device."""
    steps = [("train", n * STEP_MS, (n + 1) * STEP_MS) for n in range(STEPS)]
    rows = [("python", *e) for e in (*steps, *events)] + [("pool", *e) for e in other]
    rows += [(None, "fusion", *b) for b in busy]
    names = sorted({(line or "", name) for line, name, *_ in rows})
    ids = {key: n for n, key in enumerate(names)}
    return MemoryTables(
        {
            "captures": {
                "capture": [1],
                "host": ["vm"],
                "start_ns": [EPOCH],
                "stop_ns": [EPOCH + STEPS * STEP_MS * MS],
            },
            "ops": {
                "capture": [1] * len(names),
                "op_id": list(range(len(names))),
                "host": ["vm"] * len(names),
                "device": [None if line else 0 for line, _ in names],
                "line": [line or "XLA Ops" for line, _ in names],
                "role": ["host" if line else "compute" for line, _ in names],
                "category": ["annotation" if name == "train" else "host" if line else "fusion" for line, name in names],
                "op": [name for _, name in names],
            },
            "op_events": {
                "capture": [1] * len(rows),
                "event": list(range(len(rows))),
                "device": [None if line else 0 for line, *_ in rows],
                "op_id": [ids[line or "", name] for line, name, *_ in rows],
                "start_ps": [round(start * MS * 1000) for *_, start, _ in rows],
                "dur_ps": [round((end - start) * MS * 1000) for *_, start, end in rows],
            },
            "steps": {
                "capture": [1] * STEPS,
                "host": ["vm"] * STEPS,
                "step": list(range(STEPS)),
                "start_ns": [EPOCH + start * MS for _, start, _ in steps],
                "dur_ns": [STEP_MS * MS] * STEPS,
                "source": ["profile"] * STEPS,
            },
        }
    )


def accounts(tables: MemoryTables) -> dict[str, float]:
    """Milliseconds by account, those that hold any."""
    book = ledger.analyze(tables, facts_of({"chips": 1, "peak_flops_per_s": 1e12}), {}).ledger
    return {a.name: round(a.chip_seconds * 1e3, 6) for _, a in book.account.walk() if not a.children and a.chip_seconds}


@pytest.mark.parametrize("name, account", NAMES.items())
def test_an_event_is_told_by_its_name(name, account):
    told = accounts(profile([(name, 130, 170)], [(0, 100), (170, 400)]))
    rest = {"idle_host_code": 30.0} if account != "idle_host_code" else {}
    assert told == {"compute_unsplit": 330.0, account: 40.0 if rest else 70.0, **rest}


def test_a_call_in_which_a_program_was_compiled_is_compilation_as_a_whole_and_another_is_not():
    events = [("PjitFunction(f)", 100, 150), ("PjitFunction(f)", 100, 149), ("backend_compile_and_load", 120, 140)]
    events += [("PjitFunction(f)", 200, 230)]
    told = accounts(profile(events, [(0, 100), (150, 200), (230, 400)]))
    assert told == {"compute_unsplit": 320.0, "compilation": 50.0, "idle_launching": 30.0}


def test_what_another_thread_does_and_what_a_busy_device_hides_is_nothing_that_was_lost():
    told = accounts(profile([("evaluation", 0, 100)], [(0, 400)], other=[("backend_compile_and_load", 0, 400)]))
    assert told == {"compute_unsplit": 400.0}


def test_thousands_of_copies_one_after_another_are_told_with_what_passes_between_them():
    name = "ArrayImpl.copy_to_host_async"
    calls = [(name, 100 + n / 100, 100 + n / 100 + 0.002) for n in range(5_000)]  # 2 µs of each 10 µs
    apart = [(name, 200 + n / 10, 200 + n / 10 + 0.02) for n in range(500)]  # 20 µs of each 100 µs
    told = accounts(profile([*calls, *apart], [(0, 100), (150, 200), (250, 400)]))
    copied, other = pytest.approx(60.0, abs=0.01), pytest.approx(40.0, abs=0.01)
    assert told == {"compute_unsplit": 300.0, "idle_device_to_host": copied, "idle_host_code": other}


def test_reading_an_array_is_a_copy_but_for_what_it_waits_for():
    told = accounts(profile([(READS, 110, 170), ("CommonPjRtBuffer::Await", 120, 150)], [(0, 100), (170, 400)]))
    assert told == {
        "compute_unsplit": 330.0,
        "idle_host_code": 10.0,
        "idle_device_to_host": 30.0,
        "idle_unexplained": 30.0,
    }


@pytest.mark.parametrize("name", ["train_and_evaluate", "validate", "checkpointed_loop", "log", "backend_compile"])
def test_a_frame_around_whole_steps_is_the_job_s_own_loop_and_tells_nothing(name):
    told = accounts(profile([(name, 0, 400)], [(0, 150), (180, 400)]))
    assert told == {"compute_unsplit": 370.0, "idle_host_code": 30.0}


def test_where_no_thread_shows_the_steps_nothing_is_told():
    tables = profile([("evaluation", 0, 100)], [(100, 400)])
    columns = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events", "steps")}
    columns["ops"]["category"] = ["host" if c == "annotation" else c for c in columns["ops"]["category"]]
    bare = MemoryTables(columns)
    assert host_work(bare, 1, EPOCH) == {}
    assert accounts(bare) == {"compute_unsplit": 300.0, "device_idle": 100.0}


@pytest.mark.parametrize("seed", seeds(40))
def test_every_millisecond_is_in_the_account_that_its_events_say(seed):
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(401), 12))
    busy = list(zip(cuts[::2], cuts[1::2], strict=True))
    events = []
    for _ in range(rng.randint(0, 12)):
        start = rng.randrange(399)
        events.append((rng.choice([*NAMES]), start, min(start + rng.randint(1, 120), 400)))
    wanted: dict[str, float] = {}
    steps = [(n * STEP_MS, (n + 1) * STEP_MS) for n in range(STEPS)]
    compiling = [(a, b) for name, a, b in events if NAMES[name] == "compilation" and not holds_a_step(a, b, steps)]
    thread = sorted([*(("train", a) for a, _ in steps), *((name, a) for name, a, _ in events)], key=lambda e: e[1])
    collected = [(a, b) for (x, a), (y, b) in pairwise(thread) if x == y == COLLECTS]  # nothing between: it is framed
    for ms in range(400):
        if any(a <= ms < b for a, b in busy):
            told = "compute_unsplit"
        else:
            here = ["idle_host_code"]
            for name, a, b in events:
                if a <= ms < b and name != READS and not holds_a_step(a, b, steps):
                    here.append(NAMES[name])
                    if name.startswith("Pjit") and any(a <= c and d <= b for c, d in merged(compiling)):
                        here.append("compilation")
            here += ["idle_garbage_collection" for a, b in collected if a <= ms < b]
            if any(a <= ms < b and name == READS and not holds_a_step(a, b, steps) for name, a, b in events):
                here += [] if "idle_unexplained" in here else ["idle_device_to_host"]
            told = max(here, key=ORDER.index)
        wanted[told] = wanted.get(told, 0) + 1
    if set(wanted) <= {"compute_unsplit", "compilation", "idle_unexplained"} and "idle_unexplained" in wanted:
        wanted["device_idle"] = wanted.pop("idle_unexplained")
    assert accounts(profile(events, busy)) == wanted


def holds_a_step(start: int, end: int, steps: list[tuple[int, int]]) -> bool:
    return any(start <= a and b <= end for a, b in steps)


def merged(some: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[list[int]] = []
    for a, b in sorted(some):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return [(a, b) for a, b in out]


def test_kinds_are_unions_on_the_clock_of_the_host_and_its_own_code_is_all_the_time_it_was_seen():
    found = host_work(profile([("evaluation", 10, 30), ("evaluation", 20, 50)]), 1, EPOCH)
    assert list(found) == [HOST_CODE, *KINDS]
    assert length(found["evaluation"]) == 40 * MS and found["evaluation"].start[0] == EPOCH + 10 * MS
    assert length(found[HOST_CODE]) == STEPS * STEP_MS * MS


@pytest.mark.parametrize(
    "name",
    [
        "FSDP::pre_forward (blocks.3._checkpoint_wrapped_module)",
        "nn.Module: CheckpointWrapper_3",
        "CheckpointFunctionBackward",
        "torch/utils/checkpoint.py(30): checkpoint",
        "flash_attn::_flash_attn_forward",
    ],
)
def test_keeping_activations_is_no_saving(name):
    result = ledger.analyze(profile([(name, 110, 160)], busy=[(0, 100), (160, 400)]), facts_of({}), {})
    assert result.ledger.find("idle_checkpointing") is None
    assert result.ledger.find("idle_launching").chip_seconds == pytest.approx(0.05)


@pytest.mark.parametrize("name", ["save_checkpoint", "train.py(3): save_checkpoint", "orbax.checkpoint"])
def test_saving_is(name):
    result = ledger.analyze(profile([(name, 110, 160)], busy=[(0, 100), (160, 400)]), facts_of({}), {})
    assert result.ledger.find("idle_checkpointing").chip_seconds == pytest.approx(0.05)
