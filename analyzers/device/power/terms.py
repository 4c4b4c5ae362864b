"""What the figures of `power` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Watts of a chip",
        "The mean over the time of which samples are known while the job ran, of all chips that were sampled.",
        formula="energy / seconds known",
        unit="W",
    ),
    Term(
        "Power limit",
        "What a chip may draw: the limit in force that its samples tell, else what the catalogue has of its sheet.",
        unit="W",
    ),
    Term(
        "Energy",
        "What the sampled chips drew while the job ran: the growth of each chip's own counter of energy, else watts "
        "times time between samples. Without hosts, network and cooling. Gaps between samples count as nothing.",
        unit="J",
    ),
    Term(
        "Energy of a step",
        "Watts of a chip within steps, times the mean step, times the chips of the job.",
        formula="watts x seconds x chips",
        unit="J",
    ),
    Term(
        "Energy of a token",
        "Of a job that trains: watts of a chip within steps over the tokens of a chip and second. Of a server: watts "
        "of a chip times all its chips and the time in which it served, over the tokens that it generated.",
        unit="J",
    ),
    Term(
        "Drawn idle",
        "Energy in the time in which a chip drew less than a quarter of its limit.",
        formula="energy idle / energy",
        unit="1",
    ),
    Term(
        "Held down",
        "The share of the time of all chips in which the driver held a clock down, by why: its power limit, heat, or a "
        "brake of the power supply. A busy chip often meets its power limit; heat and brakes are faults of a machine.",
        unit="1",
        source="NVIDIA, NVML: clocks event reasons",
    ),
    Term(
        "Clock below the others",
        "How far a chip's mean clock is below the median of all; told beyond three times what chips differ by among "
        "one another, and two per cent at least.",
        formula="1 - clock / median clock",
        unit="1",
    ),
)
