"""What days and dollars of a training job mean by their names."""

from catalog.terms import Term

TRAINING_TIME = Term(
    "Training time",
    "From the first step to the last: model FLOPs of all tokens over what the chips do of them in a second.",
    formula="F D / (n P MFU goodput)",
    unit="s",
)

TERMS = (
    TRAINING_TIME,
    Term(
        "Dollars",
        "Chip-hours from the first step to the last, times the price of one. At the same MFU more chips cost the same.",
        formula="price x n x hours",
        unit="USD",
    ),
    Term(
        "Published range",
        "MFU of published runs on the chip at the precision: their median, and what four fifths lie between (all, "
        "where they are fewer than ten). Of models of the same class, dense or with experts, where three are known.",
        unit="1",
    ),
    Term(
        "Effective FLOP/s",
        "Model FLOPs a second that are kept, all chips together. Jobs of which it is equal take equally long.",
        formula="n P MFU goodput",
        unit="FLOP/s",
    ),
    Term(
        "Line of equal time",
        "Numbers of chips and the MFU, or the goodput, with which they take equally long: effective FLOP/s are the "
        "same all along it.",
        formula="MFU goodput = F D / (T n P)",
        unit="1",
    ),
    Term(
        "Pareto front",
        "Choices that no other beats in both days and dollars.",
    ),
    Term(
        "FLOPs per developer",
        "Model FLOPs a month (365.25/12 days) that are kept while the job runs, over the developers who are active in "
        "it. Of several jobs they add up.",
        formula="sum over jobs of n P MFU goodput t / active developers",
        unit="FLOP",
    ),
)

SCALING_TERMS = (
    Term(
        "Efficiency",
        "What is left of the speed-up that the chips would give, beside the run of the fewest chips.",
        formula="strong: (T1 / Tn) / (n / n1); weak: T1 / Tn",
        unit="1",
    ),
    Term(
        "System efficiency",
        "Samples a second and chip, beside those of the run of the fewest chips: what network and waiting cost.",
        formula="(Sn / (n Tn)) / (S1 / (n1 T1))",
        unit="1",
    ),
    Term(
        "Sample efficiency",
        "Samples to the same quality: those of the run of the fewest chips over those of this one.",
        formula="S1 / Sn",
        unit="1",
    ),
)

PLAN_TERMS = (
    Term(
        "Step time",
        "Forward, backward and update of the whole batch: products, attention, memory, what networks do not hide, the "
        "pipeline's bubble. Its range holds nine of ten steps of published runs that no number was fitted to.",
        formula="m (forward + backward) + bubble + sends + exposed + update + vocabulary",
        unit="s",
    ),
    Term(
        "Layout",
        "Ways in which the job is cut: dp copies of the model, fsdp shares of its weights, tp parts of each matrix, pp "
        "stages of layers in vp chunks, cp parts of each sequence, ep groups of experts.",
    ),
    Term(
        "Memory of a chip",
        "Weights, gradients, optimiser state dealt out over all copies, activations of the first stage, and a "
        "twentieth for buffers. Layers are computed again as far as the memory asks for it.",
        unit="bytes",
    ),
    Term(
        "Front of days and dollars",
        "The choices of which no other is at most as long and as dear: to be faster costs more, to be cheaper takes "
        "longer.",
    ),
    Term(
        "Critical batch",
        "The batch with which twice the tokens of small batches are needed to the same loss. By published fits of its "
        "growth with the tokens, a band: the fits are of models to 7 billion parameters.",
        formula="tokens = D_min (1 + B / B_crit)",
        unit="tokens",
    ),
    TRAINING_TIME,
)
