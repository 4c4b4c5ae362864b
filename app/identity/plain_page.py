"""A page without the dashboard around it, for whoever is not let in, or is leaving: a heading, sentences, a link."""

import html

from starlette.responses import HTMLResponse

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;display:grid;place-items:center;min-height:100vh;"
    "background:#fff;color:#1b1f24}main{max-width:34rem;padding:2rem}h1{font-size:1.4rem;margin:0 0 .75rem}"
    "a,button{font:inherit;color:#0b7a75;background:none;border:0;padding:0;text-decoration:underline;cursor:pointer}"
    "@media(prefers-color-scheme:dark){body{background:#0e1117;color:#e6e9ee}a,button{color:#3db8af}}"
)


def plain_page(
    heading: str,
    text: str,
    *,
    link: tuple[str, str] | None = None,
    form: tuple[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    """`link`: (words, address); `form`: (words of its button, address that is POSTed to)."""
    parts = [f"<h1>{html.escape(heading)}</h1><p>{html.escape(text)}</p>"]
    if form:
        parts.append(
            f"<form method='post' action='{html.escape(form[1])}'><button>{html.escape(form[0])}</button></form>"
        )
    if link:
        parts.append(f"<p><a href='{html.escape(link[1])}'>{html.escape(link[0])}</a></p>")
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{html.escape(heading)} · Chipledger</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>"
    )
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})
