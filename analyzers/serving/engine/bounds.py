"""What held requests back, sample by sample.

kv        requests wait while 90 % of the KV cache or more is in use, or while some are preempted: memory
seats     requests wait while as many run as may (`max_num_seqs`)
tokens    requests wait though there is memory and a seat: the token budget of an iteration, or the scheduler
unknown   requests wait, and the input does not tell which of these it was
idle      nothing runs and nothing waits; or no iteration ran, and nobody says whether requests waited
none      requests run and none waits
untold    the input does not say whether requests wait
"""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact

BOUNDS = ("kv", "seats", "tokens", "unknown", "none", "idle", "untold")
HELD = ("kv", "seats", "tokens", "unknown")  # those in which requests wait
FULL = 0.9
SEAT_FACTS = ("max_num_seqs", "max_running_requests")
BY_INPUT = "max_num_seqs_by_input"  # a fact: what each input says, where they say different things
PLATEAU = 0.2  # of the samples in which requests wait
FEWEST = 3
MOST_TOLD = 4
CLOSE_S, CLOSE_SAMPLES = 1.0, 2.0


def seats_of(rows: pd.DataFrame, facts: Facts, asked: int | None) -> tuple[float | None, str]:
    """(most requests that one replica may run, how that is known, as a sentence). A log that tells of its engines only
    together is one replica with the seats of all."""
    if asked is not None:
        return float(asked), f"At most {asked} requests may run at once, as was asked."
    for name in SEAT_FACTS:
        said = fact(facts, name)
        if isinstance(said, int | float) and said >= 1:
            engines = engines_together(rows, facts)
            if engines > 1:
                each = f"{said:,g} on each of {engines} engines ({name}), of which the log tells only together"
                return float(said * engines), f"At most {said * engines:,g} requests may run at once: {each}."
            return float(said), f"At most {said:g} requests may run at once ({name})."
    waits = rows[(rows["waiting"] > 0) & ~(rows["kv_usage"] >= FULL)]
    most = rows["running"].max()
    held = waits["running"] == most
    if len(waits) and held.sum() >= max(FEWEST, PLATEAU * len(waits)):
        return float(most), (
            f"{most:g} is taken for the most that may run: {held.sum():,} samples show just that many "
            "while others wait."
        )
    return None, "Nothing says how many requests may run at once."


def seats_of_each(
    rows: pd.DataFrame, facts: Facts, inputs: Mapping[str, Collection[str]]
) -> tuple[np.ndarray, str] | None:
    """(most requests that the replica of each row may run, NaN where no input of it says one number; how that is known,
    as a sentence); None where inputs of replicas do not differ in it, or a person says it. `inputs`: of each."""
    said = fact(facts, BY_INPUT)
    if not isinstance(said, dict) or facts[SEAT_FACTS[0]].basis == "declared":
        return None
    numbers = {replica: {said[name] for name in names if name in said} for replica, names in inputs.items()}
    engines = engines_together(rows, facts)
    known = {replica: float(next(iter(of)) * engines) for replica, of in numbers.items() if len(of) == 1}
    if not known:
        return None
    told = [f"{said[name]:,g} by {name}" for name in sorted(said)]
    how = ", ".join(told[:MOST_TOLD]) + (f" and {len(told) - MOST_TOLD:,} more" if len(told) > MOST_TOLD else "")
    sentence = f"How many requests may run at once differs, and counts for each replica as its log says: {how}."
    return rows["replica"].map(known).to_numpy(dtype=float), sentence


def engines_together(rows: pd.DataFrame, facts: Facts) -> int:
    """How many engines one sample is of. Samples that are of single engines have names for them."""
    engines = fact(facts, "engines_aggregated")
    return engines if isinstance(engines, int) and rows["replica"].nunique() == 1 else 1


def bounds(rows: pd.DataFrame, seats: float | np.ndarray | None, engines: int = 1) -> np.ndarray:
    """One word of BOUNDS for each sample. `seats`: of all, or of the replica of each. `engines`: how many one sample is
    of: of several one may be full while another has seats."""
    running, waiting = rows["running"].to_numpy(), rows["waiting"].to_numpy()
    usage, preempted = rows["kv_usage"].to_numpy(), rows["preempted"].to_numpy()
    word = np.full(len(rows), "untold", dtype=object)
    word[rows["pause"].to_numpy() & (running == 0) & np.isnan(waiting)] = "idle"
    word[(waiting == 0) & (running > 0)] = "none"
    word[(waiting == 0) & (running == 0)] = "idle"
    waits = waiting > 0
    word[waits] = "unknown"
    if seats is not None and engines == 1:
        word[waits & (usage < FULL) & (running < seats)] = "tokens"
    if seats is not None:
        word[waits & (running >= seats)] = "seats"
    word[(waits & (usage >= FULL)) | (preempted > 0)] = "kv"
    return word


def shares(words: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Share of the time of each bound; together 1."""
    whole = weight.sum()
    return {b: float(weight[words == b].sum() / whole) if whole else 0.0 for b in BOUNDS}


def stretches(t_s: np.ndarray, dt_s: np.ndarray, on: np.ndarray, amount: np.ndarray) -> pd.DataFrame:
    """Samples in which `on` holds, those close in time joined: start_s, end_s, amount (summed).

    Close: no more than a second between them, or no more than two usual samples. Samples are in order of time.
    """
    places = np.flatnonzero(on)
    if not len(places):
        return pd.DataFrame({"start_s": [], "end_s": [], "amount": []}, dtype=float)
    close = max(CLOSE_S, CLOSE_SAMPLES * float(np.median(dt_s)))
    first = np.concatenate(([True], np.diff(t_s[places]) - dt_s[places[1:]] > close))
    group = np.cumsum(first) - 1
    begins = places[first]
    ends = places[np.concatenate((first[1:], [True]))]
    summed = np.bincount(group, weights=np.nan_to_num(amount[places]))
    return pd.DataFrame({"start_s": t_s[begins] - dt_s[begins], "end_s": t_s[ends], "amount": summed})
