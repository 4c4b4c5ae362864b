"""From files in a browser to the ledger of a new run, by picking and by dropping."""

import base64
import re

from playwright.sync_api import expect

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get

DROP = """async ([box, name, text]) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  for (const kind of ['dragenter', 'dragover', 'drop'])
    box.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: transfer}));
}"""
ASKED = re.compile(r"/facts\?.*run=[0-9a-f]+")  # what the log does not tell is asked for first
LATE = """const url = URL.createObjectURL;
URL.createObjectURL = (blob) => url(blob.type.includes('javascript') ?
  new Blob(['await new Promise((done) => setTimeout(done, 3000));', blob], {type: blob.type}) : blob);"""
WATCH = """() => { window.parts = [];
  const find = (root) => root.querySelector?.('progress') ||
    [...root.querySelectorAll('*')].map((e) => e.shadowRoot && find(e.shadowRoot)).find(Boolean);
  const look = (bar) => { if (bar?.hasAttribute('value')) window.parts.push(bar.value); };
  setInterval(() => look(find(document)), 20); }"""


def test_a_picked_file_shows_progress_and_lands_on_its_ledger(visit, server, store):
    page = visit(server)
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()
    page.get_by_label("Name of the run (optional)").fill("picked run")
    page.evaluate(WATCH)
    page.locator("input.pick").set_input_files(
        [{"name": "goodput.jsonl", "mimeType": "application/json", "buffer": made_runs.goodput_log(4000)}]
    )
    expect(page).to_have_url(ASKED)
    page.get_by_role("button", name="Skip").click()
    expect(page).to_have_url(re.compile(r"/findings\?run=[0-9a-f]+"))
    expect(page.get_by_role("heading", name="picked run")).to_be_visible()
    expect(page.get_by_text("of the chip time").first).to_be_visible()
    run_id = page.url.partition("run=")[2]
    status, told = get(f"{server}/api/runs/{run_id}")
    assert status == 200 and told["tables"]["steps"] == 4000
    kept = list(store.glob("uploads/*/files/goodput.jsonl"))
    assert made_runs.goodput_log(4000) in [p.read_bytes() for p in kept]


def test_what_is_chosen_before_the_page_listens_is_added_too(visit, server):
    page = visit("about:blank")
    page.add_init_script(LATE)
    page.goto(server)
    expect(page.get_by_role("button", name="Choose files")).to_be_disabled()
    expect(page.get_by_role("button", name="Choose a folder")).to_be_disabled()
    page.locator("input.pick").set_input_files(
        [{"name": "early.jsonl", "mimeType": "application/json", "buffer": made_runs.goodput_log(40, "early")}]
    )
    expect(page).to_have_url(ASKED)


def test_progress_moves_while_bytes_go_out(visit, server):
    page = visit(server)
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 5, "downloadThroughput": -1, "uploadThroughput": 400_000},
    )
    page.evaluate(WATCH)
    page.locator("input.pick").set_input_files(
        [{"name": "slow.jsonl", "mimeType": "application/json", "buffer": made_runs.goodput_log(4500, "slow")}]
    )
    expect(page.get_by_text(re.compile("Uploading slow.jsonl"))).to_be_visible()
    page.wait_for_function("() => window.parts.some((p) => p > 0.05 && p < 0.95)")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled. Nothing was added.")).to_be_visible()


def test_a_large_file_goes_on_from_the_piece_at_which_its_connection_broke_off(visit, server, store):
    page, asked = visit(server), []
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()

    def cut(route):
        offset = route.request.headers.get("upload-offset", "")
        asked.append((route.request.method, offset))
        if route.request.method == "PATCH" and [a for a in asked if a[0] == "PATCH"][1:] == [("PATCH", offset)]:
            return route.abort()
        return route.continue_()

    page.route(re.compile("/api/uploads/.*/files"), cut)
    data = made_runs.goodput_log(60_000, "pieces")
    page.locator("input.pick").set_input_files(
        [{"name": "pieces.jsonl", "mimeType": "application/json", "buffer": data}]
    )
    expect(page).to_have_url(re.compile(r"[?&]run=[0-9a-f]+"), timeout=60_000)
    offsets = [offset for method, offset in asked if method == "PATCH"]
    assert offsets[0] == "0" and offsets[1] == offsets[2] == str(8 << 20), "the second piece alone came twice"
    assert "HEAD" in [method for method, _ in asked]
    assert data in [p.read_bytes() for p in store.glob("uploads/*/files/pieces.jsonl")]


def test_a_dropped_file_with_a_hostile_name_is_shown_as_text(visit, server, store):
    page = visit(server)
    page.get_by_role("button", name="Choose files").wait_for()
    name = "<img src=x onerror=alert(1)>.jsonl"
    text = base64.b64encode(made_runs.goodput_log(30, "dropped")).decode()
    page.locator(".drop").evaluate("(box, [name, text]) => (" + DROP + ")([box, name, text])", [name, text])
    expect(page).to_have_url(ASKED)
    page.get_by_role("button", name="Skip").click()
    expect(page).to_have_url(re.compile(r"/findings\?run=[0-9a-f]+"))
    page.get_by_text("How this is computed").click()
    expect(page.get_by_text(name).last).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert any(p.name == name for p in store.glob("uploads/*/files/*"))


def test_what_cannot_be_read_is_told_in_one_line_and_nothing_is_stored(visit, server, store):
    page = visit(server)
    page.get_by_role("button", name="Choose files").wait_for()
    before = set(Store(store).ids())
    page.locator("input.pick").set_input_files(
        [{"name": "holiday.txt", "mimeType": "text/plain", "buffer": b"sun and sea\n"}]
    )
    expect(page.get_by_text("No run was added")).to_be_visible()
    expect(page.get_by_text("Looks like text without a line that a reader knows.").first).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("No run was added")).to_have_count(0)
    assert set(Store(store).ids()) == before


def test_a_folder_keeps_its_inner_paths(visit, server, store, tmp_path):
    inner = tmp_path / "my job" / "logs"
    inner.mkdir(parents=True)
    (inner / "goodput.jsonl").write_bytes(made_runs.goodput_log(25, "folder"))
    page = visit(server)
    page.get_by_role("button", name="Choose a folder").wait_for()
    page.locator("input.pickfolder").set_input_files(tmp_path / "my job")
    expect(page).to_have_url(ASKED)
    page.get_by_role("button", name="Skip").click()
    expect(page).to_have_url(re.compile(r"/findings\?run=[0-9a-f]+"))
    expect(page.get_by_role("heading", name="my job")).to_be_visible()
    assert list(store.glob("uploads/*/files/my job/logs/goodput.jsonl"))
