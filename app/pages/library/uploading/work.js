import { cancelJob, isOpen, json, words } from "../../../components/ask.js";
import { Block, bytes, count } from "./block.js";
import { plain, titleOf } from "./found.js";
import { begun, dismiss } from "./kept.js";
import { send } from "./send.js";

// One upload or address from its beginning to its run, whichever tab began it. It outlives the page's component: files
// go on arriving while a person looks at other pages.

/** @import { Job } from "../../../components/ask.js" */
/** @import { Shown, Told, Way } from "./block.js" */
/** @import { Found } from "./found.js" */
/** @import { Sending } from "./send.js" */

/**
 * @typedef {object} Ends
 * @property {(work: Work, run: string, warnings: number) => void} added
 * @property {(work: Work) => void} gone it is to be shown no longer
 */

const POLL_MS = 300,
  AWAY_MS = 2000; // between two questions to a server that does not answer

/** @param {string | undefined} doing */
const reading = (doing) => (doing?.startsWith("Fetching ") ? doing : `Reading ${doing || "the files"}`);

export class Work {
  /** @param {string} title @param {Ends} ends */
  constructor(title, ends) {
    this.block = new Block();
    this.title = title;
    this.ends = ends;
    this.name = "";
    /** @type {string | null} */
    this.upload = null;
    /** @type {string | null} */
    this.job = null;
    /** @type {Record<string, unknown> | null} */
    this.asked = null;
    this.sends = false;
    this.given = false; // up, by the person
    /** @type {Sending | null} */
    this.sending = null;
  }

  /** @param {Omit<Shown, "title">} shown */
  show(shown) {
    this.block.show({ title: this.name || this.title, ...shown });
  }

  /** Sends files, and has them read. @param {Found[]} found */
  async files(found) {
    this.given = false;
    this.sends = true;
    this.busy("Preparing", null);
    try {
      if (!this.upload) this.upload = String((await json("POST", "/api/uploads")).upload_id);
      this.sending ??= this.sendingOf(this.upload, found);
      this.sending.control = new AbortController();
      this.block.tell(found.map(([path, file]) => ({ name: plain(path), bytes: file.size, state: "waiting" })));
      await send(this.sending);
    } catch (error) {
      this.sends = false;
      if (this.given) return this.cancelled();
      const there = this.sending
        ? `${this.sending.arrived.size.toLocaleString("en")} of ${count(found.length, "file")} arrived. `
        : "";
      return this.failed(`${there}${words(error)}`, [{ label: "Try again", act: () => this.files(found) }]);
    }
    this.sends = false;
    if (this.given) return this.cancelled();
    await this.read({ upload_id: this.upload, name: this.name });
  }

  /** @param {string} upload @param {Found[]} found @returns {Sending} */
  sendingOf(upload, found) {
    const total = found.reduce((sum, [, file]) => sum + file.size, 0);
    const began = performance.now();
    /** @type {Map<number, number>} */
    const loads = new Map();
    let sum = 0;
    /** @param {number} number @param {number} loaded */
    const progress = (number, loaded) => {
      const [path, file] = /** @type {Found} */ (found[number]);
      sum += loaded - (loads.get(number) ?? 0);
      loads.set(number, loaded);
      const seconds = (performance.now() - began) / 1000;
      const rate = seconds > 0.5 ? ` at ${bytes(Math.round(sum / seconds))}/s` : "";
      const which = found.length > 1 ? ` (${Math.min(this.arrived() + 1, found.length)} of ${found.length})` : "";
      this.busy(
        `Uploading ${plain(path)}${which}`,
        total ? sum / total : null,
        `${bytes(sum)} of ${bytes(total)}${rate}`,
      );
      const done = loaded >= file.size;
      const part = file.size ? loaded / file.size : 1;
      this.block.tell([{ name: plain(path), bytes: file.size, state: done ? "waiting" : "uploading", progress: part }]);
    };
    /** @param {number} number @param {string} why */
    const failed = (number, why) => {
      const [path, file] = /** @type {Found} */ (found[number]);
      this.block.tell([{ name: plain(path), bytes: file.size, state: "refused", reason: `Did not arrive. ${why}` }]);
    };
    return {
      upload,
      found,
      arrived: new Set(),
      going: new Map(),
      impossible: new Set(),
      control: new AbortController(),
      progress,
      failed,
    };
  }

  arrived() {
    return this.sending?.arrived.size ?? 0;
  }

  /** Has an upload or an address read. @param {Record<string, unknown>} asked */
  async read(asked) {
    this.asked = asked;
    this.given = false;
    this.busy("Waiting for the server", null);
    try {
      /** @type {Job} */
      const job = await json("POST", "/api/ingest", asked);
      begun(job.job_id);
      await this.follow(job.job_id);
    } catch (error) {
      this.failed(words(error), this.again());
    }
  }

