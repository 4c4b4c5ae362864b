"""Which addresses are of this machine alone."""


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine's own programs reaches it."""
    return address in ("localhost", "::1") or address.startswith("127.")
