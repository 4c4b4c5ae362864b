"""What is asked of padding."""

from analyzers.flops import padding
from analyzers.flops.padding import PaddingResult
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

NOTHING = MemoryTables({})


def asked(facts: dict, tables=NOTHING, **options) -> PaddingResult:
    return padding.analyze(tables, facts_of(facts), parse_options(padding.OPTIONS, options))
