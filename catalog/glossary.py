"""General terms of the field, as this project uses them. What a question's own figures mean stands beside the question;
a term here says the same in general."""

from catalog.terms import Term

PALM = "A. Chowdhery et al., PaLM, arXiv 2204.02311, appendix B"
ROOFLINE = "S. Williams et al., Roofline: an insightful visual performance model, 2009"
KLEINROCK = "L. Kleinrock, Power and deterministic rules of thumb for probabilistic problems, 1979"

GLOSSARY: tuple[Term, ...] = (
    Term("Chip-second", "One chip held for one second, whatever it did.", "chips x seconds", "chip-seconds"),
    Term(
        "Badput",
        "Time in which a job held its chips without getting on: restarts, saves that block, steps taken again.",
        "time held - goodput",
        "s",
        "ml-goodput-measurement",
    ),
    Term(
        "Goodput",
        "What became of use. In training: time in steps whose result was kept, as a part of the time held. In serving: "
        "requests a second that were answered within every objective. The two have nothing but the name in common.",
        "training: time in kept steps / time held; serving: requests within objectives / duration",
        "1; requests/s",
    ),
    Term(
        "MFU",
        "Model FLOPs utilisation: the FLOPs that the model itself needs, by a stated convention, as a part of what the "
        "chips could do at peak in the same time. Recomputation does not count.",
        "model FLOPs / (time x peak FLOP/s)",
        "1",
        PALM,
    ),
    Term(
        "HFU",
        "Hardware FLOPs utilisation: as MFU, with what is computed again to spare memory counted as well.",
        "(model FLOPs + recomputed FLOPs) / (time x peak FLOP/s)",
        "1",
        PALM,
    ),
    Term(
        "EMFU",
        "MFU against the BF16 peak, whatever formats ran. Work in FP8 or FP4 can take it over 100 %.",
        "model FLOPs / (time x BF16 peak FLOP/s)",
        "1",
    ),
    Term(
        "FLOP and FLOP/s",
        "One addition or multiplication of floating-point numbers; FLOP/s is how many a second. A matrix product of "
        "m x k by k x n is 2 m k n of them.",
        "2 m k n",
        "FLOPs; FLOP/s",
    ),
    Term("Peak", "The most FLOP/s that a chip can do by its specification, dense, in one number format.", "", "FLOP/s"),
    Term(
        "Convention",
        "A way to count the FLOPs of a model. The same speed gives another MFU by another convention.",
        unit="FLOPs per token",
    ),
    Term(
        "Recomputation",
        "Activations are dropped in the forward pass and computed again in the backward pass (rematerialisation), to "
        "spare memory.",
        unit="FLOPs",
    ),
    Term(
        "Roofline",
        "What bounds an operation: below some FLOPs per byte the memory's bandwidth, above it the peak FLOP/s.",
        "FLOP/s <= min(peak FLOP/s, FLOPs per byte x bytes/s)",
        "FLOP/s",
        ROOFLINE,
    ),
    Term(
        "Ridge",
        "The FLOPs per byte at which both roofs meet.",
        "peak FLOP/s / memory bytes/s",
        "FLOPs per byte",
        ROOFLINE,
    ),
    Term(
        "HBM",
        "High-bandwidth memory: the main memory of an accelerator, on its package.",
        unit="bytes; bytes/s",
    ),
    Term(
        "Collective",
        "An operation in which several devices exchange data: all-reduce, all-gather, reduce-scatter, all-to-all.",
    ),
    Term(
        "Bus bandwidth",
        "The rate of a collective as its links see it, comparable between kinds and numbers of ranks.",
        "bytes / time x 2(n-1)/n of an all-reduce, (n-1)/n of all-gather, reduce-scatter and all-to-all",
        "bytes/s",
        "nccl-tests, PERFORMANCE.md",
    ),
    Term(
        "Bisection",
        "The links that join two halves of a network where they are fewest: the narrowest place of an all-to-all.",
        unit="links; bytes/s",
    ),
    Term("Diameter", "The hops between the two chips of a network that are farthest apart.", "", "hops"),
    Term(
        "Slice",
        "Chips of a TPU pod that are joined by their own links and given to a job as a whole.",
        unit="chips",
    ),
    Term(
        "Mesh",
        "The devices of a job laid out along named axes, such as data and model; tensors are split along them.",
        unit="devices",
    ),
    Term(
        "Straggler",
        "A rank that the others wait for, again and again, by more than chance allows.",
    ),
    Term("Rank", "One process or device of a job, by its number."),
    Term(
        "MAD",
        "Median absolute deviation: half of the values lie nearer to the median, half farther. Times 1.4826 it is a "
        "standard deviation that outliers do not move.",
        "median of |x - median of x|",
    ),
    Term(
        "CV",
        "Coefficient of variation: how uneven values are, whatever their size. Gaps of a Poisson process have 1.",
        "standard deviation / mean",
        "1",
    ),
    Term(
        "MTTF, MTBF",
        "Mean time to failure and between failures, of the whole job. More hosts make it shorter in proportion.",
        "time at risk / failures",
        "s",
    ),
    Term(
        "TTFT",
        "Time to first token: from the arrival of a request to the first token of its answer.",
        "first token - arrival",
        "s",
    ),
    Term(
        "TPOT",
        "Time per output token after the first, one number a request.",
        "(E2E - TTFT) / (output tokens - 1)",
        "s",
    ),
    Term(
        "ITL",
        "Inter-token latency: a gap between two pieces of output. A request has many; TPOT is their mean where each "
        "piece is one token.",
        "time of a piece - time of the piece before it",
        "s",
    ),
    Term("E2E", "End-to-end latency: from the arrival of a request to its last token.", "last token - arrival", "s"),
    Term(
        "p50, p90, p99",
        "Percentiles: so many in a hundred are as long or shorter. p50 is the median.",
    ),
    Term(
        "SLO",
        "Service-level objective: a latency that requests must keep, such as a TTFT of 0.5 s.",
        unit="s",
    ),
    Term(
        "Knee",
        "The load from which a server no longer keeps up: latency grows, the rate of answers does not.",
        unit="requests/s",
        source=KLEINROCK,
    ),
    Term(
        "Little's law",
        "What is in a system, how fast it comes and how long it stays hang together.",
        "in flight = rate x mean time in the system",
        "requests",
        "J. D. C. Little, A proof for the queuing formula L = λW, 1961",
    ),
    Term("Prefill", "Reading a prompt: the keys and values of its tokens are computed, many tokens in one pass."),
    Term("Decode", "Generating an answer: one token of each sequence in a pass, or a few with drafts."),
    Term(
        "KV cache",
        "The keys and values of tokens already read, kept so that later tokens need not compute them again.",
        "2 x layers x key heads x head width x bytes of an element",
        "bytes per token",
    ),
    Term(
        "Continuous batching",
        "An engine decides anew at each pass which requests run in it; none waits for others of a batch to end.",
    ),
    Term(
        "Speculation",
        "A cheap draft proposes tokens, the model verifies several in one pass and keeps those that it would have "
        "given itself.",
        source="Y. Leviathan et al., Fast inference from transformers via speculative decoding, 2023",
    ),
    Term(
        "Preemption",
        "In serving, a request's cache is given up to make room and computed again later; of a job, its machines are "
        "taken away.",
    ),
)
