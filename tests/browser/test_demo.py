"""`chipledger demo`: the bundled reference run, from the command to its ledger on the screen."""

import re

from playwright.sync_api import expect

from app.cli.commands.demo import reference_runs
from runs.ledger import Account, Ledger
from tests.app.serving import get, serving
from tests.browser.drawn import bars, ready


def test_demo_shows_the_ledger_of_the_reference_run_and_started_again_loads_nothing_twice(visit, tmp_path):
    assert reference_runs(), "no reference run is bundled below reference/runs/"
    with serving(tmp_path, verb="demo") as server:
        runs = get(f"{server}/api/runs")[1]["runs"]
        assert len(runs) == len(reference_runs())
        page = visit(server)
        page.get_by_role("link", name=runs[0]["name"]).click()
        expect(page).to_have_url(re.compile(rf"/findings\?run={runs[0]['run_id']}"))
        page.get_by_role("link", name="Ledger", exact=True).click()
        expect(page).to_have_url(re.compile(rf"/ledger\?run={runs[0]['run_id']}"))
        ready(page)
        told = get(f"{server}/api/runs/{runs[0]['run_id']}/show/ledger")[1]
        ledger = Ledger(chips=told["chips"], account=Account.from_dict(told["account"]))
        assert ledger.find("productive").chip_seconds > 0
        held = [p for p, a in _paths(ledger) if a.chip_seconds > 0]
        assert sorted(bars(page)) == sorted(held)
        expect(page.locator("h5").first).to_contain_text(re.compile(r"\d %"))
    with serving(tmp_path, verb="demo") as server:
        assert [_stored(r) for r in get(f"{server}/api/runs")[1]["runs"]] == [_stored(r) for r in runs]


def _stored(row):
    """A row without what is worked out of it meanwhile."""
    return {name: value for name, value in row.items() if name not in ("numbers", "largest_loss", "pending")}


def _paths(ledger):
    return [(".".join(path[1:]), account) for path, account in ledger.account.walk()]
