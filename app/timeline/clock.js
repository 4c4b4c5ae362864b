// Times as a person reads them, and where ruler marks stand.

const UNITS = /** @type {[number, string][]} */ ([
  [86_400e12, "d"],
  [3_600e12, "h"],
  [60e12, "min"],
  [1e12, "s"],
  [1e9, "ms"],
  [1e6, "µs"],
  [1e3, "ns"],
  [1, "ps"],
]);
const ROUND = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** @param {number} ps */
export function lasted(ps) {
  const [size, name] = UNITS.find(([unit]) => Math.abs(ps) >= unit) ?? [1, "ps"];
  const value = ps / size;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${Number(value.toFixed(digits))} ${name}`;
}

/**
 * With as many digits as tell steps of `each` ps apart.
 * @param {number} ps
 * @param {number} each
 */
export function exactly(ps, each) {
  if (!ps) return "0";
  const [size, name] = UNITS.find(([unit]) => Math.abs(ps) >= unit) ?? [1, "ps"];
  const digits = Math.min(Math.max(Math.ceil(Math.log10(size / each)), 0), 12);
  return `${(ps / size).toFixed(digits)} ${name}`;
}

/**
 * A round step of at least `least` ps.
 * @param {number} least
 */
export function step(least) {
  const fits = UNITS.filter(([unit]) => unit <= least);
  const [unit] = fits[0] ?? [1];
  const size = ROUND.find((r) => r * unit >= least);
  return (size ?? 1000) * unit;
}

/**
 * When something was, on the clock of the host that wrote it.
 * @param {number} originNs
 * @param {number} ps
 */
export function when(originNs, ps) {
  const at = new Date(originNs / 1e6 + ps / 1e9);
  return at.toISOString().replace("T", " ").replace("Z", " UTC");
}
