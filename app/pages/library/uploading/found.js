// Files as a person chose or dropped them.

/** A file with its path below what was chosen. @typedef {[path: string, file: File]} Found */

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
export async function dropped(transfer) {
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

/** What a run of these would be called: the one file or folder, or how many there are. @param {Found[]} found */
export function titleOf(found) {
  const tops = new Set(found.map(([path]) => path.split("/")[0] ?? path));
  const [first] = tops;
  return tops.size > 1 ? `${plain(first ?? "")} and ${(tops.size - 1).toLocaleString("en")} more` : plain(first ?? "");
}

/** A name without what turns, hides or ends a line. @param {string} name */
export const plain = (name) => name.replace(/[\p{C}\u2028\u2029]/gu, "\ufffd");
