"""Several people at one run over HTTP: deleting, bringing back, renaming, noting and saying facts at the same time."""

import threading
from collections import Counter

import pytest

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, request, serving

ROUNDS = 40


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    run = made_runs.interrupted(Store(store))
    with serving(store) as address:
        yield address, f"{address}/api/runs/{run.run_id}"


def at_once(*acts):
    """(act, status, answer) of each act, ROUNDS times in a thread of its own."""
    told = []

    def again(number, act):
        told.extend((number, *act(n)) for n in range(ROUNDS))

    threads = [threading.Thread(target=again, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == ROUNDS * len(acts)
    return told


def sentences(told):
    """What was refused, each in a sentence; none is a defect, and none denies a run that is there."""
    refused = [(status, answer) for _, status, answer in told if status != 200]
    assert {status for status, _ in refused} <= {400, 404}
    said = {answer["error"] for _, answer in refused}
    assert not [one for one in said if "in this store" in one or "\n" in one]
    return said


def test_many_who_delete_and_bring_back_are_all_told(served):
    address, run = served
    delete, restore = (lambda n: request("DELETE", f"{run}?who=ann"), lambda n: request("POST", f"{run}/restore", {}))
    said = sentences(at_once(delete, delete, delete, restore, restore, restore))
    assert all("in the bin" in one for one in said)
    request("POST", f"{run}/restore", {})
    assert request("DELETE", f"{run}?who=ann")[0] == 200
    [lying] = get(f"{address}/api/bin")[1]["bin"]
    assert lying["who"] == "ann" and request("POST", f"{run}/restore", {})[0] == 200
    assert get(run)[1]["run_id"] == lying["run_id"]


def test_what_is_said_while_others_delete_is_kept_where_it_was_confirmed_and_only_there(served):
    _, run = served
    told = at_once(
        lambda n: request("DELETE", run),
        lambda n: request("POST", f"{run}/restore", {}),
        lambda n: request("POST", f"{run}/notes", {"text": f"note {n}", "who": "ann"}),
        lambda n: request("PATCH", run, {"name": f"a{n}", "tags": {f"said-{n}": "x"}, "who": "bob"}),
        lambda n: request("PATCH", f"{run}/facts", {"chips": 100 + n, "who": "cid"}),
    )
    sentences(told)
    request("POST", f"{run}/restore", {})
    confirmed = Counter(act for act, status, _ in told if status == 200)
    assert len(get(f"{run}/notes")[1]["notes"]) == confirmed[2]
    details = get(run)[1]
    assert len(details["renames"]) == sum(t.startswith("said-") for t in details["tags"]) == confirmed[3]
    assert len(get(f"{run}/facts")[1]["history"]) >= confirmed[4]


def test_of_two_who_rename_what_they_saw_one_is_told_of_the_other(served):
    _, run = served
    seen = get(run)[1]["name"]
    told = [request("PATCH", run, {"name": name, "was": seen}) for name in ("mine", "yours")]
    assert [status for status, _ in told] == [200, 400] and "mine" in told[1][1]["error"]
    assert get(run)[1]["name"] == "mine"
