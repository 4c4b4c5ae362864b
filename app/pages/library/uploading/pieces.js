// Large files in pieces, by tus 1.0.0: what arrived stays, and a file goes on where its connection broke off.

const PIECE_BYTES = 8 << 20,
  PATIENCE_MS = 120_000, // how long it is tried again without anything coming of it
  LONGEST_MS = 10_000,
  AGAIN = new Set([0, 408, 409, 423, 425, 429, 460, 502, 503, 504]),
  GONE = [404, 410],
  VERSION = { "Tus-Resumable": "1.0.0" };

/** Files larger than this come in pieces. */
export const LARGE_BYTES = PIECE_BYTES;

/** What the server will not take, in its words. */
export class Refusal extends Error {}

/**
 * A file on its way.
 * @typedef {object} Going
 * @property {string} upload id of the upload
 * @property {string} path its name there
 * @property {File} file
 * @property {string} [address] where its pieces go, once it was begun
 * @property {AbortSignal} signal
 * @property {(loaded: number) => void} progress
 */

/** @typedef {{ status: number, offset: number | null, place: string, said: string }} Answer */

/**
 * Sends what is missing of a file. Throws a Refusal, or an Error where nothing came of it for long.
 * @param {Going} going
 */
export async function inPieces(going) {
  let offset = going.address ? -1 : await begun(going),
    since = Date.now(),
    wait = 500;
  while (offset < going.file.size) {
    const answer = offset < 0 ? await ask("HEAD", going) : await piece(going, offset);
    if (answer.offset !== null && answer.offset > offset) {
      offset = answer.offset;
      going.progress(offset);
      since = Date.now();
      wait = 500;
      continue;
    }
    if (GONE.includes(answer.status)) going.address = undefined;
    if (going.signal.aborted) throw new Refusal("Cancelled.");
    if (!AGAIN.has(answer.status)) throw new Refusal(answer.said || `The server answered ${answer.status}.`);
    if (Date.now() - since > PATIENCE_MS) throw new Error(answer.said || "The connection to the server was lost.");
    await new Promise((ok) => setTimeout(ok, wait));
    wait = Math.min(wait * 2, LONGEST_MS);
    offset = -1; // what is there now is asked for
  }
}

/** Begins a file. @param {Going} going */
async function begun(going) {
  const name = btoa(String.fromCharCode(...new TextEncoder().encode(going.path)));
  const headers = { ...VERSION, "Upload-Length": String(going.file.size), "Upload-Metadata": `filename ${name}` };
  const answer = await request("POST", `/api/uploads/${going.upload}/files`, headers, null, going.signal, () => {});
  if (answer.status === 0) throw new Error("The connection to the server was lost.");
  if (answer.status !== 201) throw new Refusal(answer.said || `The server answered ${answer.status}.`);
  going.address = answer.place;
  return answer.offset ?? 0;
}

/** @param {"HEAD"} method @param {Going} going */
const ask = (method, going) => request(method, going.address ?? "", VERSION, null, going.signal, () => {});

/** @param {Going} going @param {number} offset */
async function piece(going, offset) {
  const part = going.file.slice(offset, offset + PIECE_BYTES);
  /** @type {Record<string, string>} */
  const headers = {
    ...VERSION,
    "Content-Type": "application/offset+octet-stream",
    "Upload-Offset": String(offset),
    ...(await sum(part)),
  };
  const progress = (/** @type {number} */ loaded) => going.progress(offset + Math.min(loaded, part.size));
  return request("PATCH", going.address ?? "", headers, part, going.signal, progress);
}

/** The sum of a piece, where the browser makes one: on https and on this machine. @param {Blob} part @returns {Promise<Record<string, string>>} */
async function sum(part) {
  if (!globalThis.crypto?.subtle) return {};
  const digest = await crypto.subtle.digest("SHA-256", await part.arrayBuffer());
  return { "Upload-Checksum": `sha256 ${btoa(String.fromCharCode(...new Uint8Array(digest)))}` };
}

/**
 * An answer, or status 0 where none came.
 * @param {string} method
 * @param {string} address
 * @param {Record<string, string>} headers
 * @param {Blob | null} body
 * @param {AbortSignal} signal
 * @param {(loaded: number) => void} progress
 * @returns {Promise<Answer>}
 */
function request(method, address, headers, body, signal, progress) {
  return new Promise((ok) => {
    const asked = new XMLHttpRequest();
    const abort = () => asked.abort();
    signal.addEventListener("abort", abort);
    asked.open(method, address);
    for (const [name, value] of Object.entries(headers)) asked.setRequestHeader(name, value);
    asked.upload.onprogress = (event) => progress(event.loaded);
    asked.onloadend = () => {
      signal.removeEventListener("abort", abort);
      const offset = asked.getResponseHeader("Upload-Offset");
      ok({
        status: asked.status,
        offset: asked.status < 300 && offset !== null ? Number(offset) : null,
        place: asked.getResponseHeader("Location") ?? "",
        said: said(asked.responseText),
      });
    };
    asked.send(body);
  });
}

/** The server's own words. @param {string} text */
function said(text) {
  try {
    return String(JSON.parse(text).error ?? "");
  } catch {
    return "";
  }
}
