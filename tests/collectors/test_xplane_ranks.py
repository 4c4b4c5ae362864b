"""Who is late by name: groups of a program's own numbers mapped onto devices by its device assignment."""

import numpy as np
import pytest

from analyzers.ranks import collectives, stragglers
from analyzers.ranks.meetings import meetings
from collectors.device.hlo.assignment import Assignment, assignment_of, devices_of
from collectors.device.hlo.module import analyse
from collectors.device.hlo.shapes import HLO
from collectors.device.xplane.ranks import device_numbers, everybody
from collectors.ingest import ingest
from errors.options import parse_options
from runs.run import FactValue
from runs.store import Store
from tests.collectors.traces import PlaneBuilder, XSpace, environment, got, sharded_program, tpu_steps

V5E = [[0], [1], [3], [2]]  # partitions of a v5e 2x2 in JAX's order
STEPS = 40


def busy(devices, late, by_ms=20.0):
    random = np.random.default_rng(5)
    return {d: (40 + by_ms * (d == late) + random.normal(0, 0.05, STEPS)).tolist() for d in range(devices)}


def ask(tmp_path, question, traces, facts=None):
    folder = tmp_path / "traces"
    for number, data in enumerate(traces):
        (folder / f"process_{number}").mkdir(parents=True, exist_ok=True)
        (folder / f"process_{number}" / "h.xplane.pb").write_bytes(data)
    store = Store(tmp_path / "store")
    run = store.get(ingest([folder], store).run_id)
    return question.analyze(run.tables, run.manifest.facts | (facts or {}), parse_options(question.OPTIONS, {}))


def groups(tmp_path, program, cores=(0, 1, 2, 3), op="all-reduce.1"):
    meets = [[i] for i in range(4)]
    trace = tpu_steps(program, meets, {d: [5.0] for d in range(4)}, cores=list(cores), op=op)
    rows = got(tmp_path, trace).rows["collectives"]
    return {r["rank"]: r["group"] for r in rows}, {r["rank"]: r["places"] for r in rows}


@pytest.mark.parametrize("late", range(4))
def test_the_late_device_is_named_where_partitions_run_in_another_order(tmp_path, late):
    """Partitions 0 and 2 meet, and 1 and 3: on a v5e 2x2 these are devices 0 and 3, and 1 and 2."""
    program = sharded_program([[0, 2], [1, 3]], V5E)
    trace = tpu_steps(program, [[0, 3], [1, 2]], busy(4, late))
    result = ask(tmp_path, stragglers, [trace])
    assert result.ranks["rank"].tolist() == [str(late)]


def test_two_hosts_whose_partitions_cross(tmp_path):
    """A v5e 2x4: JAX's order of eight chips goes along one row and back along the other."""
    order = [0, 1, 2, 3, 7, 6, 5, 4]
    program = sharded_program([[0, 4], [1, 5], [2, 6], [3, 7]], [[d] for d in order])
    meets = [[order[a], order[b]] for a, b in ((0, 4), (1, 5), (2, 6), (3, 7))]
    work = busy(8, late=6)
    result = ask(tmp_path, stragglers, [tpu_steps(program, meets, work, host) for host in (0, 1)])
    assert result.ranks["rank"].tolist() == ["6"] and result.ranks["host"].tolist() == ["host1/1"]


def test_without_the_assignment_nobody_is_named(tmp_path):
    trace = tpu_steps(sharded_program([[0, 2], [1, 3]], None), [[0, 3], [1, 2]], busy(4, late=3))
    result = ask(tmp_path, stragglers, [trace])
    assert not len(result.ranks)
    assert any("not known which" in note for note in result.notes)


def test_mesh_axes_count_in_the_order_of_the_program(tmp_path):
    program = sharded_program([[0, 2], [1, 3]], V5E)
    trace = tpu_steps(program, [[0, 3], [1, 2]], busy(4, late=3))
    mesh = FactValue({"data": 2, "model": 2}, "declared", "test")
    result = ask(tmp_path, collectives, [trace], {"parallelism": mesh})
    assert result.rows["axis"].tolist() == ["data"] and result.rows["group_size"].tolist() == [2]


