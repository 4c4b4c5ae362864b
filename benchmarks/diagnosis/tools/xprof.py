"""What XProf's own rules say of the cases of a set: `python -m benchmarks.diagnosis.tools.xprof SET --out FILE`.

XProf reads profiles alone: nothing is asked of logs, of what happened between captures, of serving or of fleets. Its
diagnosis is the sentences of its overview page and the rules of its smart suggestions; which causes a sentence accuses
stands in `RULES`. Each capture is read with the profiles of all ranks, as its own page does, in a process of its own:
its reader is compiled and may end the process that calls it. Of a profile of CPUs XProf knows no device: there most of
its sentences cannot be said.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.faults import FAULTS
from errors import ChipledgerError, InputError

LIMIT_S = 120

READ = """
import json, sys
from xprof.convert import raw_to_tool_data
out = {}
for tool in ("overview_page", "smart_suggestion"):
    data, _ = raw_to_tool_data.xspace_to_tool_data(sys.argv[1:], tool, {"use_saved_result": False})
    out[tool] = json.loads(data) if data else None
json.dump(out, sys.stdout)
"""


def _family(*families: str) -> tuple[str, ...]:
    return tuple(fault.cause for fault in FAULTS if fault.family in families)


@dataclass(frozen=True)
class Rule:
    """A sentence of XProf.

    says     how it is recognised; the group `percent`, where it has one, is the share of the step time that it blames
    names    the one cause that it names; None: it blames one of several
    accuses  every cause that would make it true
    """

    says: re.Pattern[str]
    names: str | None
    accuses: tuple[str, ...]


def _rule(says: str, names: str | None, accuses: tuple[str, ...]) -> Rule:
    return Rule(re.compile(says), names, accuses)


PERCENT = r"(?P<percent>\d+(?:\.\d+)?) ?% of the total step time"
COLLECTIVES = _family("network")
PYTHON = (*_family("hosts"), "tiny_operations", "evaluation", "metrics_sync", "profiler_inside")
"""What can be meant by "Python execution": all that a host does between two programs."""

# XProf has one word for all input: a loader that stalls now and then is named as a slow one.
RULES: tuple[Rule, ...] = (
    _rule(rf"(HIGHLY|MODERATELY) input-bound because {PERCENT}", "slow_loader", _family("input")),
    _rule(rf"POTENTIALLY input-bound because {PERCENT}", None, (*_family("input"), *PYTHON)),
    _rule(rf"COULD be input-bound because {PERCENT}", None, (*_family("input", "hosts"), *COLLECTIVES)),
    _rule(rf"{PERCENT} sampled is spent on 'All Others' time\. This could be", "python_overhead", PYTHON),
    _rule(rf"{PERCENT} sampled is spent on 'Kernel Launch'", "tiny_operations", ("tiny_operations", "python_overhead")),
    _rule(rf"{PERCENT} sampled is due to host overhead", "python_overhead", PYTHON),
    _rule(rf"{PERCENT} sampled is spent on 'Device Collective", None, COLLECTIVES),
    _rule(rf"{PERCENT} sampled is spent on actual AllReduce", None, COLLECTIVES),
    _rule(rf"{PERCENT} sampled is spent on synchronization", None, (*_family("hosts", "input"), *COLLECTIVES)),
    _rule(rf"{PERCENT} sampled is spent on output", "device_to_host", ("device_to_host",)),
    _rule(r"BarrierCores", None, (*_family("hosts", "input"), *COLLECTIVES)),
)


@dataclass(frozen=True)
class Capture:
    """What XProf says of one capture: its sentences, and the time that all its steps took on all ranks, seconds."""

    sentences: tuple[str, ...]
    chip_seconds: float


def captures(case: Path) -> Iterator[Capture]:
    """Each capture of a case's folder, by XProf. Raises InputError where XProf cannot read one."""
    for window in sorted((case / "profiles").glob("attempt_*/window_*")):
        with tempfile.TemporaryDirectory(prefix="diagnosis-xprof-") as scratch:
            paths = []
            for packed in sorted(window.glob("process_*/*.xplane.pb.gz")):
                # one name for each rank: XProf takes profiles of one name for one host
                paths.append(Path(scratch) / f"{packed.parent.name}.xplane.pb")
                paths[-1].write_bytes(gzip.decompress(packed.read_bytes()))
            yield _read(paths, window)


def _read(paths: list[Path], window: Path) -> Capture:
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise InputError(f"XProf ended with {done.returncode}", where=str(window), advice=done.stderr.strip()[-300:])
    return understood(json.loads(done.stdout), len(paths))


def understood(told: dict[str, Any], ranks: int) -> Capture:
    """The sentences of an overview page and its suggestions, with the time of their steps."""
    sentences, chip_seconds = [], 0.0
    for part in told["overview_page"] or ():
        said = part.get("p", {})
        sentences += [v for k, v in said.items() if k == "statement" or k.endswith("_statement")]
        if "steptime_ms_average" in said:
            chip_seconds = float(said["steptime_ms_average"]) / 1e3 * len(part["rows"]) * ranks
    for suggestion in (told["smart_suggestion"] or {}).get("suggestions", ()):
        sentences.append(f"{suggestion.get('ruleName', '')}: {suggestion.get('suggestionText', '')}")
    return Capture(tuple(s for s in sentences if s), chip_seconds)


def answer(found: list[Capture]) -> dict[str, Any]:
    """What the captures of one case accuse, the largest first; the time blamed in several captures is added up."""
    blamed: dict[Rule, tuple[float, str]] = {}
    for capture in found:
        for sentence in capture.sentences:
            for rule in RULES:
                if hit := rule.says.search(sentence):
                    share = float(hit["percent"]) / 100 if "percent" in rule.says.groupindex else 0.0
                    before, _ = blamed.get(rule, (0.0, ""))
                    blamed[rule] = (before + share * capture.chip_seconds, sentence)
    ordered = sorted(blamed.items(), key=lambda item: -item[1][0])
    named: dict[str, float] = {}
    for rule, (seconds, _) in ordered:
        if rule.names:
            named.setdefault(rule.names, seconds)  # two sentences that name one cause may mean the same time
    able = (
        {c for rule in RULES for c in (*rule.accuses, rule.names) if c} if any(c.chip_seconds for c in found) else set()
    )
    return {
        "causes": [
            {"cause": cause, "chip_seconds": {"low": None, "likely": seconds, "high": None}}
            for cause, seconds in named.items()
        ],
        "headlines": [
            {"says": said, "accuses": list(rule.accuses), "chip_seconds": seconds}
            for rule, (seconds, said) in ordered
            if not rule.names
        ],
        # what no rule of its speaks of, or of which it had no profile
        "not_told": [fault.cause for fault in FAULTS if fault.cause not in able],
    }


def answers(folder: Path, tell: Callable[[str], None] = print) -> dict[str, Any]:
    """XProf's answer to every case of a set; of one that it cannot read it tells nothing."""
    said = {}
    for case in sorted(p for p in (folder / "cases").iterdir() if p.is_dir() and not p.name.startswith(".")):
        try:
            said[case.name] = answer(list(captures(case)))
        except (InputError, subprocess.TimeoutExpired) as error:
            tell(f"{case.name}: {error}")
            said[case.name] = answer([])
    return said


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.diagnosis.tools.xprof", description=__doc__.splitlines()[0]
    )
    parser.add_argument("set", type=Path, help="folder of the set")
    parser.add_argument("--out", type=Path, required=True, help="file of the answers")
    options = parser.parse_args(argv)
    try:
        options.out.write_text(json.dumps(answers(options.set), indent=1) + "\n")
    except ChipledgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
