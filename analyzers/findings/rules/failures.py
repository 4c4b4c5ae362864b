"""Requests that were not answered: those that a load test counts as failed, and those that a server broke off."""

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Told
from analyzers.serving.ended import ended
from analyzers.serving.latency import ServingResult
from errors import format as fmt

CAUSE, QUESTION = "failed_requests", "latency"
FEWEST = 3  # requests: fewer are told where none was answered
MANY = 0.05  # of the requests: people break off some of what they asked for
COST = 0.2  # by how much of itself what they took may be off
LINE = 200  # characters of an error that are told


def find(seen: Seen) -> Told:
    """Requests that failed, where they are many. What they took is told where passes are recorded."""
    result = seen.answer(QUESTION, ServingResult)
    every = [] if result is None else [x for x in result.loads if x.requests and x.failed is not None]
    if result is not None and every:
        failed, requests = sum(x.failed or 0 for x in every), sum(x.requests or 0 for x in every)
        if failed < requests and (failed < FEWEST or failed < MANY * requests):
            return _few(failed, requests)
        most = result.failures.iloc[0] if len(result.failures) else None
        text = "" if most is None else str(most["error"])[:LINE]
        return _told(seen, _title(failed, requests), failed, requests, 0.9, text)
    counted = ended(seen.tables)
    if counted is None or not counted.requests:
        return Told()
    failed, requests = counted.broken_off, counted.requests
    if failed < FEWEST or failed < MANY * requests:
        return _few(failed, requests)
    share = fmt.whole_share(failed / requests)
    title = (
        f"{share[0].upper()}{share[1:]} of the requests were broken off or failed, {failed:,} of "
        f"{requests:,} by the server's own counters, as where clients give up before the answer is whole."
    )
    return _told(seen, title, failed, requests, 0.7, "")


def _title(failed: int, requests: int) -> str:
    if failed == requests:
        return f"None of {fmt.count(requests, 'request')} was answered."
    share = fmt.whole_share(failed / requests)
    return f"{share[0].upper()}{share[1:]} of the requests failed: {failed:,} of {requests:,} were not answered."


def _few(failed: int, requests: int) -> Told:
    why = f"{failed:,} of {requests:,} requests failed" if failed else f"none of {requests:,} requests failed"
    return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))


def _told(seen: Seen, title: str, failed: int, requests: int, sure: float, error: str) -> Told:
    cost = seen.amount(CAUSE)
    finding = Finding(
        cause=CAUSE,
        title=title,
        gain=Band.within(cost, COST) if cost >= seen.least else None,
        draws={CAUSE: cost} if cost >= seen.least else {},
        question=QUESTION,
        confidence=sure,
        evidence=(
            Evidence("requests that failed", float(failed), "", QUESTION),
            Evidence("of the requests", failed / requests, "1", QUESTION),
            *((Evidence("the most frequent error", error, "", QUESTION),) if error else ()),
        ),
    )
    return Told((finding,))


RULE = Rule(name="failures", causes=(CAUSE,), find=find)
