"""How the site is built: by MkDocs into a folder beside the one that is served, which it then takes the place of."""

import base64
import hashlib
import json
import logging
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from app.manual import SCRIPTS, SITE
from errors import format as fmt

ROOT = Path(__file__).parents[2]
NOT_SERVED = ("404.html", "sitemap.xml", "sitemap.xml.gz")  # these name the address of a site, and it has none
NOT_NEEDED = ("assets/javascripts/lunr", "**/*.map")  # other languages' words, and where scripts were compiled from
ELSEWHERE = "https://unpkg.com/"  # what the theme would load for diagrams, and from a disk; there is neither here
_INLINE = re.compile(r"<(?P<tag>script)(?P<with>[^>]*)>(?P<text>.*?)</(?P=tag)>", re.DOTALL)


def build(site: Path = SITE) -> int:
    """Build it, and tell how long that took and how large it is; 1 where a page, a link or an anchor is wrong."""
    from mkdocs.exceptions import Abort

    logging.getLogger("mkdocs").addHandler(logging.StreamHandler(sys.stderr))
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=site.parent, prefix=".site-") as beside:
        made = Path(beside) / "site"
        try:
            _mkdocs(made)
        except Abort:
            return 1
        _tidy(made)
        shutil.rmtree(site, ignore_errors=True)
        made.rename(site)
    size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    print(f"The docs are at {site.name}/: {fmt.size(size)}, in {time.monotonic() - started:.1f} s.")
    return 0


def _mkdocs(made: Path) -> None:
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(made))
    config.plugins.on_startup(command="build", dirty=False)
    build_site(config)
    config.plugins.on_shutdown()


def _tidy(made: Path) -> None:
    """Leave out what is not served, and write down which scripts stand in pages."""
    for pattern in (*NOT_SERVED, *NOT_NEEDED):
        for path in list(made.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (*made.glob("**/*.min.js"), *made.glob("**/*.min.css")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\s*/[/*]# sourceMappingURL=\S+(?: \*/)?\s*$", "\n", text)
        path.write_text(text.replace(ELSEWHERE, "/none/"), encoding="utf-8")
    hashes = sorted({h for page in made.rglob("*.html") for h in script_hashes(page.read_text(encoding="utf-8"))})
    (made / SCRIPTS).write_text(json.dumps(hashes), encoding="utf-8")


def script_hashes(html: str) -> set[str]:
    """Of each script that stands in a page, what a content security policy names it by."""
    found = (m for m in _INLINE.finditer(html) if "src=" not in m["with"] and "json" not in m["with"])
    return {f"sha256-{base64.b64encode(hashlib.sha256(m['text'].encode()).digest()).decode()}" for m in found}
