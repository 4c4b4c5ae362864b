"""Hangs in words: who is named and why, and every rank as a terminal prints it."""

from analyzers.ranks.blocked import BlockedResult, ranks_listed
from analyzers.ranks.blocked.causes import (
    DIFFER,
    DOUBTS,
    IN_FLIGHT,
    LIKELY,
    NOT_ENTERED,
    NOT_KNOWN,
    RING,
    UNSEEN,
    Cause,
)
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt

MOST = 3  # causes that a verdict tells one by one
ROLE_WORDS = {
    "named": "did not enter",
    "unseen": "completions unseen",
    "silent": "not known",
    "waits": "waits",
    "free": "nothing open",
}


def operation(cause: Cause) -> str:
    """`all_to_all number 20,947 of EXPERT_MODEL_PARALLEL_GROUP`; of sends and receives the number is a rank's own."""
    number = "" if cause.number is None or cause.number < 0 else f" number {cause.number:,}"
    return f"{short(cause.call or 'an operation')}{number} of {short(cause.label or 'an unnamed group')}"


def verdict(result: BlockedResult) -> Verdict:
    """Who hangs the job and how that is known; that nothing hangs; or that it cannot be told, and what would tell."""
    if not result.hung:
        return _nothing(result)
    if not result.causes:
        return headline(
            "Operations are open, and the dumps do not tell which ranks they wait for: nobody can be named."
        )
    # What all entered is worth a sentence where nobody is named: else it may well be behind those.
    shown = [cause for cause in result.causes if not result.named or cause.kind != IN_FLIGHT]
    said = [text for n, cause in enumerate(shown[:MOST]) for text in _said(cause, n, result)]
    if (more := len(result.causes) - len(shown[:MOST])) > 0:
        said.append(f"There {'is 1 further cause' if more == 1 else f'are {more:,} further causes'}, in the table.")
    return headline(_named(result), *said, *_held(result))


def _named(result: BlockedResult) -> str:
    """All that are named, before why the first of them is: what follows may not find room."""
    apart = sum({*cause.ranks} <= {*result.named} for cause in result.causes)
    return f"Named as reasons: {ranks_listed(result.named)}." if apart > 1 and len(result.named) > 1 else ""


def _held(result: BlockedResult) -> list[str]:
    """How many more wait for those that are named, directly or over others."""
    accused = [cause for cause in result.causes if cause.kind == NOT_ENTERED]
    known = {rank for cause in result.causes for rank in (*cause.ranks, *cause.waiting)}
    more = len({rank for cause in accused for rank in cause.held} - known)
    by = ranks_listed(sorted({rank for cause in accused for rank in cause.ranks}))
    return [f"{fmt.count(more, 'further rank')} of {len(result.ranks):,} may be held up by {by}."] if more else []


def _nothing(result: BlockedResult) -> Verdict:
    silent = _silent(result)
    if not result.dumps:
        return headline(f"It cannot be told what hangs: {ranks_listed(silent)} left nothing that tells of operations.")
    text = f"Nothing hangs in what {fmt.count(result.dumps, 'dump')} tell of: every operation had completed."
    return headline(text, f"Of {ranks_listed(silent)} nothing is known." if silent else "")


def _silent(result: BlockedResult) -> list[int]:
    return result.ranks.loc[result.ranks["reason"].notna(), "rank"].astype(int).tolist()


def _said(cause: Cause, place: int, result: BlockedResult) -> list[str]:
    """What one cause is, a sentence each, `place` being that among the causes."""
    who = ranks_listed(cause.ranks)
    if cause.kind == NOT_ENTERED:
        return _not_entered(cause, who)
    if cause.kind == UNSEEN:
        also = " as well" if place else ""
        text = f"{sentence(who)} is likely at fault{also}: {_unseen(cause)}, from {operation(cause)} on."
        return [text, "Its device, its link or its driver stopped."]
    if cause.kind == DIFFER:
        return _differ(cause, who)
    if cause.kind == RING:
        return [
            f"{sentence(who)} wait for each other in a ring, which begins at {operation(cause)}: they enqueued "
            "operations in different orders, or one of them stopped.",
            "No rank can be named.",
        ]
    if cause.kind == NOT_KNOWN:
        return [_not_known(cause, who, {*_silent(result)})]
    return _in_flight(cause, who)


def _not_entered(cause: Cause, who: str) -> list[str]:
    likely = "likely " if cause.sure == LIKELY else ""
    text = f"{sentence(who)} {likely}did not enter {operation(cause)}, for which {_wait(cause)}"
    text += f": {DOUBTS[cause.doubt]}." if cause.doubt else ", and waits for nobody itself."
    return [text, f"{sentence(_unseen(cause))}, so its device may be the reason."] if cause.unseen else [text]


def _wait(cause: Cause) -> str:
    return f"{ranks_listed(cause.waiting)} {'waits' if len(cause.waiting) == 1 else 'wait'}"


def _unseen(cause: Cause) -> str:
    return f"it has not completed {fmt.count(cause.unseen, 'operation')} that its peers completed with it"


def _differ(cause: Cause, who: str) -> list[str]:
    what = {"kind": "kind", "element type": "element type", "size": "size"}[cause.differs]
    if len(cause.ranks) == 1:
        return [
            f"{sentence(who)} likely calls otherwise than its peers: {operation(cause)} differs in {what} there.",
            "One of them skipped or added an operation before.",
        ]
    return [
        f"{sentence(who)} call different operations under one number: {operation(cause)} differs in {what}.",
        "Which of them is wrong, the dumps do not tell.",
    ]


def _not_known(cause: Cause, who: str, silent: set[int]) -> str:
    if not cause.ranks:
        return f"It cannot be told who is missing from {operation(cause)}: no dump lists the ranks of its group."
    text = f"It cannot be told whether {who} entered {operation(cause)}, for which {_wait(cause)}:"
    if {*cause.ranks} <= silent:
        return f"{text} {'its dump' if len(cause.ranks) == 1 else 'their dumps'} would tell."
    return f"{text} dumps of all ranks that list completed operations too would tell."


def _in_flight(cause: Cause, who: str) -> list[str]:
    return [
        f"Nobody is missing from {operation(cause)}: {who} entered it, and none completed it.",
        "The network, a device or a driver is left as the reason, or the job still ran when it was dumped.",
    ]


def table(result: BlockedResult) -> Table:
    """Every rank: those that are named first, then those of which nothing is known."""
    order = list(ROLE_WORDS)
    rows = sorted(result.ranks.to_dict("records"), key=lambda r: (order.index(r["role"]), r["rank"]))
    return Table(
        ("rank", "what it does", "open", "unseen", "first open operation", "waits for"),
        tuple(
            (
                str(r["rank"]),
                ROLE_WORDS[r["role"]],
                "unknown" if r["unfinished"] is None or r["unfinished"] != r["unfinished"] else f"{r['unfinished']:,}",
                f"{r['unseen']:,}" if r["unseen"] else "",
                r["reason"] or _first(r),
                ", ".join(map(str, r["waits_for"])),
            )
            for r in rows
        ),
        right=(0, 2, 3),
    )


def _first(row: dict) -> str:
    if not row["call"]:
        return ""
    number = "" if row["number"] is None or row["number"] != row["number"] else f" {row['number']:,}"
    return f"{row['call']}{number} of {row['description'] or row['group']}"
