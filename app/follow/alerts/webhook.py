"""How a message reaches people: one POST of JSON, shaped for Slack or plain."""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from app.follow.alerts.options import SHAPES
from app.follow.alerts.rules import page_of
from errors import InputError
from runs.alert_book import Alert, Target

TIMEOUT_S = 10.0
SLACK_TEXT, SLACK_NAME = 2400, 200  # characters: Slack refuses a section of more than 3,000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A webhook that sends the message elsewhere is not the one that was set."""

    def redirect_request(self, *_: Any) -> None:
        return None


def checked(target: Target) -> Target:
    """The target, if it can be one. Raises InputError with what is wrong."""
    for what, url in (("webhook", target.url), ("base URL", target.base_url)):
        if not _is_address(url):
            raise InputError(f"the {what} is no address", expected="https://host/...")
    if target.shape not in SHAPES:
        raise InputError(f"no shape {target.shape!r}", expected=f"one of {', '.join(SHAPES)}")
    return Target(target.url, target.shape, target.base_url.rstrip("/"))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return good and not re.search(r"[\s\x00-\x1f\x7f]", url)


def masked(url: str) -> str:
    """The address without what is secret in it: of a webhook the path is the password."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).hostname}/…"


def permalink(alert: Alert, base_url: str) -> str:
    """The page that shows why, for the run that the alert was last seen in."""
    return f"{base_url}/{page_of(alert.rule)}?run={quote(alert.run_id, safe=':')}"


def message(alert: Alert, target: Target) -> dict[str, Any]:
    """The JSON that is posted."""
    over = alert.resolved_ns is not None
    sentence = (alert.resolved_sentence or "") if over else alert.sentence
    url = permalink(alert, target.base_url)
    if target.shape == "slack":
        text = f"{'Resolved' if over else 'Alert'}: {alert.name}: {sentence}"
        return slack(":white_check_mark:" if over else ":rotating_light:", alert.name, (sentence,), url, text)
    return {
        "source": "chipledger",
        "state": "resolved" if over else "open",
        "rule": alert.rule,
        "subject": alert.subject,
        "run_id": alert.run_id,
        "name": alert.name,
        "value": alert.value,
        "threshold": alert.threshold,
        "sentence": sentence,
        "url": url,
        "opened_ns": alert.opened_ns,
        "resolved_ns": alert.resolved_ns,
    }


def slack(icon: str, name: str, sentences: Sequence[str], url: str, text: str = "") -> dict[str, Any]:
    """A message in Slack's shape: a name, what is said of it, and where to look. `text`: of its notification."""
    linked = f"{icon} *{_line(name, SLACK_NAME)}*: {_said(sentences)}\n<{url}|Open in Chipledger>"
    block = {"type": "section", "text": {"type": "mrkdwn", "text": linked}}
    return {"text": _line(text or f"{name}: {sentences[0]}"), "blocks": [block]}


def _said(sentences: Sequence[str]) -> str:
    """A line each, as many as Slack takes."""
    room, lines = SLACK_TEXT, list[str]()
    for line in map(_line, sentences):
        room -= len(line) + 1
        if lines and room < 0:
            return "\n".join([*lines, "…"])
        lines.append(line)
    return "\n".join(lines)


def _line(text: str, most: int = SLACK_TEXT) -> str:
    """Text as one line, whatever breaks a tag holds; what is too long is cut between characters, in no entity."""
    room, found = most, list[str]()
    for character in map(_escaped, " ".join(text.split())):
        room -= len(character)
        if room < 0:
            return "".join([*found, "…"])
        found.append(character)
    return "".join(found)


def send(body: dict[str, Any], target: Target) -> None:
    """Post it. Raises InputError with what went wrong; the address itself, a secret, is never in the message."""
    request = urllib.request.Request(  # noqa: S310 - http and https only, see `checked`
        target.url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "chipledger"}
    )
    where = masked(target.url)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S):
            return
    except urllib.error.HTTPError as e:
        raise InputError(f"the webhook answered {e.code} {e.reason}", where=where) from e
    except http.client.HTTPException as e:  # whose words are those of whatever answers
        raise InputError(f"the webhook answers in no HTTP ({type(e).__name__})", where=where) from e
    except (OSError, ValueError) as e:
        raise InputError(f"the webhook cannot be reached ({getattr(e, 'reason', e)})", where=where) from e


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
