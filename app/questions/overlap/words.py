"""Computing, communication and idle time in words: the verdict, and the devices as a terminal prints them."""

from analyzers.device.overlap import OverlapResult
from app.questions.as_the_ledger import as_the_ledger
from app.words import Table, Verdict, headline, listed, sentence, short
from errors import format as fmt

MUCH = 0.05  # of the window: a share worth a sentence
UNEVEN = 0.1  # idle share of the idlest device over that of the median: worth naming it


def label(host: str, device: int, result: OverlapResult) -> str:
    """`host 0`, or `host 0/3` where a host has several devices."""
    return host if result.devices["host"].is_unique else f"{host}/{device}"


def verdict(result: OverlapResult) -> Verdict:
    """How much of the communication is hidden and what the rest costs, and what else keeps devices from computing,
    the largest first."""
    t = result.totals
    whole = "step time" if result.window == "steps" else "the time"
    window = t["window_s"] or 1.0
    waited, untold, fed, idle = (
        (t[name] or 0.0) / window
        for name in ("straggler_wait_s", "communication_or_wait_s", "input_wait_s", "device_idle_s")
    )
    exposed = (t["exposed_communication_s"] or 0.0) / window
    said: list[tuple[float, str]] = []
    doing = ((waited, "wait for other ranks"), (fed, "wait for input"), (idle, "are idle"))
    if losses := sorted(((s, what) for s, what in doing if s >= MUCH), key=lambda loss: -loss[0]):
        said.append((losses[0][0], f"Devices {_clauses(losses, whole)}."))
    if untold >= MUCH:
        what = "is communication or waiting for ranks: it is not known which"
        said.append((untold, f"{sentence(fmt.whole_share(untold))} of {whole} {what}."))
    if (copies := t["copies_share"] or 0.0) >= MUCH:
        said.append((copies, f"Copies under which nothing else runs take {fmt.whole_share(copies)} of {whole}."))
    sentences = [text for _, text in sorted(said, key=lambda s: -s[0])]
    larger = bool(said) and max(s for s, _ in said) > exposed
    sentences.insert(1 if larger else 0, _communication(t, whole))  # it is what the page is about
    if exposed > 0:
        sentences.append(f"The exposed communication is {fmt.number(t['exposed_communication_s'])} device-seconds.")
    if idle >= MUCH:
        sentences += _idlest(result)
    books = result.ledger
    if books is not None and waited + untold >= MUCH and books.exposed_communication + books.straggler_wait > 0:
        cut = f"HTA's exposed communication, {fmt.number(t['exposed_s'])} device-seconds, holds waiting"
        sentences.append(as_the_ledger(books, cut))
    return headline(*sentences)


def _clauses(losses: list[tuple[float, str]], whole: str) -> str:
    """`wait for input for 20 % of step time, are idle for 15 % and wait for other ranks for 10 %`."""
    said = [f"{what} for {fmt.whole_share(s)}{'' if n else f' of {whole}'}" for n, (s, what) in enumerate(losses)]
    return listed(said)


def _communication(t: dict, whole: str) -> str:
    if not t["communication_s"]:
        return f"No collective ran; devices compute for {fmt.whole_share(t['compute_share'] or 0)} of {whole}."
    hidden, exposed = t["overlap_share"] or 0, (t["exposed_communication_s"] or 0) / (t["window_s"] or 1)
    if (t["exposed_share"] or 0) <= 0:
        return "All communication is hidden behind computing."
    least = "at least " if t["communication_or_wait_s"] else ""  # some of the rest may be waiting
    cost = f"costs {least}{fmt.whole_share(exposed)} of {whole}"
    if not exposed:  # all of the rest is waiting, or not known to be any
        part = f"{fmt.whole_share(hidden)} of" if hidden > 0 else "no"
        return f"{sentence(part)} communication is hidden behind computing."
    if hidden <= 0:
        return f"No communication is hidden behind computing: it {cost}."
    return f"{sentence(fmt.whole_share(hidden))} of communication is hidden behind computing; the exposed rest {cost}."


def _idlest(result: OverlapResult) -> list[str]:
    """The device that is idle far more than the usual one, if there is one."""
    share = (result.devices["device_idle_s"] / result.devices["window_s"]).astype(float)
    if len(share) < 2 or share.max() - share.median() < UNEVEN:
        return []
    row = result.devices.loc[share.idxmax()]
    who = short(label(row["host"], row["device"], result))
    return [f"The device of {who} is idle the most, for {fmt.whole_share(share.max())}."]


def table(result: OverlapResult) -> Table:
    """Every device: seconds by kind, and how much of its communication is hidden."""
    columns = ("window_s", "compute_s", "communication_s", "overlapped_s", "exposed_s", "copies_s", "idle_s")
    return Table(
        ("device", "time", "computing", "communication", "overlapped", "exposed", "copies", "idle", "hidden"),
        tuple(
            (
                label(r["host"], r["device"], result),
                *(fmt.duration(r[c]) for c in columns),
                fmt.share(r["overlap_share"]) if r["communication_s"] else fmt.NO_VALUE,
            )
            for r in result.devices.to_dict("records")
        ),
        right=tuple(range(1, 9)),
    )
