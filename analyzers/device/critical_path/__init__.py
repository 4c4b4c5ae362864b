"""The critical path of steps: the chain of what had to end before what came next, walked backwards from a step's end.

At each instant of a step exactly one link of the chain is told, so that the links of a step last as long as the step:

    on the device   what it executed. Before an execution began lies what it waited for: what ran before it on its
                    stream, what another stream had to end first, or the call that launched it
    on the host     what the thread did that made that call, back to where it last waited for a device or for another
                    thread; there the chain goes on with what it had waited for
    over ranks      a collective moves once its last rank came. The chain holds what passed since then (on every rank
                    the shortest duration of that collective), and goes on where the last rank began it. Waiting for
                    that rank is never on the chain. Durations alone tell this: no clock is compared with another.
                    Of several that came last in the same ns each gives a path as long: the chain stays on its rank
                    if that is one of them, else it goes to the lowest of them

A chain that went to another rank goes on there for what is left of the step, by that rank's own clock.

Kinds of links, by what passes in them (`kinds.KINDS`):

    computing, communication, copies   executions on a device
    communication_or_wait   a collective of which it is not known when the last rank came
    launch_delay    from the begin of the call that launches to the start on the device
    return_delay    from the end on the device to the return of the call that waited for it
    between_kernels the call was done before, what had to end had ended, and the device had not begun
    host_code, launching, waiting, logging, ...   what the host's thread did, as `host_work` tells it
    input_wait      the host fetched data, or the device took it in
    not_told        the profile does not tell what was waited for

Where the trace does not tell what waited for what, a rule decides and is named (`kinds.RULES`); what rests on such a
rule is counted apart.
"""
