"""Prefill and decode on machines of their own, with the key-value cache sent from the one to the other.

A request is read in the prefill pool, which gives its first token; its cache then goes over the network, layer after
layer of nothing overlapped, and the decode pool generates the rest, the first that a client sees among it where answers
begin with a header. The pools are the same engine, simulated one after the other; in the decode pool the cache that
comes with a request takes room of its own.

    balance: prefill replicas by decode replicas = (time to read a prompt) (batch) / (decode step x tokens generated)
    transfer: cache of the prompt / (chips of a group, which hold it, x link, one way)
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from catalog.inference import kv_bytes
from errors import QuestionError
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.estimate import estimate
from simulators.serving.machine import scaleup_bytes_per_s
from simulators.serving.memory import max_sequences
from simulators.serving.objectives import Capacity, Objectives, Shape, capacity
from simulators.serving.setup import Setup
from simulators.serving.step import decode_s, prefill_s, step_model
from simulators.serving.traffic import Traffic


@dataclass(frozen=True)
class Pools:
    """`prefill` and `decode`: the two pools, each with its replicas; `link_bytes_per_s`: of one chip, one way."""

    prefill: Setup
    decode: Setup
    link_bytes_per_s: float
    link: str

    @property
    def chips(self) -> int:
        return self.prefill.chips + self.decode.chips

    @property
    def name(self) -> str:
        return f"{self.prefill.replicas}P{self.decode.replicas}D"

    def transfer_s(self, tokens: float) -> float:
        """Time to send the cache of a prompt."""
        sent = kv_bytes(self.prefill.model, tokens, self.prefill.kv_precision)
        lanes = min(self.prefill.split, self.decode.split)
        return sent / (lanes * self.link_bytes_per_s)


@dataclass(frozen=True)
class Comparison:
    """The same chips in one pool and in two. `splits`: each way to split with what it bears. `gain`: rate of the best
    split by that of one pool."""

    aggregate: Capacity
    best: Pools | None
    disaggregated: Capacity | None
    splits: tuple[tuple[str, Capacity], ...]
    transfer_s: float
    balance: float

    @property
    def gain(self) -> float | None:
        if self.disaggregated is None or not self.aggregate.rate_per_s:
            return None
        return self.disaggregated.rate_per_s / self.aggregate.rate_per_s


def balance(setup: Setup, shape: Shape, batch: int, efficiency: Efficiency = TYPICAL) -> float:
    """Prefill replicas for each decode replica of `batch` sequences, so that neither waits for the other."""
    model = step_model(setup, efficiency)
    read = prefill_s(model, shape.prompt, shape.cached, setup.token_budget)
    step = decode_s(model, batch, shape.prompt + shape.output / 2)
    return prefill_by_decode(read, batch, step, shape.output)


def prefill_by_decode(prompt_s: float, batch: int, step_s: float, output: int) -> float:
    """The same from times: (time to read a prompt) (batch) / (decode step x tokens generated)."""
    return prompt_s * batch / (step_s * output)


def pools(setup: Setup, prefill: int, decode: int) -> Pools:
    """`prefill` and `decode` replicas of the kind that `setup` is. Raises QuestionError where no link is known."""
    if prefill < 1 or decode < 1:
        raise QuestionError(f"{prefill} prefill and {decode} decode replicas", expected="at least one of each")
    each, chip = setup.replica_chips, setup.chip
    domain = chip.value("scaleup_domain_chips") or 1
    both, network = chip.value("scaleup_bidi_bytes_per_s"), chip.value("dcn_oneway_bytes_per_s")
    if both and (chips := (prefill + decode) * each) <= domain:
        rate, link = scaleup_bytes_per_s(chip, chips), "the chips' own links"
    else:
        rate, link = network or chip.value("link_oneway_bytes_per_s"), "the data-centre network"
    if not rate:
        raise QuestionError(f"the catalogue does not know over what {chip.name} would send a cache")
    return Pools(
        replace(setup, replicas=prefill, chips=prefill * each),
        replace(setup, replicas=decode, chips=decode * each),
        float(rate),
        link,
    )


def serve(
    split: Pools, traffic: Traffic, efficiency: Efficiency = TYPICAL, *, routing: str = "round_robin", seed: int = 0
) -> pd.DataFrame:
    """One row a request: arrival_s, first_token_s, last_token_s, ttft_s, tpot_s, e2e_s, in order of arrival. `routing`:
    within each pool, as for `simulate`."""
    ones = np.ones_like(traffic.output)
    reads = replace(traffic, output=ones)
    read = simulate(split.prefill, reads, efficiency, routing=routing, seed=seed, record=False).requests
    first, output = read["first_token_s"].to_numpy(), traffic.output
    last = first.copy()
    sent = (
        first
        + np.array([split.transfer_s(p) for p in np.unique(traffic.prompt)])[
            np.searchsorted(np.unique(traffic.prompt), traffic.prompt)
        ]
    )
    more = np.flatnonzero((output > 1) & np.isfinite(sent))
    if len(more):
        order = more[np.argsort(sent[more], kind="stable")]
        after = Traffic(
            sent[order] - sent[order[0]],
            traffic.prompt[order],
            output[order] - 1,
            traffic.prompt[order] - 1,
            traffic.name,
            own_cache=True,
        )
        hidden = split.decode.silent_tokens
        decode = replace(split.decode, silent_tokens=max(hidden - 1, 0))
        made = simulate(decode, after, efficiency, routing=routing, seed=seed, record=False).requests
        last[order] = made["last_token_s"].to_numpy() + sent[order[0]]
        if hidden:  # the first that a client sees is one of the decode pool's
            first = first.copy()
            first[order] = made["first_token_s"].to_numpy() + sent[order[0]]
    rows = pd.DataFrame({"arrival_s": traffic.arrival_s, "first_token_s": first, "last_token_s": last})
    rows["ttft_s"], rows["e2e_s"] = rows["first_token_s"] - rows["arrival_s"], rows["last_token_s"] - rows["arrival_s"]
    rows["tpot_s"] = np.where(output > 1, (last - first) / np.maximum(output - 1, 1), np.nan)
    return rows


def compare(
    setup: Setup, shape: Shape, objectives: Objectives, efficiency: Efficiency = TYPICAL, most: int = 6
) -> Comparison:
    """`setup` (all its replicas in one pool) against its replicas split in two, at most `most` ways around balance.

    Both are judged as the planner judges one replica: by long trials, and by the drift of their queues."""
    near = estimate(setup, shape, objectives, efficiency).rate_per_s * setup.replicas
    whole = capacity(lambda t: simulate(setup, t, efficiency, record=False).requests, shape, objectives, near or None)
    batch = max(1, min(setup.max_sequences * setup.groups, max_sequences(setup, shape.prompt + shape.output)))
    even = balance(setup, shape, batch, efficiency)
    wanted = setup.replicas * even / (1 + even)
    splits, best = [], None
    counts = sorted(range(1, setup.replicas), key=lambda p: abs(p - wanted))[:most]
    for count in sorted(counts):
        split = pools(setup, count, setup.replicas - count)
        bears = capacity(
            lambda t, split=split: serve(split, t, efficiency), shape, objectives, whole.rate_per_s or None
        )
        splits.append((split.name, bears))
        if best is None or bears.rate_per_s > best[1].rate_per_s:
            best = split, bears
    first = best[0] if best else None
    sent = first.transfer_s(shape.prompt) if first else 0.0
    return Comparison(whole, first, best[1] if best else None, tuple(splits), sent, even)
