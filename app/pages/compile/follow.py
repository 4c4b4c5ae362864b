"""A job of the server followed from a page: begun by a POST, its progress shown, cancelled on a click."""

from typing import Any

import streamlit as st

_HTML = """
<div class="box" hidden>
  <p class="doing" role="status"></p>
  <progress max="1"></progress>
  <p class="detail"></p>
  <button type="button" class="cancel">Cancel</button>
</div>
<p class="said" role="alert" hidden></p>
"""
_CSS = """
.box { font-family: var(--st-font); color: var(--st-text-color); font-size: 0.95rem;
  border: 1.5px dashed var(--st-border-color); border-radius: var(--st-base-radius, 0.5rem); padding: 0.8rem 1.1rem;
  background: var(--st-secondary-background-color); }
.box[hidden], .said[hidden] { display: none; }
p { margin: 0 0 0.4rem; }
.said { color: var(--st-text-color); border-left: 3px solid #c77700; padding: 0.3rem 0.8rem;
  font-family: var(--st-font); overflow-wrap: anywhere; }
progress { width: 100%; height: 0.6rem; accent-color: var(--st-primary-color); }
.detail { opacity: 0.75; font-size: 0.875rem; font-variant-numeric: tabular-nums; min-height: 1.3em; }
button { font: inherit; color: inherit; background: transparent; cursor: pointer; padding: 0.3rem 0.75rem;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem); }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""
_JS = """
const POLL_MS = 500;

async function json(method, address, body) {
  const answer = await fetch(address, {
    method, body: body && JSON.stringify(body), headers: body ? { "Content-Type": "application/json" } : {},
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error || `The server answered ${answer.status}.`);
  return said;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const $ = (selector) => parentElement.querySelector(selector);
  const box = $(".box"), said = $(".said");
  box.tell = setTriggerValue;
  if (!data || box.asked === data.key) return;           // a rerun of the page must not begin the job once more
  box.asked = data.key;
  const mine = () => box.asked === data.key;
  let id = data.job;

  async function follow() {
    said.hidden = true;
    box.hidden = false;
    $(".doing").textContent = "Starting";
    const began = performance.now();
    try {
      let job = id ? await json("GET", "/api/jobs/" + id) : await json("POST", data.address, data.body);
      if (!id) { id = job.job_id; box.tell("begun", id); }
      while (job.state === "waiting" || job.state === "running") {
        const part = job.progress == null || job.progress >= 1 ? null : job.progress;
        const waits = job.state === "waiting";
        $(".doing").textContent = waits ? "Waiting for other work of this server" : job.doing || "Working";
        if (part == null) $("progress").removeAttribute("value"); else $("progress").value = part;
        $(".detail").textContent = Math.round((performance.now() - began) / 1000) + " s";
        await new Promise((ok) => setTimeout(ok, POLL_MS));
        if (!mine()) return;
        job = await json("GET", "/api/jobs/" + id);
      }
      if (job.state !== "done") throw new Error(job.error || "Cancelled. Nothing was added.");
      box.hidden = true;
      box.tell("done", job.run_id);
    } catch (error) {
      if (!mine()) return;
      box.hidden = true;
      said.textContent = error.message;
      said.hidden = false;
      box.tell("failed", error.message);
    }
  }
  $(".cancel").onclick = () => id && json("DELETE", "/api/jobs/" + id).catch(() => {});
  follow();
}
"""

_follow = st.components.v2.component("chipledger_follow", html=_HTML, css=_CSS, js=_JS)


def follow(key: str, address: str, body: dict[str, Any] | None, job: str = "") -> tuple[str | None, str | None, bool]:
    """Begin a job with POST `address` once for each `key`, or go on with `job`.

    Returns (id of the job just begun, id of the run it just made, whether it just failed). What was said of a failure
    stays on the page.
    """
    told = _follow(
        key="follow",
        data={"key": key, "address": address, "body": body, "job": job},
        on_begun_change=lambda: None,
        on_done_change=lambda: None,
        on_failed_change=lambda: None,
    )
    return told.begun, told.done, bool(told.failed)
