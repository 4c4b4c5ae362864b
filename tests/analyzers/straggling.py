"""What is asked of ranks made for a test."""

from analyzers.ranks import stragglers
from runs.run import facts_of
from runs.tables import MemoryTables


def ask(world, facts=None, **options):
    tables = world if isinstance(world, MemoryTables) else world.tables()
    return stragglers.analyze(tables, facts_of(facts or {}), options)


def named(result):
    return result.verdict, list(result.ranks["rank"])
