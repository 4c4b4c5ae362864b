"""What a fleet's figures mean."""

from analyzers.fleet.budget import LEAST_WEEKS, NEAR, WEEKS
from catalog.terms import Term

SOURCE = "ML Productivity Goodput: arXiv 2502.06982"
TERMS = (
    Term(
        "Chip time of a fleet",
        "Every chip-second that the ledgers of the counted runs account for, each instant of a job once. Runs that are "
        "simulated, compiled, damaged, or of an unknown number of chips are not counted; how many they are is told.",
        unit="chip-hours",
    ),
    Term(
        "Counted once",
        "A run whose input files are all among those of another is not counted. Of an instant of which several runs of "
        "one job, on the same chips and as many, tell, the one that tells of the longest time counts. Attempts after "
        "one another are all counted; a snapshot of a live run that a newer one replaced is not.",
    ),
    Term(
        "Runtime goodput",
        "Of the chip time of runs that tell their steps, the share in steps that were kept; of serving, in answers.",
        formula="kept steps / chip time held",
        unit="1",
        source=SOURCE,
    ),
    Term(
        "Program goodput",
        "Of the chip time in kept steps, the share that the model's FLOPs take at the chips' peak. The source takes "
        "the FLOPs of the compiler's graph, which hold others than the model's own: ours is usually the smaller.",
        formula="useful maths / kept steps",
        unit="1",
        source=SOURCE,
    ),
    Term(
        "Scheduling goodput",
        "Of the chip time that the fleet has, the share that jobs held. Runs alone cannot tell it: it takes the number "
        "of chips of the fleet. Chips that were held by jobs of which no run is stored count as not held.",
        formula="chip time held / (chips x time)",
        unit="1",
        source=SOURCE,
    ),
    Term(
        "Runtime x program goodput",
        "The product of the two, over runs that tell both: useful maths over the chip time held. With scheduling "
        "goodput it is the ML productivity goodput.",
        formula="useful maths / chip time held",
        unit="1",
        source=SOURCE,
    ),
    Term(
        "MFU of a fleet",
        "The MFU of each run, weighted by its chip time in kept steps; runs whose MFU is not known have no weight.",
        formula="sum(MFU x time in kept steps) / sum(time in kept steps)",
        unit="1",
    ),
    Term(
        "Time of an account in a period",
        "What is lost between steps lies where the job's calendar has it. What is inside kept steps is shared out as "
        "the kept steps are, since no input tells it hour by hour. Inside an hour time is even. Without a calendar it "
        "is even over the run.",
        unit="chip-hours",
    ),
    Term(
        "Kept FLOPs per developer",
        "The model's FLOPs in kept steps of runs that tell them and name an owner, over the number of different owners "
        "of these runs. An owner is the first of the tags owner, who, user and developer.",
        formula="model FLOPs / owners",
        unit="FLOPs",
    ),
    Term(
        "Month's end of a budget",
        "Spent so far and the rest of the month at the least, the mean and the greatest rate of the last "
        f"{WEEKS} whole weeks, at least {LEAST_WEEKS}: a range of what was, and no forecast. From {NEAR:.0%} on a "
        "budget is near its end.",
        formula="spent + rate x time left",
        unit="USD or chip-hours",
    ),
)
