"""Where kernels of a trace belong: the whole chain of modules, backward and computed again told apart from forward."""

import itertools
import random

import pytest

from collectors.device import kineto, nsys
from collectors.device.kineto.nesting import chained, new_chains, with_room
from runs.scopes import MOST_LEVELS
from tests.collectors.kineto_traces import event, frame, kernel, launch, op, trace
from tests.collectors.nsys_exports import Export
from tests.collectors.reading import read, source_of
from tests.conftest import seeds

ENGINE = "autograd::engine::evaluate_function: "
FORWARD, BACKWARD = 1, 2


@pytest.fixture
def got(tmp_path):
    def reading(*events):
        return read(kineto, source_of(tmp_path, trace(list(events)), "trace.json"))

    return reading


def scopes(result):
    """(scope, direction) by the kernel's name."""
    kernels = {s["op_id"]: s["text_value"] for s in result.rows.get("op_stats", []) if s["name"] == "kernel"}
    ops = [o for o in result.rows["ops"] if o["device"] is not None]
    return {kernels.get(o["op_id"], o["op"]): (o["scope"], o["direction"]) for o in ops}


class World:
    """A random model that runs forward, then backward on a thread of its own, and what each kernel is to be."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.events, self.wanted = rng, [], {}
        self.numbers, self.sequences = itertools.count(1), itertools.count(1)
        self.calls: list[tuple[int, str | None]] = []
        self.names = itertools.count()
        self.at = 0

    def kernel(self, scope, direction, tid):
        number = next(self.numbers)
        self.events.append(launch(self.at, 1, number, tid=tid))
        self.events.append(kernel(f"k{number}", 100_000 + 10 * number, 3, number))
        self.wanted[f"k{number}"] = (scope, direction)
        self.at += 2

    def module(self, around, depth):
        """A module with calls and modules in it, in any order."""
        name = f"{self.rng.choice(('Block', 'Linear', 'a/b'))}_{next(self.names)}"
        own = (*around, name.replace("/", "%2F"))
        start = self.at
        self.at += 1
        for _ in range(self.rng.randint(1, 3)):
            if depth < 4 and self.rng.random() < 0.5:
                self.module(own, depth + 1)
            else:
                self.call("/".join(own))
        self.events.append(frame(f"nn.Module: {name}", start, self.at - start, tid=FORWARD))
        self.at += 1

    def call(self, scope):
        """An operator, which perhaps tells the number that a call before it told too."""
        sequence, start = next(self.sequences), self.at
        self.at += 1
        self.kernel(scope, "forward" if scope else None, FORWARD)
        self.events.append(op("aten::mm", start, self.at - start, tid=FORWARD, Sequence_number=sequence))
        self.at += 1
        self.calls.append((sequence, scope))

    def backward(self):
        for sequence, scope in reversed(self.calls):
            start = self.at
            self.at += 1
            self.kernel(scope, "backward", BACKWARD)
            name = f"{ENGINE}MmBackward0"
            self.events.append(op(name, start, self.at - start, tid=BACKWARD, Sequence_number=sequence))
            self.at += self.rng.randint(1, 3)


@pytest.mark.parametrize("seed", seeds(40))
def test_each_kernel_is_of_the_chain_of_modules_around_its_forward_call(got, seed):
    world = World(random.Random(seed))
    for _ in range(world.rng.randint(1, 3)):
        world.module((), 0)
        if world.rng.random() < 0.5:
            world.call(None)
    world.backward()
    world.rng.shuffle(world.events)
    assert scopes(got(*world.events)) == world.wanted


def test_what_a_checkpoint_computes_again_is_of_its_place_in_the_model(got):
    forward = (
        frame("nn.Module: GPT_0", 0, 50),
        frame("nn.Module: Block_3", 1, 40),
        op("aten::mm", 2, 10, Sequence_number=7),
        launch(3, 1, 1),
        kernel("first", 500, 5, 1),
    )
    engine = (
        op(f"{ENGINE}CheckpointFunctionBackward", 100, 50, tid=2, Sequence_number=7),
        frame("nn.Module: Block_3", 101, 20, tid=2),
        op("aten::mm", 102, 10, tid=2, Sequence_number=90),
        launch(103, 1, 2, tid=2),
        kernel("again", 600, 5, 2),
        op(f"{ENGINE}MmBackward0", 130, 10, tid=2, Sequence_number=90),
        launch(131, 1, 3, tid=2),
        kernel("gradient", 700, 5, 3),
    )
    assert scopes(got(*forward, *engine)) == {
        "first": ("GPT_0/Block_3", "forward"),
        "again": ("GPT_0/Block_3", "recompute"),
        "gradient": ("GPT_0/Block_3", "backward"),
    }


def test_without_modules_a_checkpoint_that_is_called_by_its_name_computes_again(got):
    result = got(
        op(f"{ENGINE}CheckpointFunctionBackward", 100, 50, tid=2, Sequence_number=7),
        op("aten::mm", 102, 10, tid=2, Sequence_number=90),
        launch(103, 1, 2, tid=2),
        kernel("again", 600, 5, 2),
        op(f"{ENGINE}MmBackward0", 130, 10, tid=2, Sequence_number=90),
        launch(131, 1, 3, tid=2),
        kernel("gradient", 700, 5, 3),
    )
    assert scopes(result) == {"again": (None, "recompute"), "gradient": (None, "backward")}


def test_modules_one_after_another_are_not_in_one_another_though_their_times_are_rounded(got):
    result = got(
        frame("nn.Module: Net_0", 0, 100),
        frame("nn.Module: A_0", 1, 20.001),
        op("aten::mm", 5, 16.002),  # and what lies in it ends a little later
        launch(6, 1, 1),
        kernel("a", 500, 5, 1),
        frame("nn.Module: B_0", 21, 30),
        op("aten::mm", 22, 10),
        launch(23, 1, 2),
        kernel("b", 600, 5, 2),
    )
    assert scopes(result) == {"a": ("Net_0/A_0", "forward"), "b": ("Net_0/B_0", "forward")}


def test_the_optimiser_is_a_scope_and_no_module(got):
    result = got(
        event("user_annotation", "Optimizer.step#AdamW.step", 0, 50),
        op("aten::_foreach_add_", 1, 10),
        launch(2, 1, 1),
        kernel("k", 100, 5, 1),
    )
    assert scopes(result) == {"k": ("Optimizer.step#AdamW.step", None)}
    assert [o["module"] for o in result.rows["ops"] if o["device"] is not None] == [None]


def test_a_call_that_only_tells_which_number_comes_next_is_not_the_forward_call(got):
    result = got(
        frame("nn.Module: A_0", 0, 10),
        op("aten::empty", 1, 3, Sequence_number=5),
        frame("nn.Module: B_0", 20, 10),
        op("aten::mm", 21, 3, Sequence_number=5),
        op(f"{ENGINE}MmBackward0", 50, 10, tid=2, Sequence_number=5),
        launch(51, 1, 1, tid=2),
        kernel("k", 100, 5, 1),
    )
    assert scopes(result) == {"k": ("B_0", "backward")}


def test_the_optimiser_has_no_gradient_and_what_has_no_module_none_of_another(got):
    """Both tell the number that the next forward call will have; the one without a module is that call."""
    result = got(
        frame("nn.Module: A_0", 0, 9),
        op("aten::empty", 1, 3, Sequence_number=5),
        event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 10, 10),
        op("aten::zero_", 11, 3, Sequence_number=5),
        op("aten::mm", 30, 3, Sequence_number=5),
        event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 40, 9),
        op("aten::zero_", 41, 3, Sequence_number=6),
        *(op(f"{ENGINE}MmBackward0", 40 + 10 * n, 9, tid=2, Sequence_number=n) for n in (5, 6)),
        *(launch(41 + 10 * n, 1, n, tid=2) for n in (5, 6)),
        *(kernel(f"k{n}", 900 + 10 * n, 5, n) for n in (5, 6)),
    )
    assert scopes(result) == {"k5": (None, "backward"), "k6": (None, "backward")}


def test_without_stacks_nothing_is_told_but_the_pass(got):
    result = got(
        op("aten::mm", 0, 5, Sequence_number=5),
        launch(1, 1, 1),
        kernel("k", 100, 5, 1),
        op(f"{ENGINE}MmBackward0", 50, 10, tid=2, Sequence_number=5),
        launch(51, 1, 2, tid=2),
        kernel("g", 200, 5, 2),
    )
    assert scopes(result) == {"k": (None, None), "g": (None, "backward")}


def test_modules_within_modules_have_an_end(got):
    deep = [frame(f"nn.Module: M_{n}", n, 4000 - 2 * n) for n in range(200)]
    result = got(*deep, op("aten::mm", 1000, 5), launch(1001, 1, 1), kernel("k", 9000, 5, 1))
    (told,) = scopes(result).values()
    assert told == ("/".join(f"M_{n}" for n in range(MOST_LEVELS)), "forward")


def test_chains_are_numbered_once_and_have_room():
    chains = with_room(new_chains(2), 3)
    numbers = [int(chained(chains, -1, name)) for name in (7, 8, 7)]
    inner = int(chained(chains, numbers[0], 7))
    assert numbers == [0, 1, 0] and inner == 2
    chains = with_room(chains, 100)
    assert int(chained(chains, 0, 7)) == 2 and int(chained(chains, -1, 8)) == 1


def test_ranges_of_nsight_that_nest_are_scopes(tmp_path):
    export = Export()
    for text, start, end in (("step 4", 0, 900), ("decoder", 10, 500), ("mlp", 20, 300), ("backward", 600, 800)):
        export.range(text, start, end)
    export.launch(30, 5, 1).kernel("a", 1000, 5, 1)
    export.launch(650, 5, 2).kernel("b", 1100, 5, 2)
    result = read(nsys, source_of(tmp_path, export.data(tmp_path), "made.sqlite"))
    assert scopes(result) == {"a": ("decoder/mlp", None), "b": ("backward", "backward")}


@pytest.mark.parametrize(("block", "said"), [([128, 1, 1], "4x2x1 blocks of 128x1x1"), ("x", None), ([0, 1, 1], None)])
def test_the_commonest_launch_shape_is_kept(got, block, said):
    rows = [launch(n, 1, n + 1) for n in range(3)]
    rows += [kernel("k", 100 + 10 * n, 5, n + 1, grid=[4, 2, 1], block=block) for n in range(2)]
    rows.append(kernel("k", 200, 5, 3, grid=[9, 9, 9], block=[1, 1, 1]))
    stats = got(*rows).rows.get("op_stats", [])
    told = [s["text_value"] for s in stats if s["name"] == "launch shape"]
    assert told == [said or "9x9x9 blocks of 1x1x1"]
