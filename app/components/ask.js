// Asks of this server's own API.

/**
 * A job of the server, as `/api/jobs` tells of it.
 * @typedef {object} Job
 * @property {string} job_id
 * @property {string} [what] its command
 * @property {string | null} [name] of the run, as it was asked for
 * @property {string} [title] what its files are called
 * @property {string} [upload_id]
 * @property {number | null} [ended_ns]
 * @property {"waiting" | "running" | "parked" | "done" | "failed" | "cancelled"} state
 * @property {string} [doing]
 * @property {number | null} [progress] from 0 to 1
 * @property {string | null} [error]
 * @property {string} [run_id] the run that it made, once done
 * @property {boolean} [existed] the run was stored before
 * @property {{ run_id: string, name: string, created_ns: number }} [run]
 * @property {string[]} [warnings]
 * @property {object[]} [files] those that changed
 * @property {number} [files_changes] the number of the last change
 */

/**
 * The JSON that an address answers with. Throws an Error with the server's own words where it refuses.
 * @param {"GET" | "POST" | "DELETE"} method
 * @param {string} address
 * @param {unknown} [body] sent as JSON
 * @returns {Promise<any>}
 */
export async function json(method, address, body) {
  const answer = await fetch(address, {
    method,
    body: body ? JSON.stringify(body) : undefined,
    headers: body ? { "Content-Type": "application/json" } : {},
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error || `The server answered ${answer.status}.`);
  return said;
}

/** A job as it is now. @param {string} id @returns {Promise<Job>} */
export const jobNow = (id) => json("GET", "/api/jobs/" + id);

/** Whether it has not ended: it waits for its turn, runs, or was parked when its server was stopped. @param {Job} job */
export const isOpen = (job) => ["waiting", "running", "parked"].includes(job.state);

/** Asks for its end; a job that ended by itself is no fault. @param {string} id */
export const cancelJob = (id) => json("DELETE", "/api/jobs/" + id).catch(() => {});

/** What was thrown, in words. @param {unknown} error */
export const words = (error) => (error instanceof Error ? error.message : String(error));
