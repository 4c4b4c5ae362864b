"""The docs at /docs/: files of the built site, under a policy of their own: they load nothing from elsewhere."""

import json
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.manual import AT, SCRIPTS, SITE
from app.serve.folder import Folder


class Manual(Folder):
    """Files of the site. Only the scripts that were in its pages when it was built may run."""

    missing = "The docs were not built here: `python -m app.manual` in a clone builds them, and `make run` does.", 404
    no_page = f"The docs have no such page; they begin at {AT}/."

    def __init__(self, site: Path = SITE):
        super().__init__(AT, site, html=True)
        self._site = site

    async def page(self, files: StaticFiles, scope: Scope) -> Response:
        return await files.get_response(files.get_path(scope), scope)

    def policy(self) -> str:
        try:
            hashes = json.loads((self._site / SCRIPTS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            hashes = []
        scripts = " ".join(["'self'", *(f"'{h}'" for h in hashes)])
        return (
            f"default-src 'none'; script-src {scripts}; worker-src 'self'; connect-src 'self'; img-src 'self' data:; "
            "style-src 'self' 'unsafe-inline'; font-src 'self'; base-uri 'self'; form-action 'self'; "
            "frame-ancestors 'self'"
        )
