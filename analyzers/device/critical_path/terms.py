"""What the figures of `critical_path` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Critical path",
        "The chain of what had to end before what came next, walked backwards from the end of a step: through the "
        "device, the calls that launched, what the host did before them, and over collectives to the rank that came "
        "last. At each instant of the step one link of the chain is told.",
        formula="sum of its links = duration of the step",
        unit="s",
    ),
    Term(
        "On the path",
        "Time of an operation, or of a kind of work, that lies in the critical path. Only shortening what lies there "
        "ends a step earlier.",
        unit="s",
    ),
    Term(
        "Off the path",
        "Time of an operation that lies in no critical path: shortening it gives nothing while all else stays.",
        unit="s",
    ),
    Term(
        "Gain at most",
        "What ends sooner if an operation takes no time, all else as it was: low, where every known wait is replayed "
        "and the next longest path holds; high, all that it has on critical paths. Modelled.",
        unit="s",
    ),
    Term(
        "Held by a rank",
        "Time of all paths whose links are that rank's. The path of one rank's step goes on on another where a "
        "collective's last rank was that one. Told from durations: no clock is compared with another.",
        unit="s",
    ),
    Term(
        "Told by a rule",
        "Time of links of which the trace does not say what they waited for, so that a rule does. These rules "
        "stand with the answer.",
        unit="s",
    ),
)
