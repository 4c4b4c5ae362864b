"""In which memory a TPU's operations read and write: the statistic `memory_access_breakdown` of a trace.

It is a message with one entry (field 1) per memory and direction: direction (1), memory space (2), bytes (3). Spaces
are not numbered as in layouts, where `S(1)` lies on the chip and the device's memory is 0.
"""

STAT = "memory_access_breakdown"
HBM = 1
