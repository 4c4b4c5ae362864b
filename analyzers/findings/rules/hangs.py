"""Steps that hung and went on: what they took beyond a usual one, as the ledger enters it.

No start of the job follows, so that no stop tells of it; nor is it a pace of steps.
"""

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Told, Where
from analyzers.time.job_past import steps_taken
from errors import format as fmt

CAUSE, QUESTION = "hang", "steps"
SPREAD = 0.05  # of what a step took: by how much a usual one may differ
SHOWN = 5  # steps that are named


def find(seen: Seen) -> Told:
    amount = seen.amount(CAUSE)
    if not amount:
        return Told()  # whether a stop was one, the stops tell
    rows = steps_taken(seen.tables, seen.facts).rows
    hung = rows[rows["hung_ns"] > 0]
    if amount < seen.least or not len(hung):
        why = f"what steps that hung took beyond a usual one is {fmt.share(amount / seen.whole)} of the chip time"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    usual_s = float((hung["dur_ns"].astype(float) - hung["hung_ns"]).median()) / 1e9
    longest_s = float(hung["dur_ns"].max()) / 1e9
    numbers = tuple(int(step) for step in hung["step"].head(SHOWN))
    which = f"Step {numbers[0]:,} hung" if len(hung) == 1 else f"{len(hung):,} steps hung"
    most = "it took" if len(hung) == 1 else f"the first was step {numbers[0]:,}, the longest took"
    return Told(
        (
            Finding(
                cause=CAUSE,
                title=f"{which}, and training went on: {most} {fmt.duration(longest_s)}, where a usual one takes "
                f"{fmt.duration(usual_s)}.",
                gain=Band(amount * (1 - SPREAD), amount, amount),
                draws={CAUSE: amount},
                question=QUESTION,
                confidence=0.85,
                where=Where(steps=numbers),
                evidence=(
                    Evidence("steps that hung", float(len(hung)), "", QUESTION),
                    Evidence("the longest", longest_s, "s", QUESTION),
                    Evidence("a usual step", usual_s, "s", QUESTION),
                ),
            ),
        )
    )


RULE = Rule(name="hangs", causes=(CAUSE,), find=find)
