"""The pages You and People, and for whom somebody adds runs."""

import pytest
from streamlit.testing.v1 import AppTest

from app import sharing
from app.identity import asking, tokens
from app.identity.asking import acting_as
from app.identity.base import Role
from app.ingest_options import EVERYONE, GROUP
from app.pages.library.shown import MENU, offered
from app.pages.people.log import searched
from errors import InputError, QuestionError
from runs.audit_book import Entry
from tests.app import made_runs
from tests.app.groups_store import person
from tests.app.test_pages import opened, words

ANN, ROOT = person("llm", "infra", name="ann"), person(role=Role.ADMIN, name="root")


def page_of(page: str, asks, monkeypatch, **address) -> AppTest:
    monkeypatch.setattr(asking, "_pages", [lambda: asks] if asks else [])
    at = opened(f"pages/{page}/page.py", **address)
    assert not at.exception, at.exception
    return at


def test_who_is_signed_in_is_told_their_role_and_groups_and_chooses_for_whom_they_add(place, monkeypatch):
    at = page_of("you", ANN, monkeypatch)
    assert "You are ann, an uploader." in words(at) and "llm" in words(at) and "infra" in words(at)
    (choice,) = at.selectbox
    assert choice.options == ["all who are signed in", "members of infra, and admins", "members of llm, and admins"]
    choice.set_value("llm").run()
    assert not at.exception and place.shares.usual("ann") == "llm"
    assert not page_of("you", person("llm", role=Role.VIEWER), monkeypatch).selectbox


def test_where_nobody_is_known_the_pages_say_so(place, monkeypatch):
    for page in ("you", "people"):
        assert "Nobody is asked who they are here" in words(page_of(page, None, monkeypatch))


def test_the_page_of_people_is_for_admins(place, monkeypatch):
    for part in ("tokens", "people", "audit", "groups"):
        at = page_of("people", ANN, monkeypatch, show=part)
        assert "This page is for admins." in words(at) and not at.dataframe and not at.text_input


def test_a_token_is_made_told_once_and_revoked(place, monkeypatch):
    at = page_of("people", ROOT, monkeypatch)
    at.text_input[0].set_value("ci")
    at.button[0].click().run()
    (code,) = at.code
    assert code.value.startswith(tokens.PREFIX)
    (token,) = tokens.listed(place)
    assert (token.name, token.role, token.made_by, token.groups) == ("ci", "uploader", "root", ())
    again = page_of("people", ROOT, monkeypatch)
    assert not again.code and code.value not in repr(again)
    again.selectbox(key="revoke token").set_value(token.token_id).run()
    next(b for b in again.button if b.label == "Revoke it").click().run()
    assert tokens.listed(place)[0].state_at(0) == "revoked" and "No token can be used" in words(again)


def test_the_groups_of_runs_are_counted(place, monkeypatch):
    runs = [made_runs.interrupted(place.store, name).run_id for name in ("one", "two")]
    assert "No run belongs to a group" in words(page_of("people", ROOT, monkeypatch, show="groups"))
    place.shares.share(runs, ["llm"]), place.shares.add(runs[0], "infra")
    (table,) = page_of("people", ROOT, monkeypatch, show="groups").dataframe
    assert sorted(map(tuple, table.value.to_numpy().tolist())) == [("infra", 1), ("llm", 2)]


def test_entries_are_found_by_all_words():
    told = [Entry(what="rename a run", outcome="done", who="ann"), Entry(what="star runs", outcome="done", who="bob")]
    assert searched(told, "") == told and searched(told, "ANN rename") == told[:1] and searched(told, "ann star") == []


def test_the_menu_of_a_run_says_who_sees_it_where_people_are_known(place):
    first = [act["act"] for act in offered(MENU)]
    with acting_as(ANN):
        assert [act["act"] for act in offered(MENU)] == ["share", *first]
    with acting_as(person("llm", role=Role.VIEWER)):
        assert "share" not in [act["act"] for act in offered(MENU)]


FOR_WHOM = [
    (ANN, {}, [EVERYONE.flag]),
    (ANN, {"group": "llm"}, [f"{GROUP.flag}=llm"]),
    (ANN, {"group": "", "everyone": True}, [EVERYONE.flag]),
    (ROOT, {"group": "any"}, [f"{GROUP.flag}=any"]),
    (None, {}, []),
    (None, {"group": "any"}, [f"{GROUP.flag}=any"]),
]
REFUSED = [
    ({"group": "lmm"}, "you are not in group 'lmm'; expected one of your groups: infra, llm. Did you mean 'llm'?"),
    ({"group": "llm", "everyone": True}, "both a group and everyone"),
    ({"group": 3}, "'group' is not understood"),
    ({"everyone": "yes"}, "'everyone' is not understood"),
    ({"group": "x" * 10_000}, "a group's name of 10,000 characters"),
    ({"group": "a\0"}, "invisible character"),
]


@pytest.mark.parametrize(("asks", "given", "words"), FOR_WHOM)
def test_an_upload_is_for_whom_it_says_else_for_all(place, asks, given, words):
    with acting_as(asks) if asks else acting_as(asking.SERVER):
        assert sharing.flags(place, given) == words


@pytest.mark.parametrize(("given", "why"), REFUSED)
def test_an_upload_for_a_group_of_others_is_refused(place, given, why):
    with acting_as(ANN), pytest.raises((InputError, QuestionError)) as refused:
        sharing.flags(place, given)
    assert why in str(refused.value)


def test_an_upload_without_a_word_is_for_the_usual_group_and_never_for_all_by_mistake(place):
    with acting_as(ANN):
        assert sharing.set_usual_group(place, " llm ") == "llm"
        assert sharing.flags(place, {}) == [f"{GROUP.flag}=llm"]
        assert sharing.flags(place, {"everyone": True}) == [EVERYONE.flag]
        with pytest.raises(QuestionError, match="you are not in group 'ops'"):
            sharing.set_usual_group(place, "ops")
    with acting_as(person("infra", name="ann")), pytest.raises(QuestionError, match="are no longer in it"):
        sharing.flags(place, {})
    with pytest.raises(QuestionError, match="nobody is signed in"):
        sharing.set_usual_group(place, "llm")
