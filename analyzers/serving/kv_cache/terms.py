"""What the figures of `kv_cache` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Cache of a token",
        "Keys and values of all layers: 2 x layers x key heads x head width x bytes of an element; of "
        "latent attention, layers x (latent + rotary part). Each piece once, as if no layer had a window.",
        formula="2 x layers x key heads x head width x bytes of an element; "
        "of latent attention: layers x (latent + rotary part) x bytes of an element",
        unit="bytes per token",
    ),
    Term(
        "Sequences at a time",
        "Of each group of chips that share one copy of the weights: (memory x share for the "
        "engine - weights on a chip - activations) / cache of one sequence on a chip, rounded down.",
        formula="floor((memory x share - weights - activations) / cache of one sequence)",
        unit="sequences",
    ),
    Term(
        "Repeated",
        "With more chips than key heads, several chips keep the same heads; a latent is on all of them. Its "
        "bytes beyond an even split.",
        formula="bytes held - bytes of an even split",
        unit="bytes",
    ),
    Term(
        "Whole, one chip each",
        "Data-parallel attention: a chip keeps all heads of its own sequences, and all of "
        "attention's weights; the other weights stay shared.",
    ),
    Term("Windows", "Layers that look back W tokens keep W at most.", formula="min(tokens, W)", unit="tokens"),
    Term(
        "Pages",
        "A cache is kept in pages of some tokens: the last page of a sequence is part empty. A server that "
        "rounds requests up to compiled lengths is a server with pages as long as those.",
    ),
    Term(
        "GB",
        "10^9 bytes, on every page. What a tool prints in units of 2^30 bytes is 7.4 % more in GB: 80 of them are "
        "85.9 GB.",
        formula="1 GB = 10^9 bytes",
        unit="bytes",
    ),
)