@pytest.mark.parametrize(
    ("opcode", "channel", "everywhere", "numbers", "devices"),
    [
        ("all-reduce", 1, True, [[0, 2], [1, 3]], ["0,3", "1,2"]),
        ("collective-permute", 1, False, [[0, 2], [2, 0]], ["0,3", "1", "2"]),
        ("all-to-all", 1, False, [[0, 2], [1, 3]], ["0,3", "1,2"]),
        ("all-reduce", 0, False, [[0, 2], [1, 3]], ["0,3", "1,2"]),  # numbers beyond the one replica are partitions
        ("all-reduce", 1, False, [[0]], ["0,1,3,2"]),  # one replica with all of its partitions
        ("all-gather", 1, True, [], ["0,1,3,2"]),
    ],
)
def test_groups_by_kind_of_numbers(tmp_path, opcode, channel, everywhere, numbers, devices):
    program = sharded_program(numbers, V5E, opcode, channel, everywhere)
    found, places = groups(tmp_path, program, op=f"{opcode}.1")
    assert set(found.values()) == set(devices)
    place = {0: 0, 1: 1, 3: 2, 2: 3}
    for rank, group in found.items():
        assert str(rank) in group.split(",")
        theirs = ",".join(str(place[int(r)]) for r in group.split(","))
        assert places[rank] == (None if theirs == group else theirs)


def test_replicas_and_partitions():
    """Two replicas of two partitions: devices by partition, then replica."""
    table = Assignment(((10, 11), (12, 13)))
    assert table.order == (10, 12, 11, 13)
    assert devices_of(((0, 1),), "all-reduce", False, False, table) == ((10, 11), (12, 13))  # replicas, per partition
    assert devices_of(((0,), (1,)), "all-reduce", True, False, table) == ((10, 12), (11, 13))  # with all partitions
    assert devices_of(((0, 1),), "permute", True, False, table) == ((10, 12), (11, 13))  # partitions, per replica
    assert devices_of(((0, 3), (1, 2)), "all-reduce", True, True, table) == ((10, 13), (12, 11))
    assert devices_of(None, "all-reduce", True, True, table) == ((10, 12, 11, 13),)
    assert devices_of(None, "all-reduce", False, False, table) == ((10, 11), (12, 13))
    assert devices_of(None, "all-to-all", True, False, table) == ((10, 12), (11, 13))  # partitions, per replica
    assert devices_of(((0, 4),), "all-reduce", True, True, table) is None  # no such device
    assert devices_of(((0, -1),), "all-reduce", True, True, table) is None
    assert devices_of(((0, 1),), "all-reduce", True, True, None) is None


@pytest.mark.parametrize("table", [[], [[]], [[0], [0]], [[0, 1], [2]], [[-1]]], ids=str)
def test_an_assignment_that_cannot_be_is_none(table):
    module = HLO["Module"]()
    for part in table:
        module.device_assignment.computation_devices.add(replica_device_ids=part)
    assert assignment_of(module) is None


def test_the_assignment_of_a_program_is_kept():
    module = analyse(sharded_program([[0, 2], [1, 3]], V5E))
    assert module.assignment == Assignment(((0,), (1,), (3,), (2,)))
    (found,) = (o.collective for o in module.operations.values() if o.collective)
    assert found.groups == ((0, 2), (1, 3)) and found.devices == ((0, 3), (1, 2))


def test_devices_of_several_slices(tmp_path):
    """JAX numbers the devices of the second slice from 200,000; its planes count their cores from 0."""
    program = sharded_program([[0, 2], [1, 3]], [[200_000], [200_001], [200_003], [200_002]])
    found, _ = groups(tmp_path, program)
    assert found == {
        200_000: "200000,200003",
        200_001: "200001,200002",
        200_002: "200001,200002",
        200_003: "200000,200003",
    }


