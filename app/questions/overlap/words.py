"""Computing, communication and idle time in words: the verdict, and the devices as a terminal prints them."""

from analyzers.device.overlap import OverlapResult
from app.questions.as_the_ledger import as_the_ledger
from app.words import Table
from errors import format as fmt

MUCH = 0.05  # of the window: a share worth a sentence
UNEVEN = 0.1  # idle share of the idlest device over that of the median: worth naming it


def label(host: str, device: int, result: OverlapResult) -> str:
    """`host 0`, or `host 0/3` where a host has several devices."""
    return host if result.devices["host"].is_unique else f"{host}/{device}"


def verdict(result: OverlapResult) -> str:
    """How much of the communication is hidden and what the rest costs, and what else keeps devices from computing,
    the largest first."""
    t = result.totals
    whole = "step time" if result.window == "steps" else "the time"
    window = t["window_s"] or 1.0
    waited, untold, fed, idle = (
        (t[name] or 0.0) / window
        for name in ("straggler_wait_s", "communication_or_wait_s", "input_wait_s", "device_idle_s")
    )
    said = [((t["exposed_communication_s"] or 0.0) / window, _communication(t, whole))]
    if waited >= MUCH:
        said.append((waited, f"Devices wait for other ranks for {fmt.whole_share(waited)} of {whole}."))
    if untold >= MUCH:
        what = "is communication or waiting for ranks: it is not known which"
        said.append((untold, f"{_first(fmt.whole_share(untold))} of {whole} {what}."))
    if fed >= MUCH:
        said.append((fed, f"Devices wait for input for {fmt.whole_share(fed)} of {whole}."))
    if (copies := t["copies_share"] or 0.0) >= MUCH:
        said.append((copies, f"Copies under which nothing else runs take {fmt.whole_share(copies)} of {whole}."))
    if idle >= MUCH:
        said.append((idle, f"Devices are idle for {fmt.whole_share(idle)} of {whole}{_idlest(result)}."))
    sentences = [sentence for _, sentence in sorted(said, key=lambda s: -s[0])]
    if result.ledger is not None and waited + untold >= MUCH:
        cut = f"HTA's exposed communication, {fmt.number(t['exposed_s'])} device-seconds, holds waiting"
        sentences.append(as_the_ledger(result.ledger, cut))
    return " ".join(sentences)


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def _communication(t: dict, whole: str) -> str:
    if not t["communication_s"]:
        return f"No collective ran; devices compute for {fmt.whole_share(t['compute_share'] or 0)} of {whole}."
    hidden, exposed = t["overlap_share"] or 0, (t["exposed_communication_s"] or 0) / (t["window_s"] or 1)
    if (t["exposed_share"] or 0) <= 0:
        return "All communication is hidden behind computing."
    cost = f"costs {fmt.whole_share(exposed)} of {whole} ({fmt.number(t['exposed_communication_s'])} device-seconds)"
    if hidden <= 0:
        return f"No communication is hidden behind computing: it {cost}."
    part = fmt.whole_share(hidden)
    return f"{part[0].upper()}{part[1:]} of communication is hidden behind computing; the exposed rest {cost}."


def _idlest(result: OverlapResult) -> str:
    """The device that is idle far more than the usual one, if there is one."""
    share = (result.devices["device_idle_s"] / result.devices["window_s"]).astype(float)
    if len(share) < 2 or share.max() - share.median() < UNEVEN:
        return ""
    row = result.devices.loc[share.idxmax()]
    return f", {label(row['host'], row['device'], result)} for {fmt.whole_share(share.max())}"


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
