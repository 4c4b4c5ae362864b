"""Why jobs are interrupted: the causes, in families, and the patterns of log lines that tell of each.

`cause_of(line)` says what one line tells of. A line that only tells *that* something failed (a worker exited, a
collective timed out) is a symptom: it counts where no line names more, and what names more counts before it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.cause_patterns import EXCEPTION, GATE, HARMLESS, RULES, XIDS

FAMILIES: dict[str, str] = {
    "hardware": "a part of the machine broke or lied",
    "network": "links, adapters or switches between machines",
    "storage": "disks, file systems or object stores",
    "software": "the program, its libraries, its driver or its configuration",
    "out_of_memory": "a device or a host ran out of memory",
    "maintenance": "the provider or the operator took the machine away, announced or not",
    "preemption": "the machines were given to somebody else",
    "hang": "nothing failed, and nothing went on",
    "scheduler": "the scheduler ended it at a limit that had been set",
    "user": "a person stopped it, or the program itself where it was told to",
    "unknown": "nothing tells",
}


@dataclass(frozen=True)
class Cause:
    """A cause of interruptions. `name` is its key; `symptom`: it tells that something failed rather than what."""

    name: str
    family: str
    title: str
    meaning: str
    cure: str
    symptom: bool = False


CAUSES: dict[str, Cause] = {
    c.name: c
    for c in (
        Cause(
            "accelerator",
            "hardware",
            "Faulty accelerator",
            "The accelerator failed or fell off the bus.",
            "Drain the host; reset or replace the accelerator.",
        ),
        Cause(
            "hbm",
            "hardware",
            "HBM memory",
            "Uncorrectable errors in the accelerator's main memory.",
            "Reset so that rows are remapped; replace it if errors return.",
        ),
        Cause(
            "sram",
            "hardware",
            "On-chip SRAM",
            "Uncorrectable errors in caches or registers of the accelerator.",
            "Reset; replace it if errors return.",
        ),
        Cause(
            "firmware",
            "hardware",
            "Accelerator firmware",
            "The accelerator's system processor (GSP) stopped answering.",
            "Update driver and firmware; reset the accelerator.",
        ),
        Cause(
            "chip_link",
            "hardware",
            "Chip-to-chip link",
            "NVLink, NVSwitch, ICI or xGMI errors within the scale-up domain.",
            "Reset the link; check trays and cables; replace if errors return.",
        ),
        Cause(
            "thermal",
            "hardware",
            "Overheating",
            "An accelerator or host slowed or stopped to protect itself.",
            "Check cooling and airflow of that rack.",
        ),
        Cause(
            "data_corruption",
            "hardware",
            "Silent data corruption",
            "Arithmetic that came out wrong, found by a check or by a loss that exploded.",
            "Take the chip out; run its burn-in tests.",
        ),
        Cause("host_memory", "hardware", "Host memory", "Uncorrectable errors in the host's RAM.", "Replace the DIMM."),
        Cause("host_cpu", "hardware", "Host CPU", "Machine checks of the host's processor.", "Replace the host."),
        Cause("power", "hardware", "Power supply", "A power supply or its feed failed.", "Replace it; check the feed."),
        Cause(
            "chassis",
            "hardware",
            "Chassis or board",
            "Server chassis, I/O board or baseboard failed.",
            "Replace the host.",
        ),
        Cause(
            "host",
            "hardware",
            "Host lost",
            "The host crashed or vanished; which part failed is not told.",
            "Ask the provider; avoid the host until it is explained.",
        ),
        Cause(
            "network",
            "network",
            "Network switch or cable",
            "Links between machines went down or lost packets.",
            "Check optics, cables and switch ports on the path.",
        ),
        Cause(
            "nic",
            "network",
            "Network adapter",
            "A network or RDMA adapter failed or flapped.",
            "Reset or replace the adapter.",
        ),
        Cause("disk", "storage", "Local disk", "A local disk failed or filled up.", "Replace it, or make room."),
        Cause(
            "remote_storage",
            "storage",
            "File system or object store",
            "Remote storage was slow, full or refused.",
            "Check quota, credentials and the service's state; retry with back-off.",
        ),
        Cause(
            "software",
            "software",
            "Software error",
            "The program or a library raised an error.",
            "Read the evidence line: it names the error.",
        ),
        Cause(
            "dependency",
            "software",
            "Dependency",
            "A package, a container image or a service it needs failed.",
            "Pin and pre-pull what is needed.",
        ),
        Cause("driver", "software", "Driver", "The accelerator's driver failed.", "Update or roll back the driver."),
        Cause(
            "numerics",
            "software",
            "Loss not finite",
            "The loss or the gradients became NaN or infinite.",
            "Go back to an earlier checkpoint; skip the batch; check learning rate and precision.",
        ),
        Cause(
            "device_memory",
            "out_of_memory",
            "Accelerator out of memory",
            "A program needed more device memory than there is.",
            "Shard or rematerialise more; the memory page shows the peak.",
        ),
        Cause(
            "host_out_of_memory",
            "out_of_memory",
            "Host out of memory",
            "The operating system or the container limit ended a process.",
            "Raise the limit; look for growing input pipelines.",
        ),
        Cause(
            "maintenance",
            "maintenance",
            "Host maintenance",
            "The provider or the operator took the machine away.",
            "Checkpoint on the notice; ask for maintenance windows.",
        ),
        Cause(
            "preemption",
            "preemption",
            "Preemption",
            "A spot machine was taken back, or a job of higher priority came.",
            "Checkpoint on the notice; reserve capacity where it hurts.",
        ),
        Cause(
            "hang",
            "hang",
            "Hang",
            "The job went silent until a watchdog or a person ended it.",
            "Capture stacks of all ranks when a watchdog fires; the last rank to enter is the one to look at.",
        ),
        Cause(
            "time_limit",
            "scheduler",
            "Time limit",
            "The scheduler ended the job when the time it was given was over.",
            "Ask for more time, or save on the warning signal before the limit and chain jobs.",
        ),
        Cause(
            "user",
            "user",
            "Stopped by a person",
            "Cancelled or interrupted, or ended as it was told to.",
            "None needed.",
        ),
        Cause(
            "collective_timeout",
            "unknown",
            "Collective timed out",
            "A watchdog ended a collective that not all ranks entered: some rank failed or hung first.",
            "Look for the first error on the other hosts.",
            symptom=True,
        ),
        Cause(
            "process_exit",
            "unknown",
            "Process ended",
            "A worker died; nothing says of what.",
            "Look at that worker's own log.",
            symptom=True,
        ),
        Cause(
            "terminated",
            "unknown",
            "Told to stop",
            "A process was sent SIGTERM; by a scheduler, an operator or another process, is not told.",
            "Look at the scheduler's events of that time.",
            symptom=True,
        ),
        Cause(
            "connection_lost",
            "unknown",
            "Connection lost",
            "Another process could not be reached any more.",
            "Look for the first error on the other hosts.",
            symptom=True,
        ),
        Cause(
            "unknown",
            "unknown",
            "Unknown",
            "No line of any log tells why.",
            "Ingest the logs of all hosts, or the scheduler's events, with the run.",
        ),
    )
}


LINE_LIMIT = 2000  # characters of a line that are looked at: causes stand at the front
_RULES = tuple((rule.cause, rule.needles, re.compile("|".join(rule.patterns)).search) for rule in RULES)
_NAME = r"((?=[\w.-]*\d)(?=[\w.-]*[a-z])[a-z0-9][\w.-]{1,62}(?<![.-]))"
_SYSLOG_TIME = r"(?:\w{3} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)?)"
_HOSTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:host(?:name)?|node|instance|machine|server|peer)s?(?:\s|[/=:'\"]\s?){{1,2}}{_NAME}(?![\w-]*\()",
        rf"\bon {_NAME} cancelled",
        rf"\b(?:srun|slurmstepd): error: {_NAME}: ",
        rf"^\[pod/{_NAME}/",
        rf"^{_SYSLOG_TIME} {_NAME} [\w./-]+(?:\[\d+\])?:",
        rf"\bipmi: {_NAME}:|\b(?:on|from) (?=\S*-){_NAME}(?<!\.py)(?=[\s:,;)<]|\.?$)",
    )
)
_DEVICE = re.compile(
    r"(?<![a-z])(?:gpu|cuda|tpu|chip|accelerator|/dev/nvidia|/dev/accel|local[_ ]?rank)"
    r"(?:[ _-]?(?:id|index|device|chip))?(?: ?[:=#] ?| |-)?(\d{1,3})(?![\d.x]|:[0-9a-f]{2}|-bit)",
    re.IGNORECASE,
)


def cause_of(line: str) -> str | None:
    """The cause that a line of a log tells of (a key of CAUSES), or None where no pattern fits."""
    line = line[:LINE_LIMIT]
    low = line.lower()
    for cause, needles, search in _RULES:
        for needle in needles:
            if needle in low:
                if match := search(low):
                    return None if HARMLESS.search(low) else cause or XIDS.get(int(match["xid"]), "driver")
                break
    return "software" if EXCEPTION.search(line) and not HARMLESS.search(low) else None


def causes_of(lines: Sequence[str], bare: Callable[[str], str] = str) -> list[str | None]:
    """`cause_of` of each line, ten times faster for thousands of lines of which most are ordinary. `bare` takes from
    a line what a launcher put before it: where a line begins tells much."""
    text = [line[:LINE_LIMIT] for line in lines]
    try:
        array = pa.array(text, pa.string())
    except UnicodeEncodeError:  # lone surrogates
        array = pa.array([line.encode("utf-8", "replace").decode() for line in text], pa.string())
    told = pc.match_substring_regex(array, GATE, ignore_case=True)
    causes: list[str | None] = [None] * len(lines)
    for i in np.flatnonzero(told.to_numpy(zero_copy_only=False)):
        causes[i] = cause_of(bare(text[i]))
    return causes


def host_of(line: str) -> str | None:
    """The host that a line names, else the one that its syslog or kubectl prefix says wrote it; None where neither.

    A host is a name with a letter and a digit in it, where a host is usually named: `rank 3` or `node 3` name none.
    """
    for pattern in _HOSTS:
        if match := pattern.search(line[:LINE_LIMIT]):
            return next(name for name in match.groups() if name)
    return None


def device_of(line: str) -> int | None:
    """The number of the accelerator on its host (`GPU 3`, `cuda:3`, `/dev/nvidia3`), None where a line names none."""
    match = _DEVICE.search(line[:LINE_LIMIT])
    return int(match[1]) if match else None
