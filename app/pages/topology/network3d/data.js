// What Python packed (packing.py), read back: a JSON header and its arrays.

/** @import { Network, Shown } from "./types.d.ts" */

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function unpack(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const stream = new Blob([bytes.subarray(4 + size)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const body = await new Response(stream).arrayBuffer();
  /** @type {Record<string, Float32Array | Int32Array>} */
  const arrays = {};
  let at = 0;
  for (const [name, kind, count] of header.arrays) {
    if (kind === "f") {
      arrays[name] = new Float32Array(body, at, count);
    } else {
      const values = new Int32Array(body, at, count);
      for (let i = 1; i < count; i++) values[i] += values[i - 1];
      arrays[name] = values;
    }
    at += 4 * count;
  }
  return { ...header, ...arrays };
}

/**
 * The two blobs of a message; the first is not read again while it is the same.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Uint8Array<ArrayBuffer> | undefined} known
 * @returns {Promise<{ blob: Uint8Array<ArrayBuffer>, network: Network | null, shown: Shown }>}
 */
export async function readMessage(bytes, known) {
  const first = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const blob = bytes.subarray(4, 4 + first);
  const same = known && known.length === blob.length && known.every((byte, i) => byte === blob[i]);
  const [network, shown] = await Promise.all([same ? null : unpack(blob), unpack(bytes.subarray(4 + first))]);
  return { blob: same ? known : blob.slice(), network, shown };
}
