"""A fleet worked out the plain way, run by run and entry by entry, as the definitions say it: what the columns are held
to. Slow, and meant to be read."""

from collections import Counter, defaultdict

from analyzers.fleet import LEFT_OUT
from analyzers.fleet.base import NOT_TOLD, key_of
from analyzers.fleet.causes import loss_of
from analyzers.fleet.periods import periods
from analyzers.fleet.spent import heading_of

S = 1_000_000_000
EVER = 2**63 - 1


def plain(runs, asked):
    """What `FleetResult.to_dict` tells, with all causes and runs; None where the chips cannot have been held."""
    since, until = -EVER if asked.since_ns is None else asked.since_ns, asked.until_ns or EVER
    why = {r.run_id: why_not(r, asked) for r in runs}
    may = [r for r in runs if not why[r.run_id]]
    why |= {r.run_id: "told_again" for r in may if counts_in_its_place(r, may) is not r}
    mine = [r for r in may if not why[r.run_id]]
    taken = told_elsewhere(mine)
    parts, untaken, even = [], Counter(), 0.0  # (run, path, start or None, end, chip-seconds)
    for run in mine:
        for entry in run.spent.entries:
            for start, end, share in pieces(run.spent, entry.path):
                if start is None:
                    parts.append((run, entry.path, None, None, entry.chip_s))
                    continue
                a, b = max(start, since), min(end, until)
                if a >= b:
                    continue
                amount = entry.chip_s * share * (b - a) / (end - start)
                untaken[run.run_id] += amount
                told = sum(max(min(end, y) - max(start, x), 0) for x, y in taken.get(run.run_id, ()))
                amount *= 1 - told / (end - start)
                if amount > 0:
                    parts.append((run, entry.path, a, b, amount))
                    even += amount if run.spent.cells is None else 0.0
    held = defaultdict(float)
    for run, *_, amount in parts:
        held[run.run_id] += amount
    for run in mine:
        if not held[run.run_id]:
            there = any(a < until and b > since for a, b in run.spent.held)
            why[run.run_id] = "told_elsewhere" if there and run.run_id in taken else "outside"
    counted = [r for r in mine if held[r.run_id]]
    times = [(a, b) for _, _, a, b, _ in parts if a is not None]
    first, last = (min(a for a, _ in times), max(b for _, b in times)) if times else (None, None)
    told = periods(first, last - 1, asked.every, asked.zone) if times else ()
    trend = [
        (
            p,
            [
                (r, path, s * (min(b, p.end_ns) - max(a, p.start_ns)) / (b - a))
                for r, path, a, b, s in parts
                if a is not None and a < p.end_ns and b > p.start_ns
            ],
        )
        for p in told
    ]
    amounts = [(r, path, s) for r, path, _, _, s in parts]
    total, undated = summed(amounts), summed([(r, p, s) for r, p, a, _, s in parts if a is None])
    keys = dict.fromkeys(key_of(r, asked.by) for r in counted)
    groups = [{"key": k, **summed([x for x in amounts if key_of(x[0], asked.by) == k])} for k in keys]
    left_out, partly = Counter(w for w in why.values() if w), [r for r in counted if r.run_id in taken]
    owned = [x for x in amounts if x[0].owner]
    owners = {r.owner for r in counted if r.owner and r.spent.useful_flops is not None}
    flops = summed(owned)["model_flops"]
    capacity = scheduling(asked, first, last, total["chip_seconds"] - undated["chip_seconds"])
    if capacity is not None and capacity > 1 + 1e-6:
        return None
    shown = sorted(counted, key=lambda r: (-held[r.run_id], r.run_id))
    return {
        "by": asked.by,
        "every": asked.every,
        "zone": str(asked.zone),
        "since_ns": asked.since_ns,
        "until_ns": asked.until_ns,
        "simulated": asked.simulated,
        "first_ns": first,
        "last_ns": last,
        "total": total,
        "scheduling_goodput": capacity,
        "capacity_chips": asked.capacity_chips,
        "groups": sorted(groups, key=lambda g: (-g["chip_hours"], g["key"])),
        "trend": [{"period": p.name, "start_ns": p.start_ns, "end_ns": p.end_ns, **summed(mine)} for p, mine in trend],
        "undated": undated if undated["runs"] else None,
        "causes": lost(amounts, counted),
        "developers": len(owners),
        "runs_without_owner": sum(not r.owner for r in counted),
        "model_flops_per_developer": flops / len(owners) if flops is not None and owners else None,
        "runs": [
            {
                "run_id": r.run_id,
                "name": r.name,
                "chip_hours": held[r.run_id] / 3600,
                "counted_share": held[r.run_id] / r.spent.chip_s,
                "usd": None if r.spent.usd is None else r.spent.usd * held[r.run_id] / r.spent.chip_s,
            }
            for r in shown
        ],
        "other_runs": {"runs": 0, "chip_hours": 0},
        "left_out": {name: left_out[name] for name in LEFT_OUT if left_out[name]},
        "counted_in_part": {
            "runs": len(partly),
            "left_out_chip_hours": sum(untaken[r.run_id] - held[r.run_id] for r in partly) / 3600,
        },
        "spread_evenly_chip_hours": even / 3600,
        "counted_of_which": {name: sum(getattr(r, name) for r in counted) for name in ("archived", "demo", "live")},
    }


