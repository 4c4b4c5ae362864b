"""What a comparison can be asked: two runs, and of served ones a load of each."""

from errors.options import Option

LOAD_A = Option("load_a", str, None, "served runs: a load of the first; default: all its requests", form="LOAD")
LOAD_B = Option("load_b", str, None, "served runs: a load of the second; default: all its requests", form="LOAD")
A = Option("a", str, None, "id or name of the first run (A), the beginning of either, or baseline:NAME", of_run=True)
B = Option("b", str, None, "the second run (B); of served runs also the same one with another load", of_run=True)
WHATIF = Option(
    "whatif",
    str,
    None,
    "instead of B: what the model of training says of a step of A. same: of its own setup; else of another, to which A "
    "is carried over, such as 'chips=512 layout=tp=8' (on, chips, seq, global_batch_tokens, layout, remat, precision)",
    form="SETUP",
)
SIDES, LOADS = (A, B), (LOAD_A, LOAD_B)
