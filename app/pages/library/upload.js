import { isOpen, json } from "../../components/ask.js";
import { part } from "../../components/parts.js";
import { bytes, count } from "./uploading/block.js";
import { dropped } from "./uploading/found.js";
import { dismiss, isDismissed, isOurs } from "./uploading/kept.js";
import { Work, workOf } from "./uploading/work.js";

/** @import { Job } from "../../components/ask.js" */
/** @import { Found } from "./uploading/found.js" */
/** @import { Ends } from "./uploading/work.js" */

/** An upload that became no run. @typedef {{ upload_id: string, files: number, bytes: number, names: string[], kept_until_ns: number }} Unused */
/** @typedef {{ prefixes: string[] }} Given */
/**
 * What this tab has at hand, whichever page it shows.
 * @typedef {object} Tab
 * @property {Work[]} works
 * @property {Element | null} place where they are drawn now
 * @property {StreamlitComponent<Given>["setTriggerValue"] | null} tell
 * @property {() => void} look asks for the uploads that became no run
 */

const ENDED_SHOWN_NS = 15 * 60 * 1e9; // how long a job of this browser that ended is shown after a reload
const HOW = "chipledger serve --ingest-from /data --ingest-from gs://bucket/runs";

/** @type {Tab} */
const tab = { works: [], place: null, tell: null, look: () => {} };

/** @param {BeforeUnloadEvent} event */
const leave = (event) => {
  if (!tab.works.some((work) => work.sends)) return; // what is being read goes on without the page
  event.preventDefault();
  event.returnValue = "";
};
window.addEventListener("beforeunload", leave);

/** @type {Ends} */
const ends = {
  added(work, run, warnings) {
    if (!tab.place?.isConnected || tab.works.some((other) => other.sends)) return; // the person is elsewhere, or not done
    if (work.job) dismiss(work.job);
    tab.works = tab.works.filter((other) => other !== work);
    tab.tell?.("ingested", { run_id: run, warnings });
  },
  gone(work) {
    tab.works = tab.works.filter((other) => other !== work);
    tab.look();
  },
};

/** @param {Work} work */
function begin(work) {
  tab.works.unshift(work);
  tab.place?.prepend(work.block.element);
}

/** Jobs that run already, and those of this browser that ended a while ago. */
async function find() {
  /** @type {{ jobs: Job[] }} */
  const { jobs } = await json("GET", "/api/jobs");
  const known = new Set(tab.works.map((work) => work.job));
  for (const job of jobs.filter((one) => one.what === "ingest").reverse()) {
    if (known.has(job.job_id) || isDismissed(job.job_id)) continue;
    if (!isOpen(job) && !(isOurs(job.job_id) && Date.now() * 1e6 - (job.ended_ns ?? 0) < ENDED_SHOWN_NS)) continue;
    const work = new Work(job.title || "An upload", { ...ends, added: () => {} }); // it was begun on another page
    work.name = job.name || "";
    begin(work);
    work.follow(job.job_id);
  }
}

/** @param {StreamlitComponent<Given>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  /** @param {string} selector */
  const $ = (selector) => part(parentElement, selector, HTMLElement);
  /** @param {string} selector */
  const input = (selector) => part(parentElement, selector, HTMLInputElement);
  /** @type {HTMLElement & { ready?: boolean }} */
  const box = $(".box");
  tab.tell = setTriggerValue;
  if (box.ready) return; // a rerun of the page must not disturb an upload that runs
  box.ready = true;
  tab.place = $(".works");
  tab.place.replaceChildren(...tab.works.map((work) => work.block.element));
  find().catch(() => {});

  async function unused() {
    /** @type {{ uploads: Unused[] }} */
    const { uploads } = await json("GET", "/api/uploads");
    const held = new Set(tab.works.map((work) => work.upload)); // these say so themselves
    const left = uploads.filter((one) => !held.has(one.upload_id));
    $(".unused").hidden = !left.length;
    $(".unused summary").textContent = `${count(left.length, "upload")} became no run`;
    $(".unused ul").replaceChildren(...left.map(row));
  }
  tab.look = () => void unused().catch(() => {});
  tab.look();

  /** @param {Unused} one */
  function row(one) {
    const item = document.createElement("li"),
      name = document.createElement("bdi");
    const more = one.files > one.names.length ? ` and ${count(one.files - one.names.length, "file")} more` : "";
    const until = new Date(one.kept_until_ns / 1e6).toLocaleDateString("en-GB", { dateStyle: "medium" });
    name.textContent = `${one.names.join(", ")}${more}, ${bytes(one.bytes)}, kept until ${until}`;
    item.append(name);
    /** @param {string} label @param {() => void} act */
    const button = (label, act) => {
      const made = document.createElement("button");
      Object.assign(made, { type: "button", textContent: label, onclick: act });
      made.setAttribute("aria-label", `${label}: ${one.names[0] ?? ""}`);
      item.append(made);
    };
    button("Read it again", () => {
      const work = new Work(one.names[0] ?? "", ends);
      work.upload = one.upload_id;
      begin(work);
      item.remove();
      work.read({ upload_id: one.upload_id });
    });
    button("Discard", () => {
      item.remove();
      json("DELETE", "/api/uploads/" + one.upload_id)
        .catch(() => {})
        .then(tab.look);
    });
    return item;
  }

  /** @param {Found[]} found */
  function start(found) {
    if (!found.length) {
      const work = new Work("Nothing chosen", ends);
      begin(work);
      return work.failed("There is no file in what was chosen.", []);
    }
    const work = workOf(found, input(".name").value.trim(), ends);
    input(".name").value = "";
    begin(work);
    work.files(found);
  }

  const zone = $(".drop");
  /** @param {string} selector */
  const take = (selector) => {
    const field = input(selector);
    /** @type {Found[]} */
    const found = [...(field.files ?? [])].map((file) => [file.webkitRelativePath || file.name, file]);
    field.value = "";
    if (found.length) start(found);
  };
  $(".files").onclick = () => $(".pick").click();
  $(".folder").onclick = () => $(".pickfolder").click();
  for (const [button, pick] of [
    [".files", ".pick"],
    [".folder", ".pickfolder"],
  ]) {
    $(pick).onchange = () => take(pick);
    part(parentElement, button, HTMLButtonElement).disabled = false; // drawn before anything listens to it
    take(pick); // what was chosen by then
  }
  zone.ondragover = (event) => {
    event.preventDefault();
    zone.classList.add("over");
  };
  zone.ondragleave = () => zone.classList.remove("over");
  zone.ondrop = async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer) start(await dropped(event.dataTransfer));
  };

  const prefixes = data.prefixes;
  $(".from form").hidden = !prefixes.length;
  $(".from .where").textContent = prefixes.length
    ? `A folder, file or glob below ${prefixes.join(", ")}.`
    : `This server reads files that are sent to it alone. Who starts it can allow folders and buckets: ${HOW}`;
  input(".address").placeholder = prefixes[0] ? `${prefixes[0]}/run-1/**/*.log` : "";
  $(".from form").onsubmit = (event) => {
    event.preventDefault();
    const address = input(".address").value.trim();
    if (!address) return;
    const work = new Work(address, ends);
    work.name = input(".name").value.trim();
    begin(work);
    work.read({ address, name: work.name });
  };
}
