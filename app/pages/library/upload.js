import { cancelJob, jobNow, json, words } from "../../components/ask.js";
import { part } from "../../components/parts.js";

/** @import { Job } from "../../components/ask.js" */
/** A file with its path below what was chosen. @typedef {[path: string, file: File]} Found */
/**
 * What an upload that runs is about.
 * @typedef {object} Control
 * @property {boolean} cancelled
 * @property {XMLHttpRequest | null} request
 * @property {string | null} upload its id
 * @property {string | null} job id of the job that reads what arrived
 */

const RETRIES = 2,
  POLL_MS = 300;

/** @param {number} n */
function bytes(n) {
  for (const [factor, unit] of /** @type {const} */ ([
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ]))
    if (n >= factor) return (n / factor).toPrecision(3) + " " + unit;
  return n + " bytes";
}

/** A failure that trying again does not mend. */
class Final extends Error {}

/**
 * Every file below what was dropped, with its path; browsers list a folder in portions.
 * @param {FileSystemEntry} entry
 * @param {string} path
 * @param {Found[]} found
 */
async function walk(entry, path, found) {
  if (entry.isFile) {
    const one = /** @type {FileSystemFileEntry} */ (entry);
    found.push([path + one.name, await new Promise((ok, no) => one.file(ok, no))]);
  } else {
    const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
    for (;;) {
      /** @type {FileSystemEntry[]} */
      const portion = await new Promise((ok, no) => reader.readEntries(ok, no));
      if (!portion.length) break;
      for (const inner of portion) await walk(inner, path + entry.name + "/", found);
    }
  }
}

/** @param {DataTransfer} transfer */
async function dropped(transfer) {
  /** @type {Found[]} */
  const found = [];
  /** @type {(File | null)[]} */
  const loose = [];
  /** @type {FileSystemEntry[]} */
  const entries = [];
  for (const item of transfer.items || []) {
    // read before the first await: the list is emptied after the event
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry && item.webkitGetAsEntry();
    if (entry) entries.push(entry);
    else loose.push(item.getAsFile());
  }
  for (const entry of entries) await walk(entry, "", found);
  for (const file of loose) if (file) found.push([file.name, file]);
  return found;
}

/**
 * @param {string} address
 * @param {File} file
 * @param {(loaded: number) => void} onprogress
 * @param {Control} control
 * @returns {Promise<void>}
 */
function put(address, file, onprogress, control) {
  return new Promise((ok, no) => {
    const request = new XMLHttpRequest();
    control.request = request;
    request.open("PUT", address);
    request.upload.onprogress = (event) => onprogress(event.loaded);
    request.onload = () => {
      if (request.status < 300) return ok();
      let said = "";
      try {
        said = JSON.parse(request.responseText).error;
      } catch {
        /* not ours */
      }
      no(new Final(said || `The server answered ${request.status}.`));
    };
    request.onerror = () => no(new Error("The connection to the server was lost."));
    request.onabort = () => no(new Final("Cancelled."));
    request.send(file);
  });
}

