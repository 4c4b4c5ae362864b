"""Addresses of earlier versions: bookmarks and links in chats lead where the page is now."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app.pages.all import older_addresses


def older_routes() -> list[Route]:
    """One route for each older address, which keeps what the address says of the rest."""
    return [Route(f"/{old}", _leads_to(new), methods=["GET"]) for old, new in older_addresses().items()]


def _leads_to(path: str):  # noqa: ANN202 - a handler
    async def lead(request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/{path}{query}", status_code=307)

    return lead
