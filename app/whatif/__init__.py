"""What-if questions, about jobs that do not exist yet: one file each, listed once."""

from app.whatif import case, checkpoint, collective, placement, serving, serving_plan, speculation
from app.whatif.base import WhatIf

WHATIFS: tuple[WhatIf, ...] = (checkpoint, serving, serving_plan, case, speculation, placement, collective)
