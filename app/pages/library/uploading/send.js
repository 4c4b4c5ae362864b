import { json } from "../../../components/ask.js";
import { inPieces, LARGE_BYTES, Refusal } from "./pieces.js";

// Files on their way to the server: a few at once, each tried again where the connection breaks off.

/** @import { Found } from "./found.js" */
/** @import { Going } from "./pieces.js" */

const RETRIES = 2,
  AT_ONCE = 4,
  ADDRESS_CHARACTERS = 8000; // servers take no address much longer than that

/** A failure that trying again does not mend. */
class Final extends Error {}

/**
 * What sending is about.
 * @typedef {object} Sending
 * @property {string} upload id of the upload
 * @property {Found[]} found what is to be sent
 * @property {Set<number>} arrived numbers of those that are there
 * @property {Map<number, Going>} going those that come in pieces
 * @property {Set<number>} impossible numbers of those whose names cannot be sent
 * @property {AbortController} control
 * @property {(number: number, loaded: number) => void} progress
 * @property {(number: number, why: string) => void} failed
 */

/**
 * Sends what has not arrived yet. Throws the first failure, once nothing is on its way any more.
 * @param {Sending} sending
 */
export async function send(sending) {
  const waiting = [...sending.found.keys()].filter((n) => !sending.arrived.has(n) && !sending.impossible.has(n));
  /** @type {unknown} */
  let fault = null;
  const lane = async () => {
    for (let n = waiting.shift(); n !== undefined && !fault && !sending.control.signal.aborted; n = waiting.shift()) {
      try {
        await one(sending, n);
      } catch (error) {
        if (!fault || fault instanceof Final) fault = error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  if (sending.control.signal.aborted) throw new Final("Cancelled.");
  if (fault) throw fault;
}

/** @param {Sending} sending @param {number} number */
async function one(sending, number) {
  const [path, file] = /** @type {Found} */ (sending.found[number]);
  const address = addressOf(sending.upload, path);
  if (address === null) {
    sending.impossible.add(number);
    return sending.failed(
      number,
      `A name of ${path.length.toLocaleString("en")} characters cannot be sent: shorten it.`,
    );
  }
  sending.progress(number, 0);
  for (let attempt = 0; ; attempt++) {
    try {
      /** @param {number} loaded */
      const progress = (loaded) => sending.progress(number, Math.min(loaded, file.size));
      if (file.size > LARGE_BYTES) await large(sending, number, progress);
      else await put(address, file, progress, sending.control.signal);
      sending.arrived.add(number);
      return sending.progress(number, file.size);
    } catch (error) {
      const refused = error instanceof Final ? "" : await refusal(sending.upload);
      const said = refused || (error instanceof Error ? error.message : String(error));
      if (refused || error instanceof Final || attempt >= RETRIES) {
        if (!sending.control.signal.aborted) sending.failed(number, said);
        throw refused ? new Final(refused) : error;
      }
      await new Promise((ok) => setTimeout(ok, 1000 * (attempt + 1)));
    }
  }
}

/** A file in pieces: on from what arrived of it. @param {Sending} sending @param {number} number @param {(loaded: number) => void} progress */
async function large(sending, number, progress) {
  const [path, file] = /** @type {Found} */ (sending.found[number]);
  const { upload, control } = sending;
  const going = { ...sending.going.get(number), upload, path, file, signal: control.signal, progress };
  sending.going.set(number, going);
  try {
    await inPieces(going);
  } catch (error) {
    throw error instanceof Refusal ? new Final(error.message) : error;
  }
}

/** What the server said where its answer was lost: it reads no further than it must. @param {string} upload */
async function refusal(upload) {
  try {
    return String((await json("GET", "/api/uploads/" + upload)).refused ?? "");
  } catch {
    return "";
  }
}

/** Where a file is sent to; null where its name is too long for that. @param {string} upload @param {string} path */
function addressOf(upload, path) {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  const parts = path.replace(/[\\\x00-\x1f]|\p{Surrogate}/gu, "_").split("/");
  const address = `/upload/${upload}/${parts.filter(Boolean).map(encodeURIComponent).join("/")}`;
  return address.length > ADDRESS_CHARACTERS ? null : address;
}

/**
 * @param {string} address
 * @param {File} file
 * @param {(loaded: number) => void} onprogress
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function put(address, file, onprogress, signal) {
  return new Promise((ok, no) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    signal.addEventListener("abort", abort);
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
    request.onloadend = () => signal.removeEventListener("abort", abort);
    request.send(file);
  });
}
