"""The numbers that `benchmarks.training_fit` fits: what is usual of each, between what it lies, how near it is kept."""

import numpy as np

from simulators.training.efficiency import NOMINAL

OWN_ATTENTION = "llm-foundry"
# What is usual of a TPU's products is what its compiler expects of them (`training_anchor`), which no published run
# has a part in; at another precision it is less as it is anywhere.
EXPECTED = {"tpu128": 0.854, "tpu256": 0.6644}
FLOPS_KEYS = tuple(
    (f"products.{g}.{p}", NOMINAL[p] * EXPECTED.get(g, NOMINAL["bf16"]) / NOMINAL["bf16"], 0.2, 0.95, 0.25)
    for g, precisions in (
        ("ampere", ("bf16",)),
        ("hopper", ("bf16", "fp8")),
        ("blackwell", ("bf16", "fp8", "fp4")),
        ("tpu128", ("bf16",)),
        ("tpu256", ("bf16", "fp8")),
    )
    for p in precisions
)
# What is usual of attention is that of its kernels, as their papers have it: about half of the peak with those of
# today (arXiv 2307.08691, 2407.08608), about 0.3 on A100 and 0.18 on H100 with the first FlashAttention.
ATTENTION_KEYS = tuple(
    (f"attention.{g}", usual, 0.1, 0.85, 0.15)
    for g, usual in (
        ("ampere", 0.45),
        ("hopper", 0.45),
        ("blackwell", 0.45),
        ("tpu128", 0.45),
        ("tpu256", 0.45),
        ("own.ampere", 0.3),
        ("own.hopper", 0.18),
    )
)
KEYS = (  # name, usual value, least, most, spread of the logarithm that is usual
    *FLOPS_KEYS,
    *ATTENTION_KEYS,
    ("grouped.gpu", 0.6, 0.2, 1.0, 0.3),
    ("grouped.tpu", 0.6, 0.2, 1.0, 0.3),
    ("memory", 0.75, 0.4, 1.0, 0.2),
    ("network", 0.75, 0.4, 1.0, 0.2),
    ("hidden", 0.3, 0.02, 0.9, 0.5),
    ("hidden_experts", 0.3, 0.02, 0.95, 0.5),
    ("overlap", 0.7, 0.2, 1.0, 0.3),
    ("launch_s", 60e-6, 5e-6, 500e-6, 0.7),
    ("expert_launches", 2.0, 0.2, 20.0, 0.7),
    ("dealt", 3.0, 0.5, 8.0, 0.5),
    ("narrow", 1.0, 0.1, 5.0, 0.7),
    ("few", 1.0, 0.1, 5.0, 0.7),
)
NAMES = [k[0] for k in KEYS]
USUAL, LOW, HIGH = (np.log([k[n] for k in KEYS]) for n in (1, 2, 3))
SPREAD = np.array([k[4] for k in KEYS])
