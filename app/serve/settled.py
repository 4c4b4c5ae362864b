"""What a server keeps to its end is looked through once."""

import functools
import gc


@functools.cache
def settle() -> None:
    """To be called when the first page was drawn: what that brought along, nearly all of it code, is looked through by
    no collection of garbage again.

    Streamlit asks for a whole collection after each drawing, in which all visitors wait: 0.12 s of it, and less than
    0.01 s after this.
    """
    gc.collect()
    gc.freeze()
