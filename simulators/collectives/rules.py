"""Rules of thumb around collectives: what hides them behind compute, and what printed pod bandwidths mean."""


def critical_tokens(flops_per_s: float, bytes_per_s: float) -> float:
    """Tokens per chip from which the gradients' all-reduce hides behind the backward pass: C / W, both of one part.

    BF16 gradients and weights. For a chip: its peak FLOP/s by the both-way bandwidth of the axes used, or a GPU's by
    its egress; for pods over the data-centre network: the pod's peak by the pod's egress, in tokens per pod.
    """
    return flops_per_s / bytes_per_s


def pod_bytes_per_s(chips: int, links_per_chip: int, oneway_bytes_per_s: float) -> float:
    """What is printed as the "all-reduce bandwidth per pod": every chip's links, each ONE way.

    The trap: it is not the rate at which an array is reduced. An all-reduce over three rings of an axis moves V in
    2 V / (6 w), whatever the number of chips.
    """
    return chips * links_per_chip * oneway_bytes_per_s


def bisection_bytes_per_s(links: int, oneway_bytes_per_s: float) -> float:
    """What is printed as the "bisection bandwidth per pod": links across the narrowest halving, each ONE way."""
    return links * oneway_bytes_per_s


def pod_flops_per_s(chips: int, peak_flops_per_s: float) -> float:
    """What is printed as a pod's peak: that of its chips added, of the precision that the maker counts."""
    return chips * peak_flops_per_s
