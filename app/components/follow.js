import { cancelJob, isOpen, jobNow, json, words } from "./ask.js";
import { part } from "./parts.js";

const POLL_MS = 500;

/** @import { Job } from "./ask.js" */

/**
 * @typedef {object} Asked
 * @property {string} key once for each the job is begun
 * @property {string} address
 * @property {unknown} body
 * @property {string} job id of one that runs already; empty: none
 */

/** @param {StreamlitComponent<Asked | null>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  /** @param {string} selector */
  const $ = (selector) => part(parentElement, selector, HTMLElement);
  /** @type {HTMLElement & { tell?: typeof setTriggerValue, asked?: string }} */
  const box = $(".box");
  const said = $(".said");
  const bar = part(parentElement, "progress", HTMLProgressElement);
  /** @type {typeof setTriggerValue} */
  const tell = (name, value) => box.tell?.(name, value); // of the page's latest run
  box.tell = setTriggerValue;
  if (!data || box.asked === data.key) return; // a rerun of the page must not begin the job once more
  box.asked = data.key;
  const mine = () => box.asked === data.key;
  let id = data.job;

  async function follow() {
    if (!data) return;
    said.hidden = true;
    box.hidden = false;
    $(".doing").textContent = "Starting";
    const began = performance.now();
    try {
      /** @type {Job} */
      let job = id ? await jobNow(id) : await json("POST", data.address, data.body);
      if (!id) {
        id = job.job_id;
        tell("begun", id);
      }
      while (isOpen(job)) {
        const done = job.progress == null || job.progress >= 1 ? null : job.progress;
        const waits = job.state !== "running";
        $(".doing").textContent = job.doing || (waits ? "Waiting for other work of this server" : "Working");
        if (done === null) bar.removeAttribute("value");
        else bar.value = done;
        $(".detail").textContent = Math.round((performance.now() - began) / 1000) + " s";
        await new Promise((ok) => setTimeout(ok, POLL_MS));
        if (!mine()) return;
        job = await jobNow(id);
      }
      if (job.state !== "done") throw new Error(job.error || "Cancelled. Nothing was added.");
      box.hidden = true;
      tell("done", job.run_id);
    } catch (error) {
      if (!mine()) return;
      box.hidden = true;
      said.textContent = words(error);
      said.hidden = false;
      tell("failed", words(error));
    }
  }
  $(".cancel").onclick = () => {
    if (id) cancelJob(id);
  };
  follow();
}
