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
const ROUND = [1, 2, 5, 10, 20, 50, 100, 200, 500],
  SIXTIETHS = [1, 2, 5, 10, 15, 30, 60],
  HOURS = [1, 2, 3, 6, 12, 24],
  SECOND = 1e12;

/** @param {number} ps */
export function lasted(ps) {
  const [size, name] = UNITS.find(([unit]) => Math.abs(ps) >= unit) ?? [1, "ps"];
  const value = ps / size;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${Number(value.toFixed(digits))} ${name}`;
}

/**
 * A multiple of `each` ps, a step of the ruler, in full: from minutes on in several units, as 1.33 h is no 80 minutes.
 * @param {number} ps
 * @param {number} each
 */
export function exactly(ps, each) {
  if (!ps) return "0";
  const [size, name] = UNITS.find(([unit]) => Math.abs(ps) >= unit) ?? [1, "ps"];
  if (size > SECOND) return several(ps, each);
  const digits = Math.min(Math.max(Math.ceil(Math.log10(size / each)), 0), 12);
  return `${(ps / size).toFixed(digits)} ${name}`;
}

/**
 * Such as "1 d 6 h". Below a step there is nothing but what numbers round.
 * @param {number} ps
 * @param {number} each
 */
function several(ps, each) {
  const digits = Math.min(Math.max(Math.ceil(Math.log10(SECOND / each)), 0), 12),
    grain = Math.min(each, SECOND);
  /** @type {string[]} */
  const told = [];
  let rest = Math.abs(ps) + grain / 2;
  for (const [size, name] of UNITS.filter(([unit]) => unit >= SECOND)) {
    const n = size > SECOND ? Math.floor(rest / size) : Math.floor(rest / grain) * (grain / SECOND);
    rest -= n * size;
    if (n) told.push(`${size > SECOND ? n : n.toFixed(digits)} ${name}`);
  }
  return (ps < 0 ? "-" : "") + told.join(" ");
}

/**
 * A round step of at least `least` ps.
 * @param {number} least
 */
export function step(least) {
  const fits = UNITS.filter(([unit]) => unit <= least);
  const [unit, name] = fits[0] ?? [1, "ps"];
  const rounds = name === "h" ? HOURS : name === "min" || name === "s" ? SIXTIETHS : ROUND;
  const size = rounds.find((r) => r * unit >= least);
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
