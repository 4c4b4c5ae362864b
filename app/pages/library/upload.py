"""Adding a run from the browser: drop files or folders, watch them arrive, be taken to the ledger.

The files go straight to the server's disk (`PUT /upload/...`), never through the page's session.
"""

import streamlit as st

_HTML = """
<div class="box">
  <div class="drop" role="group" aria-label="Add a run">
    <p class="invite"><b>Drop profiles and logs here</b>
      <span>xplane.pb, goodput entries, training logs: one or many files, or a whole folder make one run</span></p>
    <p class="buttons">
      <button type="button" class="files">Choose files</button>
      <button type="button" class="folder">Choose a folder</button>
      <input class="name" type="text" maxlength="200" placeholder="Name of the run (optional)"
             aria-label="Name of the run (optional)">
    </p>
    <input class="pick" type="file" multiple hidden>
    <input class="pickfolder" type="file" webkitdirectory hidden>
  </div>
  <div class="work" hidden>
    <p class="doing" role="status"></p>
    <progress max="1"></progress>
    <p class="detail"></p>
    <p class="buttons"><button type="button" class="cancel">Cancel</button></p>
  </div>
  <div class="end" hidden>
    <p role="alert"><b class="outcome" hidden>No run was added.</b> <span class="said"></span></p>
    <p class="buttons"><a class="open" hidden>Open its ledger</a>
      <button type="button" class="again">Add another run</button></p>
  </div>
</div>
"""
_CSS = """
.box { font-family: var(--st-font); color: var(--st-text-color); font-size: 0.95rem; }
.drop, .work, .end {
  border: 1.5px dashed var(--st-border-color); border-radius: var(--st-base-radius, 0.5rem); padding: 0.9rem 1.1rem;
  background: var(--st-secondary-background-color);
}
.work, .end { border-style: solid; }
.end.failed { border-color: var(--st-orange-color, #c77700); }
.drop.over { border-color: var(--st-primary-color); border-style: solid; }
[hidden] { display: none !important; }
p { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
p:last-child { margin-bottom: 0; }
.invite span { display: block; opacity: 0.75; font-size: 0.875rem; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
button, .open, .name {
  font: inherit; font-size: 0.875rem; color: inherit; background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem); padding: 0.3rem 0.75rem;
  text-decoration: none;
}
button, .open { cursor: pointer; }
.name { flex: 1 1 14rem; max-width: 26rem; min-width: 0; }
.name::placeholder { color: inherit; opacity: 0.6; }
button:hover, .open:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
progress { width: 100%; height: 0.6rem; accent-color: var(--st-primary-color); margin-bottom: 0.4rem; }
.detail { opacity: 0.75; font-size: 0.875rem; font-variant-numeric: tabular-nums; min-height: 1.3em; }
"""
_JS = """
const RETRIES = 2, POLL_MS = 300;

function bytes(n) {
  for (const [factor, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (n >= factor) return (n / factor).toPrecision(3) + " " + unit;
  return n + " bytes";
}

async function json(method, address, body) {
  const answer = await fetch(address, {
    method, body: body && JSON.stringify(body), headers: body ? { "Content-Type": "application/json" } : {},
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error || `The server answered ${answer.status}.`);
  return said;
}

// Every file below what was dropped, with its path; browsers list a folder in portions.
async function walk(entry, path, found) {
  if (entry.isFile) {
    found.push([path + entry.name, await new Promise((ok, no) => entry.file(ok, no))]);
  } else {
    const reader = entry.createReader();
    for (;;) {
      const portion = await new Promise((ok, no) => reader.readEntries(ok, no));
      if (!portion.length) break;
      for (const inner of portion) await walk(inner, path + entry.name + "/", found);
    }
  }
}

async function dropped(transfer) {
  const found = [], loose = [], entries = [];
  for (const item of transfer.items || []) {      // read before the first await: the list is emptied after the event
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry && item.webkitGetAsEntry();
    if (entry) entries.push(entry); else loose.push(item.getAsFile());
  }
  for (const entry of entries) await walk(entry, "", found);
  for (const file of loose) if (file) found.push([file.name, file]);
  return found;
}

function put(address, file, onprogress, control) {
  return new Promise((ok, no) => {
    const request = new XMLHttpRequest();
    control.request = request;
    request.open("PUT", address);
    request.upload.onprogress = (event) => onprogress(event.loaded);
    request.onload = () => {
      if (request.status < 300) return ok();
      let said = "";
      try { said = JSON.parse(request.responseText).error; } catch { /* not ours */ }
      const error = new Error(said || `The server answered ${request.status}.`);
      error.final = true;
      no(error);
    };
    request.onerror = () => no(new Error("The connection to the server was lost."));
    request.onabort = () => no(Object.assign(new Error("Cancelled."), { final: true }));
    request.send(file);
  });
}

export default function ({ parentElement, setTriggerValue }) {
  const $ = (selector) => parentElement.querySelector(selector);
  const box = $(".box");
  box.tell = setTriggerValue;
  if (box.ready) return;                                // a rerun of the page must not disturb an upload that runs
  box.ready = true;
  const control = { cancelled: false, request: null, upload: null, job: null };
  const leave = (event) => { event.preventDefault(); event.returnValue = ""; };

  function show(part) {
    for (const name of ["drop", "work", "end"]) $("." + name).hidden = name !== part;
  }
  function say(doing, part, detail) {
    $(".doing").textContent = doing;
    const bar = $("progress");
    if (part == null) bar.removeAttribute("value"); else bar.value = part;
    $(".detail").textContent = detail || "";
  }
  function finish(text, run, failed = false) {
    window.removeEventListener("beforeunload", leave);
    $(".end").classList.toggle("failed", failed);
    $(".outcome").hidden = !failed;
    $(".said").textContent = text;
    $(".open").hidden = !run;
    if (run) $(".open").href = "/ledger?run=" + encodeURIComponent(run);
    show("end");
    (run ? $(".open") : $(".again")).focus();
  }

  async function send(found) {
    const total = found.reduce((sum, [, file]) => sum + file.size, 0);
    const began = performance.now();
    let done = 0;
    control.upload = (await json("POST", "/api/uploads")).upload_id;
    for (const [number, [path, file]] of found.entries()) {
      const address = "/upload/" + control.upload + "/" +
        path.replace(/[\\\\\\x00-\\x1f]/g, "_").split("/").filter(Boolean).map(encodeURIComponent).join("/");
      const progress = (loaded) => {
        const now = done + Math.min(loaded, file.size), seconds = (performance.now() - began) / 1000;
        const rate = seconds > 0.5 ? ` at ${bytes(Math.round(now / seconds))}/s` : "";
        say(`Uploading ${path} (${number + 1} of ${found.length})`, total ? now / total : null,
            `${bytes(now)} of ${bytes(total)}${rate}`);
      };
      progress(0);
      for (let attempt = 0; ; attempt++) {
        if (control.cancelled) throw new Error("Cancelled.");
        try { await put(address, file, progress, control); break; } catch (error) {
          if (error.final || attempt >= RETRIES) throw error;
          await new Promise((ok) => setTimeout(ok, 1000 * (attempt + 1)));
        }
      }
      done += file.size;
    }
  }

  async function read() {
    let job = await json("POST", "/api/ingest", { upload_id: control.upload, name: $(".name").value });
    control.job = job.job_id;
    while (job.state === "waiting" || job.state === "running") {
      say(job.state === "waiting" ? "Waiting for other runs to be read" : "Reading " + (job.doing || "the files"),
          job.progress, job.progress == null ? "" : Math.round(100 * job.progress) + " % read");
      await new Promise((ok) => setTimeout(ok, POLL_MS));
      if (control.cancelled) throw new Error("Cancelled.");
      job = await json("GET", "/api/jobs/" + control.job);
    }
    if (job.state !== "done") throw new Error(job.error || "Cancelled.");
    return job;
  }

  async function start(found) {
    if (!found.length) return finish("There is no file in what was chosen.");
    Object.assign(control, { cancelled: false, request: null, upload: null, job: null });
    show("work");
    window.addEventListener("beforeunload", leave);
    say("Preparing", null);
    try {
      await send(found);
      const job = await read();
      const warnings = job.warnings.length;
      const some = warnings === 1 ? "1 warning" : warnings + " warnings";
      const told = warnings ? ` with ${some}: ${job.warnings.slice(0, 5).join(" ")}` : ".";
      finish("The run was added" + told, job.run_id);
      $(".name").value = "";
      box.tell("ingested", { run_id: job.run_id, warnings });
    } catch (error) {
      if (control.cancelled && control.upload && !control.job)
        await json("DELETE", "/api/uploads/" + control.upload).catch(() => {});
      if (control.cancelled) finish("Cancelled. Nothing was added."); else finish(error.message, null, true);
    }
  }

  async function cancel() {
    control.cancelled = true;
    if (control.request) control.request.abort();
    if (control.job) await json("DELETE", "/api/jobs/" + control.job).catch(() => {});
  }

  const zone = $(".drop");
  const chosen = (event) => {
    const found = [...event.target.files].map((file) => [file.webkitRelativePath || file.name, file]);
    event.target.value = "";
    if (found.length) start(found);
  };
  $(".files").onclick = () => $(".pick").click();
  $(".folder").onclick = () => $(".pickfolder").click();
  $(".pick").onchange = chosen;
  $(".pickfolder").onchange = chosen;
  $(".cancel").onclick = cancel;
  $(".again").onclick = () => { show("drop"); $(".files").focus(); };
  zone.ondragover = (event) => { event.preventDefault(); zone.classList.add("over"); };
  zone.ondragleave = () => zone.classList.remove("over");
  zone.ondrop = async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    start(await dropped(event.dataTransfer));
  };
}
"""

_upload = st.components.v2.component("chipledger_upload", html=_HTML, css=_CSS, js=_JS)


def upload() -> str | None:
    """The upload area; returns the id of a run once, right after it was added."""
    result = _upload(key="upload", on_ingested_change=lambda: None)
    return result.ingested["run_id"] if result.ingested else None
