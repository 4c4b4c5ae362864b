"""What-if questions, about jobs that do not exist yet: a package each, listed once."""

from typing import Any

from app.whatif.base import WhatIf
from app.whatif.case import CASE
from app.whatif.checkpoint import CHECKPOINT
from app.whatif.collective import COLLECTIVE
from app.whatif.cost import COST
from app.whatif.goodput import GOODPUT_PLAN
from app.whatif.placement import PLACEMENT
from app.whatif.scaling import SCALING
from app.whatif.serving import SERVING
from app.whatif.serving_plan import SERVING_PLAN
from app.whatif.speculation import SPECULATION
from app.whatif.storage import STORAGE
from app.whatif.training import TRAINING

WHATIFS: tuple[WhatIf[Any, Any], ...] = (
    CHECKPOINT,
    SERVING,
    SERVING_PLAN,
    CASE,
    SPECULATION,
    PLACEMENT,
    COLLECTIVE,
    TRAINING,
    COST,
    GOODPUT_PLAN,
    SCALING,
    STORAGE,
)
