// What this browser remembers of jobs, so that a reload finds its own again and shows none that was dismissed.

const BEGUN = "chipledger.begun",
  DISMISSED = "chipledger.dismissed",
  MOST = 200;

/** @param {string} key @returns {string[]} */
function list(key) {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}

/** @param {string} key @param {string} id */
function keep(key, id) {
  try {
    localStorage.setItem(key, JSON.stringify([...list(key).filter((one) => one !== id), id].slice(-MOST)));
  } catch {
    /* a browser that keeps nothing: the jobs run all the same */
  }
}

/** @param {string} job */
export const begun = (job) => keep(BEGUN, job);
/** @param {string} job */
export const dismiss = (job) => keep(DISMISSED, job);
/** @param {string} job */
export const isOurs = (job) => list(BEGUN).includes(job);
/** @param {string} job */
export const isDismissed = (job) => list(DISMISSED).includes(job);
