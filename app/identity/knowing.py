"""Who asks: each way of being known is asked in turn."""

from app.identity.base import NOBODY
from app.identity.books import Books
from app.identity.ways import WAYS
from app.identity.ways.base import Asked, Known


async def known(books: Books, asked: Asked) -> Known:
    """Whoever asks; `NOBODY` where nothing says who. Raises Unknown for what is not believed, and InputError where the
    registry cannot be read."""
    for way in WAYS:
        if (found := await way.know(books, asked)) is not None:
            return found
    return Known(identity=NOBODY, address=asked.peer)