/** @param {StreamlitComponent<null>} component */
export default function ({ parentElement, setTriggerValue }) {
  /** @param {string} selector */
  const $ = (selector) => part(parentElement, selector, HTMLElement);
  /** @param {string} selector */
  const input = (selector) => part(parentElement, selector, HTMLInputElement);
  const open = part(parentElement, ".open", HTMLAnchorElement);
  /** @type {HTMLElement & { tell?: typeof setTriggerValue, ready?: boolean }} */
  const box = $(".box");
  box.tell = setTriggerValue;
  if (box.ready) return; // a rerun of the page must not disturb an upload that runs
  box.ready = true;
  /** @type {Control} */
  const control = { cancelled: false, request: null, upload: null, job: null };
  /** @param {BeforeUnloadEvent} event */
  const leave = (event) => {
    event.preventDefault();
    event.returnValue = "";
  };

  /** @param {"drop" | "work" | "end"} shown */
  function show(shown) {
    for (const name of ["drop", "work", "end"]) $("." + name).hidden = name !== shown;
  }
  /** @param {string} doing @param {number | null} [done] of 1; none: nobody knows @param {string} [detail] */
  function say(doing, done, detail) {
    $(".doing").textContent = doing;
    const bar = part(parentElement, "progress", HTMLProgressElement);
    if (done == null) bar.removeAttribute("value");
    else bar.value = done;
    $(".detail").textContent = detail || "";
  }
  /** @param {string} text @param {string | null} [run] @param {boolean} [failed] */
  function finish(text, run, failed = false) {
    window.removeEventListener("beforeunload", leave);
    $(".end").classList.toggle("failed", failed);
    $(".outcome").hidden = !failed;
    $(".said").textContent = text;
    open.hidden = !run;
    if (run) open.href = "/findings?run=" + encodeURIComponent(run);
    show("end");
    (run ? open : $(".again")).focus();
  }

  /** @param {Found[]} found */
  async function send(found) {
    const total = found.reduce((sum, [, file]) => sum + file.size, 0);
    const began = performance.now();
    let done = 0;
    control.upload = (await json("POST", "/api/uploads")).upload_id;
    for (const [number, [path, file]] of found.entries()) {
      // eslint-disable-next-line no-control-regex -- control characters are what is looked for
      const plain = path.replace(/[\\\x00-\x1f]/g, "_");
      const parts = plain.split("/").filter(Boolean);
      const address = `/upload/${control.upload}/${parts.map(encodeURIComponent).join("/")}`;
      /** @param {number} loaded */
      const progress = (loaded) => {
        const now = done + Math.min(loaded, file.size),
          seconds = (performance.now() - began) / 1000;
        const rate = seconds > 0.5 ? ` at ${bytes(Math.round(now / seconds))}/s` : "";
        say(
          `Uploading ${path} (${number + 1} of ${found.length})`,
          total ? now / total : null,
          `${bytes(now)} of ${bytes(total)}${rate}`,
        );
      };
      progress(0);
      for (let attempt = 0; ; attempt++) {
        if (control.cancelled) throw new Error("Cancelled.");
        try {
          await put(address, file, progress, control);
          break;
        } catch (error) {
          if (error instanceof Final || attempt >= RETRIES) throw error;
          await new Promise((ok) => setTimeout(ok, 1000 * (attempt + 1)));
        }
      }
      done += file.size;
    }
  }

  async function read() {
    /** @type {Job} */
    let job = await json("POST", "/api/ingest", { upload_id: control.upload, name: input(".name").value });
    const id = (control.job = job.job_id);
    while (job.state === "waiting" || job.state === "running") {
      say(
        job.state === "waiting" ? "Waiting for other runs to be read" : "Reading " + (job.doing || "the files"),
        job.progress,
        job.progress == null ? "" : Math.round(100 * job.progress) + " % read",
      );
      await new Promise((ok) => setTimeout(ok, POLL_MS));
      if (control.cancelled) throw new Error("Cancelled.");
      job = await jobNow(id);
    }
    if (job.state !== "done") throw new Error(job.error || "Cancelled.");
    return job;
  }

  /** @param {Found[]} found */
  async function start(found) {
    if (!found.length) return finish("There is no file in what was chosen.");
    Object.assign(control, { cancelled: false, request: null, upload: null, job: null });
    show("work");
    window.addEventListener("beforeunload", leave);
    say("Preparing", null);
    try {
      await send(found);
      const job = await read();
      const told = job.warnings ?? [],
        warnings = told.length;
      const some = warnings === 1 ? "1 warning" : warnings + " warnings";
      const more = warnings ? ` with ${some}: ${told.slice(0, 5).join(" ")}` : ".";
      finish("The run was added" + more, job.run_id);
      input(".name").value = "";
      box.tell?.("ingested", { run_id: job.run_id, warnings });
    } catch (error) {
      if (control.cancelled && control.upload && !control.job)
        await json("DELETE", "/api/uploads/" + control.upload).catch(() => {});
      if (control.cancelled) finish("Cancelled. Nothing was added.");
      else finish(words(error), null, true);
    }
  }

  async function cancel() {
    control.cancelled = true;
    if (control.request) control.request.abort();
    if (control.job) await cancelJob(control.job);
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
  $(".pick").onchange = () => take(".pick");
  $(".pickfolder").onchange = () => take(".pickfolder");
  $(".cancel").onclick = cancel;
  $(".again").onclick = () => {
    show("drop");
    $(".files").focus();
  };
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
}