  /** Follows a job to its end, whoever began it. @param {string} id */
  async follow(id) {
    this.job = id;
    let since = 0,
      first = true;
    for (;;) {
      /** @type {Job} */
      let job;
      try {
        const answer = await fetch(`/api/jobs/${id}?since=${since}`);
        if (answer.status === 404) return this.lost();
        if (!answer.ok) throw new Error(`${answer.status}`);
        job = await answer.json();
      } catch {
        this.busy("The server does not answer; trying again", null);
        await new Promise((ok) => setTimeout(ok, AWAY_MS));
        continue;
      }
      since = job.files_changes ?? since;
      const files = /** @type {Told[]} */ (job.files ?? []);
      if (first && files.length) {
        this.block.clear(); // by the names under which they arrived, from here on
        first = false;
      }
      this.block.tell(files);
      this.upload ??= job.upload_id ?? null;
      if (!isOpen(job)) return this.ended(job);
      const waits = job.state !== "running";
      const part = job.progress == null ? "" : Math.round(100 * job.progress) + " % read";
      this.busy(
        waits ? job.doing || "Waiting for other runs to be read" : reading(job.doing),
        job.progress ?? null,
        part,
      );
      await new Promise((ok) => setTimeout(ok, POLL_MS));
    }
  }

  /** @param {Job} job */
  ended(job) {
    if (job.state === "cancelled") return this.cancelled();
    if (job.state !== "done" || !job.run_id) return this.refused(job);
    const run = job.run?.name ?? "The run",
      when = job.run
        ? new Date(job.run.created_ns / 1e6).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })
        : "";
    const open = { label: "Open its findings", address: "/findings?run=" + encodeURIComponent(job.run_id) };
    const told = (job.warnings ?? []).length;
    const things = told ? ` ${count(told, "thing")} to know about its files: its pages say them.` : "";
    const doing = job.existed ? `Already stored: ${run}, added ${when}. Nothing was added.` : `Added: ${run}.${things}`;
    this.show({ doing, kind: "done", ways: [open, this.away()] });
    if (this.block.told.size === 1) this.block.list(false);
    if (!job.existed) this.ends.added(this, job.run_id, told);
  }

  /** Why nothing was added, in one sentence; each file says its own. @param {Job} job */
  refused(job) {
    const files = [...this.block.told.values()];
    const all = files.length > 0 && files.every((file) => file.state === "refused" || file.state === "left_out");
    const one = all && files.length === 1 ? files[0]?.reason : "";
    const why = all
      ? `None of these ${count(files.length, "file")} could be read.`
      : (job.error ?? "It could not be read.");
    this.failed(one || why, this.again());
    if (one) this.block.list(false);
  }

  /** @param {string} why @param {Way[]} ways */
  failed(why, ways) {
    this.show({ doing: `No run was added. ${why}`, kind: "failed", ways: [...ways, this.away()] });
  }

  cancelled() {
    if (this.upload && !this.job) json("DELETE", "/api/uploads/" + this.upload).catch(() => {});
    this.show({
      doing: "Cancelled. Nothing was added.",
      kind: "ended",
      ways: [...(this.job ? this.again() : []), this.away()],
    });
  }

  lost() {
    this.failed(
      "The server no longer knows what became of these files; they are kept, and can be read again.",
      this.anew(),
    );
  }

  /** Has a job done again as it was asked for, whoever asked. @param {string} job */
  async retry(job) {
    this.given = false;
    this.busy("Waiting for the server", null);
    try {
      await json("POST", `/api/jobs/${job}/retry`, {});
      begun(job);
      await this.follow(job);
    } catch (error) {
      this.failed(words(error), this.anew());
    }
  }

  /** @returns {Way[]} */
  again() {
    const job = this.job;
    return job ? [{ label: "Read it again", act: () => this.retry(job) }] : this.anew();
  }

  /** @returns {Way[]} */
  anew() {
    const asked = this.asked ?? (this.upload ? { upload_id: this.upload, name: this.name } : null);
    return asked ? [{ label: "Read it again", act: () => this.read(asked) }] : [];
  }

  /** @returns {Way} */
  away() {
    return { label: "Dismiss", act: () => this.dismiss() };
  }

  dismiss() {
    if (this.job) dismiss(this.job);
    this.block.element.remove();
    this.ends.gone(this);
  }

  /** @param {string} doing @param {number | null} part @param {string} [detail] */
  busy(doing, part, detail) {
    this.show({ doing, kind: "busy", part, detail, ways: [{ label: "Cancel", act: () => this.cancel() }] });
  }

  async cancel() {
    this.given = true;
    this.sending?.control.abort();
    if (this.job) await cancelJob(this.job);
  }
}

/** @param {Found[]} found @param {string} name @param {Ends} ends */
export function workOf(found, name, ends) {
  const work = new Work(titleOf(found), ends);
  work.name = name;
  return work;
}
