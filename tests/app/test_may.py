"""What whoever asks may, asked by functions that change something, and by pages that are drawn for them."""

import base64
import json
import threading

import pytest

from app.baselines import remove, set_baseline
from app.components.held import held
from app.facts.told import declare
from app.identity import asking, may
from app.identity.asking import acting_as, named, told_by_pages, who
from app.identity.base import NOBODY, OPEN, SERVER, Identity, Role
from app.identity.header import NAME, RAW, read, with_identity
from app.identity.may import NotAllowed, already_noted, changing, need, noted_by
from app.identity.open_to_all import warning
from app.identity.settings import OPEN_VARIABLE
from app.library import changes
from app.pages.library.shown import BINNED, MENU, acts
from app.promises import promise
from runs.audit_book import TEXT
from tests.app import made_runs

VIEWER = Identity(name="vi", role=Role.VIEWER, how="token")
UPLOADER = Identity(name="up@corp.example", role=Role.UPLOADER, how="oidc", groups=frozenset(("ml",)))
ADMIN = Identity(name="ad", role=Role.ADMIN, how="proxy")


@pytest.fixture(autouse=True)
def as_it_was():
    before = asking._pages[:], may._noting[:]
    yield
    asking._pages[:], may._noting[:] = before


@pytest.fixture
def run(place):
    return made_runs.interrupted(place.store)


CHANGES = {
    "rename": lambda p, r: changes.rename(p, r.run_id, "x"),
    "note": lambda p, r: changes.add_note(p, r.run_id, "x"),
    "edit": lambda p, r: changes.edit_note(p, r.run_id, 1, "y"),
    "delete note": lambda p, r: changes.delete_note(p, r.run_id, 1),
    "star": lambda p, r: changes.star(p, [r.run_id]),
    "archive": lambda p, r: changes.archive(p, [r.run_id]),
    "group": lambda p, r: changes.move_to_group(p, [r.run_id], "x"),
    "tag": lambda p, r: changes.tag_many(p, [r.run_id], {"a": "b"}),
    "save": lambda p, r: changes.save_search(p, "s", "mfu<3"),
    "forget": lambda p, r: changes.delete_search(p, "s"),
    "fact": lambda p, r: declare(r, {"chip": "v5e"}, "", p),
    "baseline": lambda p, r: set_baseline(p, "main", r.run_id),
    "no baseline": lambda p, r: remove(p, "main"),
    "promise": lambda p, r: promise(r, None, [], p),
    "bin": lambda p, r: changes.bin_many(p, [r.run_id]),
    "restore": lambda p, r: changes.restore(p, [r.run_id]),
}


def test_every_change_is_refused_to_a_viewer_and_done_by_an_uploader(place, run):
    for identity in (VIEWER, NOBODY):
        for change in CHANGES.values():
            with acting_as(identity), pytest.raises(NotAllowed, match="may not .*an uploader's role"):
                change(place, run)
    assert place.store.find(run.run_id).manifest.name == run.manifest.name and not changes.notes(place, run.run_id)
    for change in CHANGES.values():
        with acting_as(UPLOADER):
            change(place, run)


def test_for_good_an_admin_alone_deletes(place, run):
    with acting_as(UPLOADER), pytest.raises(NotAllowed, match="delete a run for good"):
        changes.bin_many(place, [run.run_id], now=True)
    assert place.store.has(run.run_id)
    with acting_as(ADMIN):
        changes.bin_many(place, [run.run_id], now=True)
    assert not place.store.has(run.run_id)


def test_the_command_line_and_a_server_without_identity_may_all(place, run):
    assert who() is SERVER and who().role is Role.ADMIN
    with acting_as(OPEN):
        changes.add_note(place, run.run_id, "x", who="me")
        assert named("me") == "me"
    assert changes.notes(place, run.run_id)[0].who == "me"


def test_what_is_said_is_kept_under_the_name_that_is_known(place, run):
    with acting_as(UPLOADER):
        changes.add_note(place, run.run_id, "x", who="the boss")
        declare(run, {"chip": "v5e"}, "the boss", place)
    assert changes.notes(place, run.run_id)[0].who == "up@corp.example"
    assert place.registry.declarations(run.run_id)[0].who == "up@corp.example"
    with acting_as(Identity(name="x" * 300, role=Role.ADMIN, how="oidc")):
        changes.add_note(place, run.run_id, "y")


