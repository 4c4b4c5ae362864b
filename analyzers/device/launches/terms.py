"""What the figures of `launches` mean."""

from catalog.terms import Term
from runs.accounts import ACCOUNTS

TERMS = (
    Term(
        "Idle",
        "Nothing runs on any stream of the device: no computing, no communication, no copy.",
        formula="host late + launch to start + between kernels + input wait + not told",
        unit="s",
    ),
    Term(
        "Host late",
        "The device is idle, and the call that launches its next kernel has not begun. What the thread that makes "
        "the call did instead tells why.",
        unit="s",
    ),
    Term(
        "Launch to start",
        "The device is idle; the call has begun, and its kernel has not started on the device.",
        unit="s",
    ),
    Term(
        "Between kernels",
        ACCOUNTS["idle_between_kernels"].meaning,
        unit="s",
    ),
    Term(
        "Queue length",
        "Kernels, copies and fills whose launch has begun and which have not started, counted at each such beginning; "
        "the executions of a graph are left out.",
        unit="1",
        source="Holistic Trace Analysis (HTA), queue length",
    ),
    Term(
        "Shorter than its call",
        "The device took less for a kernel than the host for the call that launches it: with such kernels alone a host "
        "cannot keep its device busy. A captured graph launches many with one call.",
        unit="1",
        source="Holistic Trace Analysis (HTA), kernel launch statistics",
    ),
)
