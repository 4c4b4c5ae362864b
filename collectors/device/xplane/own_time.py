"""The time that an operation has to itself: its own, less what later operations cover of it, nested or in part."""

from collectors.device.xplane.tables import NO_OP
from collectors.device.xplane.wire import kernel


@kernel
def own_time(events, order, ops, stack, depth):
    """Adds to `ops.own` each event's duration less what events that begin later cover of it: each instant is one
    event's alone. Sets the two stack depths.

    `order`: event rows by start, the longer first. Two stacks run side by side, kept between calls for events that
    span batches: among device operations, an operation contains operations (a Rendezvous inside an all-reduce is
    the all-reduce, not something apart from it); for host events anything nested counts. `stack[k, i]` is
    (operation, end in ps); ends fall along it.
    """
    for j in order:
        op, start, dur = events.op[j], events.start[j], events.dur[j]
        is_op = ops.key[op, 2] != NO_OP
        end = start + dur
        ops.own[op] += dur
        for k in range(2):
            if k == 0 and not is_op:
                continue
            d = depth[k]
            while d > 0 and stack[k, d - 1, 1] <= start:
                d -= 1
            i, at = d, start  # what lies beneath owns the time from where what covers it ends
            while i > 0 and at < end:
                i -= 1
                parent, until = stack[k, i, 0], min(end, stack[k, i, 1])
                if k == 0 or ops.key[parent, 2] == NO_OP:
                    ops.own[parent] -= until - at
                at = until
            while d > 0 and stack[k, d - 1, 1] <= end:  # covered to its end
                d -= 1
            if d < stack.shape[1]:
                stack[k, d, 0] = op
                stack[k, d, 1] = end
                d += 1
            depth[k] = d