def test_a_page_knows_for_whom_it_is_drawn_where_no_script_stands_around_it():
    """A callback, or a part of a page, runs in a thread in which nobody said `acting_as`."""
    told_by_pages(lambda: VIEWER if threading.current_thread().name == "page" else None)
    seen = []
    for name in ("page", "other"):
        thread = threading.Thread(target=lambda: seen.append(who()), name=name)
        thread.start()
        thread.join()
    assert seen == [VIEWER, SERVER]
    with acting_as(ADMIN):
        assert who() is ADMIN
    with acting_as(NOBODY):
        assert not who().sees_all, "whoever is not known sees nothing"


def test_what_a_page_changes_is_told_once_with_its_outcome():
    told = []
    noted_by(lambda *entry: told.append(entry))

    @changing("try it")
    def change(about, fail=False):
        if fail:
            raise ValueError("no")
        return about

    with acting_as(UPLOADER):
        assert change("run-1") == "run-1"
        with pytest.raises(ValueError):
            change(["a", "b"], fail=True)
        with already_noted():
            change("told by the guard")
    with acting_as(VIEWER), pytest.raises(NotAllowed):
        change("run-2")
    change("by the server")
    assert [(e[0].name, e[1], e[2], e[3]) for e in told] == [
        ("up@corp.example", "try it", "run-1", "done"),
        ("up@corp.example", "try it", "a, b", "failed"),
        ("vi", "try it", "run-2", "refused"),
    ]


def test_a_refusal_is_one_sentence():
    with acting_as(VIEWER), pytest.raises(NotAllowed) as refused:
        need(Role.ADMIN, "delete a run for good")
    assert str(refused.value) == (
        "vi, whose role is viewer, may not delete a run for good; expected an admin's role. An admin can give it."
    )


def test_buttons_that_change_something_cannot_be_pressed_by_a_viewer():
    with acting_as(VIEWER):
        assert held("why")["disabled"] and "role" in (held()["help"] or "")
        assert [a["act"] for a in acts(MENU)] == ["note"] and acts(BINNED) == []
    with acting_as(UPLOADER):
        assert held("why") == {"disabled": False, "help": "why"}
        assert [a["act"] for a in acts(BINNED)] == ["restore"]
    assert [a["act"] for a in acts(BINNED)] == ["restore", "gone"]


def test_the_header_of_pages_is_the_guards_alone():
    forged = base64.urlsafe_b64encode(json.dumps(["root", 3, [], "oidc", ""]).encode())
    given = [(b"host", b"here"), (RAW, forged), (b"X-Chipledger-Identity", forged), (b"x-secret", b"s")]
    headers = with_identity(given, UPLOADER, [b"x-secret"])
    assert [name for name, _ in headers] == [b"host", RAW] and read(headers[1][1].decode()) == UPLOADER
    odd = Identity(name='é"\r\nX: y', role=Role.VIEWER, groups=frozenset(("a,b", "ü")), how="oidc")
    value = with_identity([], odd)[0][1]
    assert b"\r" not in value and b"\n" not in value and read(value.decode()) == odd and RAW.decode() == NAME


def test_an_open_server_warns(monkeypatch):
    for value, says in (("1", True), ("0", False), ("", False), ("yes", False)):
        monkeypatch.setenv(OPEN_VARIABLE, value)
        assert bool(warning()) == says
    monkeypatch.delenv(OPEN_VARIABLE)
    assert not warning()


def test_of_many_runs_it_is_told_what_was_done_to_them():
    """An entry has room for 300 characters, which are four ids."""
    ids = [f"{n:064}" for n in range(100)]
    with already_noted() as told:
        changing("say who sees runs")(lambda place, runs, groups: None)(None, ids, ["platform"])
        changing("mark runs")(lambda place, runs, labels: None)(None, ids[:5], {"starred": True, "tags": {}})
    assert told == [
        f"say who sees runs: {', '.join(ids[:3])}, and 97 more, platform",
        f"mark runs: {', '.join(ids[:3])}, and 2 more, starred, tags",
    ]
    assert all(len(f"PATCH /api/runs; {one}") <= TEXT for one in told)
