"""The process that `ahead` gives files to: it reads one after the other and leaves what they hold in files.

Standard input: a line of JSON a file, `path`, `name`, `index`, `collector` (its name) and `out`. Standard output: a
line of JSON after each item, `read` (bytes of the file that were read so far), and at the end of each file `done`. What
is written at `out` is one pickled item after another, and last None, or what was wrong with the file as the words of an
InputError. Nobody but the process that started this one writes or reads there.
"""

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from collectors import collector
from collectors.ingesting.items import items_of
from collectors.ingesting.unpack import SafeSource
from errors import InputError


def main() -> None:
    """Reads files until there are no more."""
    tell = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        _read(asked, tell)
        print(json.dumps({"done": True}), file=tell, flush=True)


def _read(asked: dict[str, Any], tell: Any) -> None:
    source = SafeSource(Path(asked["path"]), asked["name"], asked["index"])
    end: dict[str, str] | None = None
    with Path(asked["out"]).open("wb") as out:
        try:
            for item in items_of(source, collector(asked["collector"])):
                pickle.dump(item, out, protocol=5)
                print(json.dumps({"read": source.bytes_read()}), file=tell, flush=True)
        except InputError as e:
            end = {"what": e.what, "where": e.where, "expected": e.expected, "advice": e.advice}
        pickle.dump(end, out, protocol=5)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError, MemoryError):  # told by the process that started this one, if it lives
        os._exit(1)
