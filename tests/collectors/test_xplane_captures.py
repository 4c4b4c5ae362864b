"""Several captures of one job in one run, as profilers name them: `plugins/profile/<time>/<host>.xplane.pb`."""

from pathlib import Path

import pytest

from analyzers.ranks.meetings import meetings
from analyzers.time.ledger import analyze as ledger
from collectors import ingest
from runs.tables import frame
from tests.collectors.riegeli_files import continuous
from tests.collectors.test_riegeli import cut
from tests.collectors.traces import START_NS, XSpace, sharded_program, tpu_steps

GROUPS = [list(range(8))]
BUSY = {d: [30.0 + (d * 7 + s) % 20 for s in range(4)] for d in range(8)}
APART_NS = 600 * 10**9


def shifted(host: int, number: int, steps: bool = True):
    """The capture of a host of four devices, `number` times ten minutes later, with steps of its own numbers."""
    space = XSpace.FromString(tpu_steps(sharded_program(GROUPS, GROUPS), GROUPS, BUSY, host=host))
    for plane in space.planes:
        for stat in plane.stats:
            if stat.int64_value >= START_NS:
                stat.int64_value += number * APART_NS
        lines = [line for line in plane.lines if steps or line.name != b"Steps"]
        for entry in plane.event_metadata if number else ():
            if entry.value.name.isdigit():
                entry.value.name = str(int(entry.value.name) + 100 * number).encode()
        kept = [type(line).FromString(line.SerializeToString()) for line in lines]
        del plane.lines[:]
        plane.lines.extend(kept)
    return space


def written(folder: Path, captures: int, lacks=(), steps: bool = True, pieces: bool = False) -> Path:
    for number in range(captures):
        for host in range(2):
            if (number, host) in lacks:
                continue
            place = folder / "plugins" / "profile" / f"2023_11_14_22_{13 + 10 * number}_20"
            place.mkdir(parents=True, exist_ok=True)
            space = shifted(host, number, steps)
            if pieces:
                (place / f"host{host}.xplane.riegeli").write_bytes(continuous(cut(space, 3)))
            else:
                (place / f"host{host}.xplane.pb").write_bytes(space.SerializeToString())
    return folder


def ingested(store, folder: Path, **how):
    return store.get(ingest.ingest([written(folder, **how)], store).run_id)


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("captures", [1, 2, 3])
def test_so_many_captures_tell_so_many_times_as_much(tmp_path, store, captures, pieces):
    one = ingested(store, tmp_path / "one", captures=1)
    run = ingested(store, tmp_path / "more", captures=captures, pieces=pieces)
    for table in ("captures", "op_events", "collectives", "steps"):
        assert run.tables.rows(table) == captures * one.tables.rows(table), table
    hosts = frame(run.tables, "captures", ["host", "start_ns"])
    assert sorted(zip(hosts["host"], (hosts["start_ns"] - START_NS) // APART_NS, strict=True)) == [
        (f"host{host}", n) for host in range(2) for n in range(captures)
    ]
    steps = frame(run.tables, "steps", ["step", "host", "dur_ns"])
    assert sorted(set(steps["step"])) == [100 * n + s for n in range(captures) for s in range(4)]
    whole, part = (ledger(r.tables, {}, {}).ledger.account for r in (run, one))
    assert whole.chip_seconds == pytest.approx(captures * part.chip_seconds)
    shares, alike = ({path: a.chip_seconds / w.chip_seconds for path, a in w.walk()} for w in (whole, part))
    assert len(shares) > 3 and shares == pytest.approx(alike)


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("lacks", [(), ((0, 0), (2, 1)), ((0, 0), (1, 1)), ((1, 0),)])
def test_a_collective_meets_none_of_another_capture(tmp_path, store, lacks, steps):
    run = ingested(store, tmp_path / "job", captures=3, lacks=lacks, steps=steps)
    begun = frame(run.tables, "captures", ["capture", "start_ns"]).set_index("capture")["start_ns"]
    met = meetings(run.tables)
    of: dict[int, set[int]] = {}
    for meeting, capture in zip(met.meeting.tolist(), met.capture.tolist(), strict=True):
        of.setdefault(meeting, set()).add((int(begun[capture]) - START_NS) // APART_NS)
    assert all(len(found) == 1 for found in of.values())
    whole = {n for n in range(3) if not any(n == number for number, _ in lacks)}
    complete = {(int(begun[c]) - START_NS) // APART_NS for c in met.capture[met.complete].tolist()}
    assert complete == whole


def test_a_profile_in_pieces_beside_the_whole_counts_once(tmp_path, store):
    folder = written(tmp_path / "job", captures=1)
    (place,) = folder.glob("plugins/profile/*")
    (place / "host0.xplane.riegeli").write_bytes(continuous(cut(shifted(0, 0), 3)))
    done = ingest.ingest([folder], store)
    assert done.tables["captures"] == 2
    assert [w for w in done.warnings if "host0.xplane.riegeli" in w and "the whole of it lies beside it" in w]
