"""One colour for each latency, the same on every page."""

from app import theme

QUEUE, PREFILL, DECODE = theme.COLOURS["scheduling"], theme.COLOURS["prefill"], theme.COLOURS["decode"]
COLOURS = {
    "ttft_s": theme.COLOURS["served"],
    "queue_s": QUEUE,
    "prefill_s": PREFILL,
    "tpot_s": DECODE,
    "itl_s": DECODE,
    "e2e_s": theme.COLOURS["held"],
}
