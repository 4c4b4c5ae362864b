"""Help in two columns, as wide as the terminal."""

from collections.abc import Sequence


def columns(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A heading and rows of two columns below it; long texts go on below their beginning."""
    import textwrap

    width = max(len(name) for name, _ in rows) + 4
    lines = [
        textwrap.fill(
            text, max(_width(), width + 40), initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width
        )
        for name, text in rows
    ]
    return "\n".join([f"{title}:", *lines])


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns - 2
