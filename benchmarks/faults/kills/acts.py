"""What is done to a store, as command lines, each with what is to be found after it."""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.kills.state import BIN, LIBRARY, Found

MOST_RUNS = 14  # more are deleted again: each is read through after each kill


@dataclass(frozen=True)
class Act:
    """`after`: what is to be found under each key once it is done, None where nothing; all of it or nothing is."""

    kind: str
    argv: list[str]
    after: Mapping[str, Any]


def a_log(number: int) -> bytes:
    """A small log of training, like no other."""
    head = f"Config param model_name: llama2-7b\nConfig param run_name: job-{number}\nNum_devices: 32, shape (1)\n"
    step = "completed step: {}, seconds: {:.3f}, TFLOP/s/device: 100.0, Tokens/s/device: 900.0, loss: 3.0\n"
    return (head + "".join(step.format(n, 2 + number % 97 / 100) for n in range(4))).encode()


def fresh(name: str) -> dict[str, Any]:
    """What is found of a run of which nothing was said yet."""
    said = {"renames": 0, "tags": {}, "notes": [], "starred": False, "archived": False, "group": ["", ""], "facts": {}}
    return {"name": name, "at": LIBRARY, **said}


class Acts:
    """Acts on the runs that are there, each drawn by chance. `take` draws one of a kind, or None where there is no run
    for it, and keeps what is to be found then."""

    def __init__(self, found: Found, chance: random.Random, inputs: Path, number: int, mine: str = ""):
        self.state, self.ids = dict(found.state), dict(found.ids)
        self._chance, self._inputs, self._number, self._mine = chance, inputs, number, mine

    def take(self, kind: str) -> Act | None:
        act = _KINDS[kind](self)
        if act is not None:
            self.state.update(act.after)
        return act

    def _runs(self, at: str = LIBRARY) -> list[str]:
        return [k for k, v in self.state.items() if v and k.startswith("run:") and v["at"] == at and k in self.ids]

    def _run(self, at: str = LIBRARY) -> str | None:
        runs = self._runs(at)
        return self._chance.choice(runs) if runs else None

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _changed(
        self, kind: str, argv: Callable[[str, int], list[str]], change: Callable[[dict, int], dict]
    ) -> Act | None:
        key, n = self._run(), self._next()
        if key is None:
            return None
        before = self.state[key]
        return Act(kind, argv(self.ids[key], n), {key: before | change(before, n)})

    def ingest(self) -> Act:
        number = self._next()
        data = a_log(number)
        path = self._inputs / f"job-{number}.log"
        path.write_bytes(data)
        key = f"run:{hashlib.sha256(data).hexdigest()}"
        name = f"job {number}"
        return Act("ingest", ["ingest", str(path), f"--name={name}"], {key: fresh(name)})

    def again(self) -> Act | None:
        key = self._run()
        path = self._path(key)
        return (
            None
            if path is None or key is None
            else Act("read anew", ["ingest", "--again", str(path)], {key: self.state[key]})
        )

    def from_bin(self) -> Act | None:
        key = self._run(BIN)
        path = self._path(key)
        return (
            None
            if path is None or key is None
            else Act("ingest of a run in the bin", ["ingest", str(path)], {key: self.state[key] | {"at": LIBRARY}})
        )

    def _path(self, key: str | None) -> Any:
        for path in self._inputs.iterdir() if key else ():
            if f"run:{hashlib.sha256(path.read_bytes()).hexdigest()}" == key:
                return path
        return None

    def tag(self) -> Act | None:
        def argv(i: str, n: int) -> list[str]:
            return ["tag", i, f"a={n}", f"b={n}"]

        return self._changed("tag", argv, lambda v, n: {"tags": v["tags"] | {"a": str(n), "b": str(n)}})

    def note(self) -> Act | None:
        return self._changed(
            "note", lambda i, n: ["note", i, f"note {n}"], lambda v, n: {"notes": sorted([*v["notes"], f"note {n}"])}
        )

    def rename(self) -> Act | None:
        return self._changed(
            "rename",
            lambda i, n: ["rename", i, f"name {n}"],
            lambda v, n: {"name": f"name {n}", "renames": v["renames"] + 1},
        )

    def facts(self) -> Act | None:
        def argv(i: str, n: int) -> list[str]:
            return ["facts", i, f"chips={100 + n}", f"seq={128 + n}"]

        return self._changed("facts", argv, lambda v, n: {"facts": v["facts"] | {"chips": 100 + n, "seq": 128 + n}})

    def group(self) -> Act | None:
        return self._changed(
            "group", lambda i, n: ["group", i, f"p{n}/e{n}"], lambda v, n: {"group": [f"p{n}", f"e{n}"]}
        )

    def star(self) -> Act | None:
        """Two at once: both or none."""
        runs = self._runs()
        if len(runs) < 2:
            return None
        two = self._chance.sample(runs, 2)
        on = not self.state[two[0]]["starred"]
        argv = ["star", *(self.ids[k] for k in two), *([] if on else ["--off"])]
        return Act("star", argv, {k: self.state[k] | {"starred": on} for k in two})

    def delete(self) -> Act | None:
        key = self._run()
        return None if key is None else Act("delete", ["delete", self.ids[key]], {key: self.state[key] | {"at": BIN}})

    def restore(self) -> Act | None:
        key = self._run(BIN)
        return (
            None
            if key is None
            else Act("restore", ["restore", self.ids[key]], {key: self.state[key] | {"at": LIBRARY}})
        )

    def purge(self) -> Act | None:
        key = self._run(self._chance.choice((BIN, LIBRARY))) or self._run()
        return None if key is None else Act("purge", ["delete", "--now", self.ids[key]], {key: None})

    def baseline(self) -> Act | None:
        key, name = self._run(), f"{self._mine}main{self._chance.randrange(3)}"
        if key is None:
            return None
        now = self.state.get(f"baseline:{name}") or {"run_id": None, "moves": 0}
        act = "set" if now["run_id"] is None else self._chance.choice(("accept", "accept", "remove"))
        if act == "accept" and now["run_id"] == self.ids[key]:
            return None
        run_id = None if act == "remove" else self.ids[key]
        argv = ["baseline", act, name, *([run_id] if run_id else [])]
        return Act("baseline", argv, {f"baseline:{name}": {"run_id": run_id, "moves": now["moves"] + 1}})

    def derive(self) -> Act | None:
        """What it keeps may go at any time: only that it is whole is looked at."""
        key = self._run()
        return None if key is None else Act("answer kept on disk", ["derive", self.ids[key], f"key{self._next()}"], {})

    def follow(self) -> Act:
        name, n = f"job{self._chance.randrange(2)}", self._next()
        return Act("pointer of a live run", ["follow", name, str(n)], {f"live:{name}": n})

    def kinds(self) -> list[str]:
        """Those that can be drawn now, so that the store stays small."""
        if len(self._runs()) + len(self._runs(BIN)) > (MOST_RUNS // 3 if self._mine else MOST_RUNS):
            return ["purge"]
        return ["ingest"] if len(self._runs()) < (1 if self._mine else 3) else list(_KINDS)


_KINDS: dict[str, Callable[[Acts], Act | None]] = {
    "ingest": Acts.ingest,
    "again": Acts.again,
    "from_bin": Acts.from_bin,
    "tag": Acts.tag,
    "note": Acts.note,
    "rename": Acts.rename,
    "facts": Acts.facts,
    "group": Acts.group,
    "star": Acts.star,
    "delete": Acts.delete,
    "restore": Acts.restore,
    "purge": Acts.purge,
    "baseline": Acts.baseline,
    "derive": Acts.derive,
    "follow": Acts.follow,
}
