"""One slow link, a network that is slow as a whole, and more that is sent than the layout needs.

Rates are of the transfer alone, after the last rank had come, and a network's are its quickest: of hosts that are busy
with something else some messages are slow, of a slow network all are. One link is slow where its group takes several
times as long as others do for the same. A network is slow as a whole where it is slower than any that chips are joined
by, or than it was itself in quiet steps (Stragglers tells that).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import fact
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.carried import carried
from analyzers.findings.parts import step_parts
from analyzers.findings.rules.host import MARK
from analyzers.findings.rules.pace import grown
from analyzers.ranks.stragglers import StragglersResult
from analyzers.ranks.waits import COMPARED, waits
from errors import format as fmt
from runs.tables import frame

QUESTION = "collectives"
EXCESS = "excess_collectives"
CAUSES = ("slow_link", "slow_network", EXCESS)
ANY = "any network that chips are joined by"
TIMES = 3.0  # as long as other groups: a link that is as much slower is slow
QUICK_THERE, SLOW_OTHERS = 0.1, 0.75
"""Quantiles: what is quick there must be slower than what is slow elsewhere, or busy hosts may be why."""
MOST_OPERATIONS = 2 / 3  # of those that a group shares with others: of many, one is slow somewhere by chance
FEW = 4  # executions in a group: fewer tell nothing of it
SLOWEST_BYTES_PER_S = 0.05e9  # half of gigabit Ethernet: no network that chips are joined by sends less
LARGE_BYTES = 1 << 20  # a message from which on its rate is the network's
LATENCY_S = 3e-3  # of a small message: beyond any network within a building
SMALL_BYTES = 64 << 10
BUSIER = 2.0  # times what slower messages cost: where steps grow by more than that, they do so by what hosts do
WIDER = 1.5  # times what profiled steps show: others hold as much
WHERE = ("exposed_communication", "straggler_wait", "unattributed")
"""Accounts that slow collectives lie in."""
WIDTH = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2}
TWICE = 1.5  # times what gradients need: more that is reduced serves another end


@dataclass(frozen=True)
class Sent:
    """`rows`: one per execution of a collective on a rank: group, kind, bytes, step, moved_s."""

    rows: pd.DataFrame


def find(seen: Seen) -> Told:
    sent = _sent(seen)
    if not len(sent.rows):
        why = "no profile shows collectives of all ranks of a group"
        return Told(not_told=(NotTold(CAUSES, why, "profiles of all ranks, taken at the same time"),))
    link, network = _link(seen, sent), _network(seen, sent)
    said = [link or _no_link(seen, sent), network or _no_network(seen, sent), _excess(seen, sent)]
    if link is not None and network is not None:
        said.remove(network)  # of which the link is a part, and may be all
    return Told(
        tuple(one for one in said if isinstance(one, Finding)),
        tuple(one for one in said if isinstance(one, RuledOut)),
        tuple(one for one in said if isinstance(one, NotTold)),
    )


def _no_link(seen: Seen, sent: Sent) -> RuledOut | NotTold:
    """Why no link is slow; of ranks that all talk in one group none is known to be slower than another."""
    often = sent.rows.groupby(["op", "group"]).size() >= FEW
    if int(often.groupby(level="op").sum().max()) < 2:
        why = "no two groups of ranks often do the same, so that none can be held against another"
        return NotTold(("slow_link",), why, "")
    slow = "a group is slower, and that costs little" if slow_groups(sent.rows, seen.chips) else ""
    return RuledOut("slow_link", slow or "groups of ranks that do the same are about as quick", QUESTION)


def _no_network(seen: Seen, sent: Sent) -> RuledOut | NotTold:
    if (cost := _network_cost(seen)) is not None:
        busy = grown(seen) > BUSIER * cost
        why = "hosts do more and more besides, which holds up messages too" if busy else "it is slow, and costs little"
        return RuledOut("slow_network", why, QUESTION)
    if (slow := slow_whole(sent.rows)) is not None:
        return RuledOut("slow_network", f"{slow} {ANY}, and that costs little", QUESTION)
    known = sent.rows["bytes"].dropna()
    if max(int((known >= LARGE_BYTES).sum()), int((known <= SMALL_BYTES).sum())) < FEW:
        why = "too few messages are known to be large or small enough to judge a network by"
        return NotTold(("slow_network",), why, "longer profiles of all ranks")
    why = "the quickest tenth of all messages is as quick as a network's"
    if slow_whole(sent.rows, 0.5):
        why += ": hosts hold up the rest, busy with others"
    return RuledOut("slow_network", why, QUESTION)


def _sent(seen: Seen) -> Sent:
    if not seen.tables.rows("collectives"):
        return Sent(pd.DataFrame())
    rows = waits(seen.tables).rows
    rows = rows[(rows["reason"] == COMPARED) & rows["matched"]] if len(rows) else rows
    if not len(rows):
        return Sent(pd.DataFrame())
    table = frame(seen.tables, "collectives", ["op", "group", "kind", "bytes", "dtype"]).dropna(subset=["bytes"])
    dtypes = table.assign(op=table["op"].astype(str)).drop_duplicates("op").set_index("op")["dtype"].astype(str)
    sizes = (
        table.assign(key=table["group"].astype(str) + " " + table["op"].astype(str)).groupby("key")["bytes"].median()
    )
    keys = rows["group"].astype(str) + " " + rows["op"].astype(str)
    return Sent(
        pd.DataFrame(
            {
                "group": rows["group"].astype(str).to_numpy(),
                "op": rows["op"].astype(str).to_numpy(),
                "kind": rows["kind"].astype(str).to_numpy(),
                "dtype": rows["op"].astype(str).map(dtypes).to_numpy(),
                "session": rows["session"].to_numpy(),
                "step": rows["step"].to_numpy(),
                "bytes": sizes.reindex(keys).to_numpy(dtype=float),
                "moved_s": (rows["end_ns"] - rows["start_ns"] - rows["wait_ns"]).to_numpy(dtype=float) / 1e9,
            }
        )
    )


def _of_all_steps(seen: Seen, sent: Sent, amount: float, devices: str = "", in_each: bool = False) -> float:
    """What compared collectives show, in all kept steps: those of a capture's first step are not compared, as it is not
    known when their ranks came."""
    steps = sent.rows.loc[sent.rows["step"] >= 0, "step"].nunique()
    profiled = int(step_parts(seen.tables, seen.facts).seen.sum())
    whole = amount * max(profiled / steps, 1.0) if steps else amount
    return carried(seen, whole, devices=devices, in_each=in_each).likely


def slow_groups(rows: pd.DataFrame, chips: int) -> dict[str, list[tuple[float, float, float, str]]]:
    """Groups that take several times as long as others for the same operations, for most of those that they share with
    others; of each operation (excess in chip-seconds, seconds elsewhere, seconds there, kind)."""
    slow: dict[str, list[tuple[float, float, float, str]]] = {}
    compared: Counter[str] = Counter()
    for _, same in rows.groupby("op"):
        by_group = same.groupby("group")["moved_s"].agg(["median", "size"])
        by_group = by_group[by_group["size"] >= FEW]
        if len(by_group) < 2:
            continue
        compared.update(by_group.index.astype(str))
        group = str(by_group["median"].idxmax())
        usual, there = float(by_group["median"].drop(group).median()), float(by_group["median"].max())
        mine = same[same["group"] == group]
        excess = float((mine["moved_s"] - usual).clip(lower=0).sum()) / (group.count(",") + 1) * chips
        others = float(same.loc[same["group"] != group, "moved_s"].quantile(SLOW_OTHERS))
        if there > TIMES * usual and float(mine["moved_s"].quantile(QUICK_THERE)) > others:
            slow.setdefault(group, []).append((excess, usual, there, str(mine["kind"].iloc[0])))
    return {group: found for group, found in slow.items() if len(found) >= MOST_OPERATIONS * compared[group]}


def _link(seen: Seen, sent: Sent) -> Finding | None:
    """The slow group that costs the most."""
    slow = slow_groups(sent.rows, seen.chips)
    if not slow:
        return None
    group, found = max(slow.items(), key=lambda entry: sum(e for e, *_ in entry[1]))
    likely = _of_all_steps(seen, sent, sum(e for e, *_ in found))
    if likely < seen.least:
        return None
    _, usual, there, kind = max(found)
    ranks = tuple(int(r) if r.isdigit() else r for r in group.split(","))
    pair = ((ranks[0], ranks[1]),) if len(ranks) == 2 else ()
    who = " and ".join(str(r) for r in ranks) if len(ranks) == 2 else group
    return Finding(
        cause="slow_link",
        title=f"Between ranks {who} one {kind} takes {fmt.duration(there)}; others take {fmt.duration(usual)} for the "
        "same.",
        gain=Band(likely * 0.8, likely, likely * 1.15),
        draws=seen.drawn(likely, *WHERE),
        question=QUESTION,
        confidence=0.85,
        where=Where(ranks=() if pair else ranks, links=pair),
        evidence=(
            Evidence("there, median", there, "s", QUESTION),
            Evidence("elsewhere, median", usual, "s", QUESTION),
        ),
    )


def _network(seen: Seen, sent: Sent) -> Finding | None:
    """A network that is slower than any that chips are joined by, or than in its own quiet steps."""
    found, cost = seen.answer("stragglers", StragglersResult), _network_cost(seen)
    if found is not None and cost is not None:
        if grown(seen) > BUSIER * cost:
            return None  # hosts that do more and more besides hold up messages too
        return _whole(seen, cost, f"Collectives are slow though no rank is late: {found.why}.", None)
    known = sent.rows.dropna(subset=["bytes"])
    slow = slow_whole(sent.rows)
    if slow is None:
        return None
    usual = known["bytes"] / (10 * SLOWEST_BYTES_PER_S)
    ranks = known["group"].str.count(",") + 1
    likely = (
        float(((known["moved_s"] - usual).clip(lower=0) / ranks).sum())
        * seen.chips
        / max(len(known["group"].unique()) / max(_disjoint(known), 1), 1)
    )
    shown = min(likely, seen.amount("exposed_communication", "straggler_wait"))
    likely = _of_all_steps(seen, sent, shown, devices="exposed_communication_s")
    steps = known.loc[known["moved_s"] > 0.5 * known["moved_s"].median(), "step"]
    place = Steps(int(steps.min()), int(steps.max())) if len(steps) and steps.min() >= 0 else None
    if likely > WIDER * shown:
        place = None  # steps that no profile saw are as slow
    return _whole(seen, likely, f"All collectives are slow: {slow} {ANY}.", place)


def _network_cost(seen: Seen) -> float | None:
    """Chip-seconds, where the network is found to be slow in some steps."""
    found = seen.answer("stragglers", StragglersResult)
    return found.cost_chip_seconds or None if found is not None and found.verdict == "network" else None


def slow_whole(rows: pd.DataFrame, quickest: float = QUICK_THERE) -> str | None:
    """What is said of messages of which even the quickest tenth is slower than any network's. Where those are quick
    and others are not, the network can do it: hosts that are busy with something else hold up a part of them."""
    known = rows.dropna(subset=["bytes"])
    large, small = known[known["bytes"] >= LARGE_BYTES], known[known["bytes"] <= SMALL_BYTES]
    if len(large) >= FEW:
        rates = large["bytes"] / large["moved_s"].clip(lower=1e-9)
        if (quick := float(rates.quantile(1 - quickest))) < SLOWEST_BYTES_PER_S:
            of, rate = fmt.size(float(large["bytes"].median())), fmt.size(float(rates.median()))
            return f"messages of {of} move at {rate}/s, the quickest tenth of them at {fmt.size(quick)}/s, less than"
    if len(small) >= FEW and (quick := float(small["moved_s"].quantile(quickest))) > LATENCY_S:
        of, takes = fmt.size(float(small["bytes"].median())), fmt.duration(float(small["moved_s"].median()))
        return f"a message of {of} takes {takes}, the quickest tenth of them {fmt.duration(quick)}, more than"
    return None


def _disjoint(known: pd.DataFrame) -> int:
    """Groups that hold different ranks at the same time: they move at once, and count once."""
    ranks: set[str] = set()
    count = 0
    for group in known["group"].unique():
        mine = set(group.split(","))
        if not mine & ranks:
            count += 1
            ranks |= mine
    return count


def _whole(seen: Seen, likely: float, title: str, place: Steps | None) -> Finding | None:
    if likely < seen.least:
        return None
    return Finding(
        cause="slow_network",
        title=title,
        gain=Band(likely * 0.8, likely, likely * 1.1),
        draws=seen.drawn(likely, *WHERE),
        question=QUESTION,
        confidence=0.75,
        where=Where(steps=place),
        evidence=(Evidence("beyond a usual transfer", likely, "chip-seconds", QUESTION),),
    )


def _excess(seen: Seen, sent: Sent) -> Finding | RuledOut | NotTold:
    """More reduced in a step than gradients need: several times the parameters, once and in their own format."""
    parameters, layout = fact(seen.facts, "parameters"), fact(seen.facts, "parallelism")
    if not parameters or not isinstance(layout, dict):
        add = "a log that prints how many parameters are trained, and `parallelism` in chipledger.json"
        return NotTold((EXCESS,), "nothing tells how much its gradients need", add)
    if any(n > 1 for a, n in layout.items() if a != "data"):
        # other axes reduce activations, of which the amount depends on the model's layers
        return NotTold((EXCESS,), "axes beside data reduce what no input tells the need of", "")
    rows = sent.rows[sent.rows["kind"].isin(("all-reduce", "reduce-scatter"))].dropna(subset=["bytes"])
    if not len(rows):
        return RuledOut(EXCESS, "no reduction was seen on all ranks of a group", QUESTION)
    steps = len(rows.loc[rows["step"] >= 0, ["session", "step"]].drop_duplicates())
    if not steps:
        return NotTold((EXCESS,), "no step is marked in the profile, so that what one reduces is not known", MARK)
    need = float(parameters) * WIDTH.get(str(rows["dtype"].mode().iloc[0]), 4)
    by_op = rows.groupby("op").agg(bytes=("bytes", "median"), moved_s=("moved_s", "sum"), n=("step", "size"))
    per_step = by_op["bytes"] * by_op["n"] / steps / max(seen.chips, 1)
    if len(by_op) < 2:  # the gradients: of more parameters than were stated, perhaps
        return RuledOut(EXCESS, "one operation reduces all of a step", QUESTION)
    reduced = f"{fmt.size(float(per_step.sum()))} are reduced in a step, and gradients need {fmt.size(need)}"
    if float(per_step.sum()) < TWICE * need:
        return RuledOut(EXCESS, reduced, QUESTION)
    order = np.argsort(np.abs(np.log(by_op["bytes"].to_numpy() / need)))
    beyond = by_op.iloc[order[1:]]
    likely = _of_all_steps(seen, sent, float(beyond["moved_s"].sum()), in_each=True)
    if likely < seen.least:
        return RuledOut(EXCESS, f"{reduced}, but the rest takes little of the chip time", QUESTION)
    names = ", ".join(str(n) for n in beyond.sort_values("moved_s", ascending=False).index[:3])
    return Finding(
        cause=EXCESS,
        title=f"{fmt.size(float(per_step.sum()))} are reduced in a step; gradients need {fmt.size(need)}. Beyond them: "
        f"{names}.",
        gain=Band(likely * 0.6, likely, likely * 1.2),
        draws=seen.drawn(likely, *WHERE),
        question=QUESTION,
        confidence=0.8,
        where=Where(operations=tuple(str(n) for n in beyond.index[:5])),
        evidence=(
            Evidence("reduced in a step", float(per_step.sum()), "bytes", QUESTION),
            Evidence("gradients need", need, "bytes", QUESTION),
        ),
    )


RULE = Rule(name="network", causes=CAUSES, find=find)