def why_not(run, asked):
    timed, spent = asked.since_ns is not None or asked.until_ns is not None, run.spent
    told = {
        "damaged": run.damaged,
        "compiled": run.kind == "compiled",
        "simulated" if run.simulated else "measured": run.simulated != asked.simulated,
        "pending": run.pending,
        "no_ledger": spent is None or not spent.entries,
        "chips_unknown": spent is not None and not spent.chips_known,
        "undated": timed and not (spent and spent.held),
    }
    return next((name for name, holds in told.items() if holds), "")


def counts_in_its_place(run, among):
    files = set(run.spent.inputs)
    wider = [r for r in among if r is run or (files and files <= set(r.spent.inputs))]
    return max(wider, key=lambda r: (len(set(r.spent.inputs)), r.created_ns, r.run_id))


def told_elsewhere(runs):
    """Of each run the disjoint stretches of time that longer runs of its job tell, where it tells of some of them."""
    jobs, told = defaultdict(list), {}
    for run in (r for r in runs if r.job and r.spent.held):
        jobs[run.job, run.chip, run.chips].append(run)
    for mine in jobs.values():
        taken = []
        for run in sorted(mine, key=lambda r: (-sum(b - a for a, b in r.spent.held), -r.created_ns, r.run_id)):
            if any(a < y and b > x for a, b in run.spent.held for x, y in taken):
                told[run.run_id] = list(taken)
            for a, b in run.spent.held:
                apart = [(x, y) for x, y in taken if y < a or x > b]
                meets = [(x, y) for x, y in taken if not (y < a or x > b)] + [(a, b)]
                taken = [*apart, (min(x for x, _ in meets), max(y for _, y in meets))]
    return told


def pieces(spent, path):
    """(start, end, share) of where an account's time lies; without times where that is not told."""
    if not spent.held:
        return [(None, None, 1.0)]
    cells = spent.cells.of.get(heading_of(path), ()) if spent.cells else ()
    if not any(cells):
        whole = sum(b - a for a, b in spent.held)
        return [(a, b, (b - a) / whole) for a, b in spent.held]
    width, begin = spent.cells.each_s * S, spent.cells.start_s * S
    first, last = spent.held[0][0], spent.held[-1][1]
    return [
        (max(begin + i * width, first), min(begin + (i + 1) * width, last), us / sum(cells))
        for i, us in enumerate(cells)
        if us
    ]


