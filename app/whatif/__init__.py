"""What-if questions, about jobs that do not exist yet: one file each, listed once."""

from app.whatif import checkpoint
from app.whatif.base import WhatIf

WHATIFS: tuple[WhatIf, ...] = (checkpoint,)
