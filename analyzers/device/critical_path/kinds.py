"""Kinds of links of a critical path, and the rules by which one link is told to follow another."""

from analyzers.device.host_work import HOST_CODE
from analyzers.device.host_work import KINDS as DONE_BY_HOSTS
from analyzers.device.launches.feeding import BETWEEN_KERNELS
from analyzers.device.launches.launches import DELAYED, INPUT, UNEXPLAINED

COMPUTING, COMMUNICATION, COMMUNICATION_OR_WAIT, COPIES = (
    "computing",
    "communication",
    "communication_or_wait",
    "copies",
)
RETURNING = "return_delay"
HOST = (HOST_CODE, *DONE_BY_HOSTS)
"""What a host's thread did, those that give way first."""
KINDS = (
    COMPUTING,
    COMMUNICATION,
    COMMUNICATION_OR_WAIT,
    COPIES,
    DELAYED,
    RETURNING,
    BETWEEN_KERNELS,
    *HOST,
    INPUT,
    UNEXPLAINED,
)
CODE = {kind: code for code, kind in enumerate(KINDS)}

EXECUTION, LAUNCH, RETURN, HELD, THREAD, FEEDER, NOTHING = range(7)
"""What a link is: an execution; from a call to its execution; from an execution to the return of the call that waited;
between what had to end and an execution; a stretch of a thread in its chain; one of the thread that feeds the device,
while the device was idle; nothing that is known."""

FOLLOWS, LAUNCHED, FED, UNBOUND = range(4)
"""How an execution was bound: it follows another; its call; another, since whose end its device was idle; nothing."""
FOR_EXECUTION, FOR_THREAD, FOR_NOTHING = range(3)
"""What a thread waited for."""
ON_DEVICE, BEFORE, ON_THREAD = range(3)
"""Where a chain is: within an execution, before the start of one, or on a thread."""

RULES: dict[str, tuple[bool, str]] = {
    "stream": (True, "an execution follows the one before it on its stream"),
    "event": (True, "an execution follows what its stream was told to wait for"),
    "launch": (True, "an execution follows the call that launched it"),
    "thread": (True, "a thread does one thing after another"),
    "synchronisation": (True, "a call that waits for a device returns after what it waited for"),
    "last_rank": (True, "a collective moves once its last rank came"),
    "other_stream": (False, "what was launched and held back waited for what ended last on other streams"),
    "ended_last": (False, "an execution of which no call is known follows what ended last on its device"),
    "synchronisation_last": (False, "a call that waits, of which is not told for what, waited for what ended last"),
    "feeder": (False, "while such a device was idle, it waited for the thread that takes the steps"),
    "handover": (False, "a thread without events waited for another that launched meanwhile"),
}
"""By name: whether the trace tells it, and what it says."""
RULE = {name: code for code, name in enumerate(RULES)}