def summed(amounts):
    """`Sum.to_dict` of (run, path, chip-seconds)."""
    accounts, runs = defaultdict(float), {r.run_id: r for r, _, s in amounts if s > 0}
    held, kept, useful = (dict.fromkeys(runs, 0.0) for _ in range(3))
    for run, path, s in amounts:
        accounts[path] += s
        held[run.run_id] += s
        kept[run.run_id] += s if path.partition("/")[0] in ("productive", "served") else 0.0
        useful[run.run_id] += s if path.endswith("useful_maths") else 0.0
    whole, all_runs = sum(accounts.values()), runs.values()

    def of(amount, holds=lambda r: True):
        return sum(amount[r.run_id] for r in all_runs if holds(r))

    def runtime(r):
        return r.goodput is not None

    def both(r):
        return runtime(r) and r.spent.useful_told

    priced = [r for r in all_runs if r.spent.usd is not None]
    weight = {r.run_id: kept[r.run_id] for r in all_runs if r.mfu is not None}
    tell = [r for r in all_runs if r.spent.useful_flops is not None]
    in_steps = {
        r.run_id: sum(e.chip_s for e in r.spent.entries if e.path.partition("/")[0] in ("productive", "served"))
        for r in tell
    }
    flops = sum(r.spent.useful_flops * kept[r.run_id] / in_steps[r.run_id] for r in tell if in_steps[r.run_id])
    return {
        "runs": len(runs),
        "chip_hours": whole / 3600,
        "chip_seconds": whole,
        "usd": sum(r.spent.usd * held[r.run_id] / r.spent.chip_s for r in priced) if priced else None,
        "unpriced_runs": len(runs) - len(priced),
        "unpriced_chip_hours": of(held, lambda r: r.spent.usd is None) / 3600,
        "runtime_goodput": over(of(kept, runtime), of(held, runtime)),
        "runtime_goodput_told_share": over(of(held, runtime), whole),
        "program_goodput": over(of(useful, both), of(kept, both)),
        "program_goodput_is_at_least": any(r.spent.useful_least and both(r) for r in all_runs),
        "runtime_x_program_goodput": over(of(useful, both), of(held, both)),
        "runtime_x_program_told_share": over(of(held, both), whole),
        "mfu": over(sum(runs[i].mfu * w for i, w in weight.items()), sum(weight.values())),
        "mfu_weight_chip_hours": sum(weight.values()) / 3600,
        "model_flops": flops if tell else None,
        "model_flops_told_share": over(sum(held[r.run_id] for r in tell), whole),
        "accounts_chip_seconds": dict(accounts),
    }


def over(part, whole):
    return part / whole if whole > 0 else None


def lost(amounts, runs):
    """All causes, the largest first; of equal owners or runs the one that is listed first."""
    by = defaultdict(lambda: defaultdict(float))
    for run, path, s in amounts:
        if loss_of(path):
            by[loss_of(path)][run.run_id] += s
    found = []
    for account in sorted(by):
        mine, owners = [r for r in runs if r.run_id in by[account]], Counter()
        for run in mine:
            owners[run.owner or run.team or NOT_TOLD] += by[account][run.run_id]
        worst, priced = max(mine, key=lambda r: by[account][r.run_id]), [r for r in mine if r.spent.usd is not None]
        usd = sum(r.spent.usd * by[account][r.run_id] / r.spent.chip_s for r in priced)
        found.append(
            {
                "account": account,
                "chip_hours": sum(by[account].values()) / 3600,
                "usd": usd if priced else None,
                "runs": len(mine),
                "owners": [{"owner": name, "chip_hours": s / 3600} for name, s in owners.most_common(3)],
                "largest_run": {
                    "run_id": worst.run_id,
                    "name": worst.name,
                    "chip_hours": by[account][worst.run_id] / 3600,
                },
            }
        )
    return sorted(found, key=lambda c: -c["chip_hours"])


def scheduling(asked, first, last, held):
    if asked.capacity_chips is None or first is None:
        return None
    since, until = first if asked.since_ns is None else asked.since_ns, asked.until_ns or last
    return held / (asked.capacity_chips * (until - since) / S)
