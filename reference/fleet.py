"""Makes the bundled simulated run again: `python -m reference.fleet` (or `make reference-fleet`).

54 days on 16,384 accelerators with 466 interruptions: how many, over how long and from which causes is published for
the training of Llama 3 405B; everything else (who broke when, how long a restart took, what the logs said) is drawn
from the plan below. The run says on every page that it is simulated. The truth lies beside its folder.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog import model
from catalog.flops import flops_per_token
from runs.schema import SCHEMAS
from simulators.fleet import FleetPlan, simulate
from simulators.fleet_ranks import RanksPlan, profile

FOLDER = Path(__file__).parent / "runs" / "fleet-54-days-simulated"
TRUTH = FOLDER.with_suffix(".truth.json")
MODEL, CHIP, CHIPS = "llama3.1-405b", "h100", 16_384
SEQ, BATCH_TOKENS = 8_192, 16 * (1 << 20)
FLOPS_PER_S = 400e12  # of one accelerator; 380 to 430 TFLOP/s are published for this job
START_NS = 1_788_220_800_000_000_000  # 2026-09-01
CAUSES = {  # 419 unplanned as published, the causes of two each apart; 47 planned, shared out here by assumption
    "accelerator": 148,
    "hbm": 72,
    "software": 54,
    "network": 35,
    "maintenance": 32 + 27,
    "sram": 19,
    "firmware": 17,
    "nic": 7,
    "hang": 7,
    "data_corruption": 6,
    "thermal": 6,
    "disk": 3,
    "power": 3,
    "chassis": 4,
    "dependency": 2,
    "host_cpu": 2,
    "host_memory": 2,
    "user": 20,
}
STRAGGLER = 8_147
"""The rank that is slow in the profile: the fourth accelerator of one host."""


def plans() -> tuple[FleetPlan, RanksPlan]:
    flops = flops_per_token(model(MODEL), SEQ).total * BATCH_TOKENS / CHIPS
    step_s = flops / FLOPS_PER_S
    job = FleetPlan(
        start_ns=START_NS,
        days=54,
        hosts=CHIPS // 8,
        chips_per_host=8,
        causes=CAUSES,
        step_s=step_s,
        checkpoint_every=150,
        save_s=6.0,
        lemons=(311, 1018, 1642),
        slow=((20.3, 0.6, 1.06), (37.1, 0.25, 1.11)),
        model_flops_per_chip=flops,
        seed=405,
    )
    day = 20 * 86_400 + 40_000
    ranks = RanksPlan(
        start_ns=START_NS + day * 10**9,
        first_step=0,
        steps=25,
        hosts=job.hosts,
        chips_per_host=8,
        stages=16,
        step_s=step_s * 0.985,
        late=STRAGGLER,
        seed=405,
    )
    return job, ranks


def main() -> int:
    job, ranks = plans()
    fleet = simulate(job)
    at = int(np.searchsorted(fleet.tables["steps"]["start_ns"], ranks.start_ns))
    first = int(fleet.tables["steps"]["step"][at])
    seen = profile(RanksPlan(**{**vars(ranks), "first_step": first}))
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    tables = {**fleet.tables, "captures": seen["captures"], "collectives": seen["collectives"]}
    for name, columns in tables.items():
        write(name, columns)
    write("steps", seen["steps"], "steps-2")
    (FOLDER / "chipledger.json").write_text(
        json.dumps(
            {
                "name": "54 days on 16,384 accelerators",
                "kind": "simulated",
                "simulated": True,
                "chip": CHIP,
                "chips": CHIPS,
                "model": MODEL,
                "precision": "bf16",
                "parallelism": {"data": 128, "pipeline": 16, "tensor": 8},
                "usd_per_chip_hour": 2.0,
                "tags": {"reference": "simulated", "price": "assumed"},
                "note": "Simulated: 466 interruptions drawn from the published causes of the Llama 3 405B training.",
            },
            indent=1,
        )
        + "\n"
    )
    truth = {
        "what": "What the simulation did. `_ns` are integer nanoseconds since 1970-01-01 UTC.",
        "seed": job.seed,
        "lemons": [f"host {h}" for h in job.lemons],
        "straggler_rank": STRAGGLER,
        "causes": CAUSES,
        "interruptions": [dict(t) for t in fleet.truth],
    }
    TRUTH.write_text(_lines(truth))
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.name}: {path.stat().st_size:,} bytes", file=sys.stderr)
    return 0


def write(table: str, columns: dict[str, Any], stem: str | None = None, folder: Path = FOLDER) -> None:
    """One Parquet file of the columns that are given, small: whole numbers as differences from row to row."""
    batch = SCHEMAS[table].batch(columns).select(list(columns))
    whole = [f.name for f in batch.schema if pa.types.is_integer(f.type)]
    pq.write_table(
        pa.Table.from_batches([batch]),
        folder / f"{stem or table}.parquet",
        compression="zstd",
        compression_level=19,
        use_dictionary=[f.name for f in batch.schema if f.name not in whole],
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        write_statistics=False,
    )


def _lines(truth: dict[str, Any]) -> str:
    """JSON with one line for each interruption, so that a difference can be read."""
    rows = ",\n  ".join(json.dumps(row) for row in truth["interruptions"])
    head = json.dumps({**truth, "interruptions": []}, indent=1)
    return head.replace('"interruptions": []', f'"interruptions": [\n  {rows}\n ]') + "\n"


if __name__ == "__main__":
    sys.exit(main())
