"""Lines of a training log, and what is asked of them."""

from analyzers.flops import mfu
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

EXACT, LOOSE = 51_470_401_536, 57_912_852_480  # FLOPs of a token of Llama 3.1 8B, T 8192: causal and non-causal
LLAMA = {"chip": "TPU v6e", "chips": 256, "model": "llama3.1-8b", "max_target_length": 8192, "precision": "bfloat16"}


def ask(columns=None, facts=LLAMA, tables=None, **options):
    tables = MemoryTables({**({"steps": columns} if columns else {}), **(tables or {})})
    return mfu.analyze(tables, facts_of(facts), parse_options(mfu.OPTIONS, options))


def of_model(name="llama3.1-8b", **options):
    return ask(facts={"model": name}, **options)