def test_devices_that_the_program_does_not_name_stay_unknown(tmp_path):
    program = sharded_program([[0, 2], [1, 3]], [[10], [11], [12], [13]])
    found, places = groups(tmp_path, program)
    assert set(found.values()) == {"?,?"} and set(places.values()) == {None}


def test_two_cores_that_are_one_device_count_as_their_chip():
    def planes(*pairs):
        return {i: {4: i, 5: chip, 6: core} for i, (chip, core) in enumerate(pairs)}

    assert device_numbers(planes((4, 4), (5, 5)), set()) == {0: 4, 1: 5}  # one core a chip
    assert device_numbers(planes((0, 0), (0, 1), (1, 2), (1, 3)), set(range(8))) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert device_numbers(planes((0, 0), (1, 2), (2, 4), (3, 6)), set(range(8))) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert device_numbers(planes((0, 0), (1, 2)), {0, 2}) == {0: 0, 1: 2}  # the program says otherwise


def test_what_numbers_alone_tell():
    assert everybody(None) is None and everybody(()) is None
    assert everybody(((0, 1, 2, 3),)) == "0,1,2,3"
    assert everybody(((0, 2), (1, 3))) == "?,?"
    assert everybody(((0, 2),)) == "?,?" and everybody(((0, 1), (2, 3, 4))) == "?"


def test_processes_of_cpu_devices_are_ranked_by_the_programs_devices(tmp_path):
    """Two processes of two devices; this profile saw one of its two at work."""
    program = sharded_program([[0, 2], [1, 3]], [[0], [2048], [1], [2049]])
    space = XSpace(hostnames=[b"vm"])
    environment(space)
    PlaneBuilder(space, "/host:metadata").metadata("jit_step(9)", **{"Hlo Proto": program, "program_id": 9})
    of = {"hlo_op": "all-reduce.1", "hlo_module": "jit_step", "program_id": 9, "device_ordinal": 2048}
    PlaneBuilder(space, "/host:CPU").line("tf_XLAEigen/1", [("all-reduce.1", 0, 10, of)])
    (row,) = got(tmp_path, space.SerializeToString()).rows["collectives"]
    assert (row["rank"], row["device"], row["group"]) == (2, 0, "2,3")
    assert row["places"] == "1,3"


def test_gpus_of_one_machine_find_their_groups(tmp_path):
    program = sharded_program([[0, 2], [1, 3]], V5E, opcode="all-reduce")
    space = XSpace()
    environment(space)
    PlaneBuilder(space, "/host:metadata").metadata("jit_step(9)", **{"Hlo Proto": program, "program_id": 9})
    for device in range(4):
        of = {"hlo_op": "all-reduce.1", "hlo_module": "jit_step", "program_id": 9}
        PlaneBuilder(space, f"/device:GPU:{device}").line(
            "Stream #1(Compute)", [("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 60, 40, of)]
        )
    rows = got(tmp_path, space.SerializeToString()).rows["collectives"]
    assert {r["device"]: r["group"] for r in rows} == {0: "0,3", 1: "1,2", 2: "1,2", 3: "0,3"}


def test_ranks_stand_at_their_places_in_the_mesh(tmp_path):
    from runs.tables import MemoryTables

    met = meetings(
        MemoryTables(
            {
                "collectives": {
                    "host": ["a"] * 4,
                    "rank": [0, 1, 2, 3],
                    "device": [0, 1, 2, 3],
                    "group": ["0,3", "1,2", "1,2", "0,3"],
                    "places": ["0,2", "1,3", "1,3", "0,2"],
                    "op": ["x"] * 4,
                    "start_ns": [0] * 4,
                    "end_ns": [5] * 4,
                }
            }
        )
    )
    assert met.ranks["rank"].tolist() == [0, 1, 2, 3] and met.ranks["place"].tolist() == [0, 1, 3, 2]
    assert met.complete.all()
