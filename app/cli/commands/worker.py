"""`chipledger worker`: works on the jobs of a store without a web server."""

import argparse
import asyncio
import signal

from app import registry_place
from app.options import add_flags, values
from app.serve import bounds
from app.workspace import workspace
from errors.numbers import Number
from errors.options import Option

NAME = "worker"
HELP = "read uploads and run the other jobs of a store, beside its servers or in their place"
AT_ONCE = Option("at_once", Number(1, 256, whole=True), 2, "how many inputs are read at the same time", local=True)
OPTIONS = (AT_ONCE, *bounds.OPTIONS, *registry_place.OPTIONS)
ENDS = (signal.SIGTERM, signal.SIGINT)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    told = values(args, OPTIONS)
    registry_place.settle(*(told.pop(o.name) for o in registry_place.OPTIONS))
    asyncio.run(work(args.store, bounds.Working(**told)))


async def work(store: str | None, how: bounds.Working) -> None:
    """Until a signal says to end. Raises InputError where the store cannot be used."""
    from app.serve.jobs import Jobs

    place = workspace(store)
    jobs, ends = Jobs(place, **how.of_jobs()), asyncio.Event()
    for number in ENDS:
        asyncio.get_running_loop().add_signal_handler(number, ends.set)
    jobs.open()
    print(f"Working on the jobs of {place.store.root}", flush=True)
    await ends.wait()
    await jobs.close()
