"""Which pictures of a question's page a report draws: those that show its answer without being asked for a view."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.questions.collectives import figure as collectives
from app.questions.compiled import figure as compiled
from app.questions.engine import figure as engine
from app.questions.goodput import figure as goodput
from app.questions.input import figure as fetching
from app.questions.interruptions import stops
from app.questions.latency import figure as latency
from app.questions.launches import figure as launches
from app.questions.load import figure as load
from app.questions.memory import figure as memory
from app.questions.mfu import figure as mfu
from app.questions.objectives import figure as objectives
from app.questions.operations import figure as operations
from app.questions.overlap import figure as overlap
from app.questions.padding import figure as padding
from app.questions.roofline import figure as roofline
from app.questions.steps import figure as steps
from app.questions.stragglers import figure as stragglers
from app.reporting.document import Picture
from app.reporting.gathering import Answered

Drawn = go.Figure | None


@dataclass(frozen=True)
class Drawing:
    """A picture of a question's page. `says`: the sentence before it; `draw`: of the answer and the run's name."""

    question: str
    says: str
    draw: Callable[[Any, str], Drawn]


DRAWINGS = (  # what stands first is drawn first
    Drawing("steps", "How long each step took.", lambda r, n: steps.steps(r, steps.best_scale(r))),
    Drawing(
        "interruptions",
        "Attempts over time. A mark above its row is an interruption, its shape the family of its cause.",
        lambda r, n: stops.strip(r),
    ),
    Drawing("stragglers", "How much later than its peers did each rank arrive?", lambda r, n: stragglers.lateness(r)),
    Drawing(
        "stragglers",
        "Who made the others wait? With 95 % intervals.",
        lambda r, n: stragglers.blame(r),
    ),
    Drawing("overlap", "What share of each device's time went where.", lambda r, n: overlap.devices(r)),
    Drawing("launches", "What share of its time each device was idle, by reason.", lambda r, n: launches.devices(r)),
    Drawing(
        "input",
        "How long each step took, and how much of it was a fetch or waiting for one.",
        lambda r, n: fetching.strip(r),
    ),
    Drawing(
        "padding",
        "Each matrix product as wide as its part of the matrix unit's FLOPs, as high as what of it is useful.",
        lambda r, n: padding.shares(r),
    ),
    Drawing("roofline", "Operations by FLOPs a byte and FLOP/s; area is time.", lambda r, n: roofline.roofline(r)),
    Drawing("operations", "Which operations took the time.", lambda r, n: operations.bars(r)),
    Drawing(
        "collectives",
        "Which axis of the mesh the collectives took.",
        lambda r, n: collectives.time_by_axis(r),
    ),
    Drawing("mfu", "Model FLOPs utilisation of each step.", lambda r, n: mfu.over_steps(r)),
    Drawing("goodput", "Badput by cause, the largest first.", lambda r, n: goodput.bars(r, None)),
    Drawing("compiled", "What the least time of a step is made of.", lambda r, n: compiled.least([(n, r)])),
    Drawing(
        "memory",
        "What fills a device, against its limit.",
        lambda r, n: memory.fill({"": r}) if r.parts_bytes else None,
    ),
    Drawing("latency", "Time to first token, requests in order of it.", lambda r, n: latency.ttft_split(r)),
    Drawing(
        "latency",
        "Where a curve crosses the dashed lines is its median and its p99.",
        lambda r, n: latency.distributions(r),
    ),
    Drawing("load", "Requests asked for against requests answered.", lambda r, n: load.curve([(n, r)])),
    Drawing("objectives", "Requests in time, or missed for exactly one cause.", lambda r, n: objectives.misses(r)),
    Drawing("engine", "What the engine ran and queued over time.", lambda r, n: engine.timeline(r)),
)


def pictures(told: Answered, name: str) -> Iterator[Picture]:
    """Of an answer; none where it has nothing to draw. `name`: that of the run."""
    for one in DRAWINGS:
        if told.result is not None and one.question == told.question.name:
            figure = one.draw(told.result, name)
            if figure is not None and figure.data:
                yield Picture(figure, one.says, str(told.question.verdict(told.result)))
