// What lies under the pointer: nodes and pieces of lines are projected; of those close by the nearest to the eye wins.

const REACH = 4;      // px beside a line or beyond a node's rim
const BEFORE = 1.5;   // by which a line has to be nearer than a node that it crosses

class Picker {
  // Places on the screen (px) and distances from the eye of all nodes.
  project(scene, camera, width, height) {
    Object.assign(this, { scene, camera, width, height, m: camera.matrix(), ends: null });
    const n = scene.nodes, at = scene.at, m = this.m;
    if (this.x?.length !== n) for (const name of ["x", "y", "w"]) this[name] = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      const px = at[3 * i], py = at[3 * i + 1], pz = at[3 * i + 2];
      const w = m[3] * px + m[7] * py + m[11] * pz + m[15];
      this.w[i] = w;
      this.x[i] = (0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * width;
      this.y[i] = (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * height;
    }
  }

  // Both ends of each piece: x, y, distance, x, y, distance.
  get lines() {
    if (this.ends) return this.ends;
    const { pieces } = this.scene, m = this.m;
    const ends = (this.ends = new Float32Array(pieces.length));
    for (let k = 0; k < pieces.length; k += 3) {
      const px = pieces[k], py = pieces[k + 1], pz = pieces[k + 2];
      const w = m[3] * px + m[7] * py + m[11] * pz + m[15];
      ends[k] = (0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * this.width;
      ends[k + 1] = (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * this.height;
      ends[k + 2] = w;
    }
    return ends;
  }

  point(place) {
    const m = this.m, [px, py, pz] = place, w = m[3] * px + m[7] * py + m[11] * pz + m[15];
    return [(0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * this.width,
      (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * this.height, w];
  }

  // Half the size (px) of a node as it is drawn.
  radius(node) {
    const glyph = node >= this.scene.chips ? 0.23 : 0.15;
    return Math.min(45, Math.max(1.2, (glyph * this.height) / (2 * FIELD * this.w[node])));
  }

  // {node} or {link} or null.
  under(x, y, hidden) {
    let best = null, near = Infinity;
    for (let i = 0; i < this.scene.nodes; i++) {
      if (this.w[i] < this.camera.near || this.w[i] >= near) continue;
      const dx = this.x[i] - x, dy = this.y[i] - y;
      if (Math.abs(dx) > 50 || Math.abs(dy) > 50 || Math.hypot(dx, dy) > this.radius(i) + REACH / 2) continue;
      near = this.w[i];
      best = { node: i };
    }
    return this.line(x, y, near, hidden) ?? best;
  }

  line(x, y, nearest, hidden) {
    const { pieceLink, kind, kinds } = this.scene, shown = kinds.map((k) => !hidden.has(k.name)), ends = this.lines;
    let best = null, near = nearest - BEFORE;
    for (let k = 0; k < pieceLink.length; k++) {
      const link = pieceLink[k];
      if (link < 0 || !shown[kind[link]]) continue;
      const ax = ends[6 * k], ay = ends[6 * k + 1], aw = ends[6 * k + 2];
      const bx = ends[6 * k + 3], by = ends[6 * k + 4], bw = ends[6 * k + 5];
      if (Math.min(aw, bw) < this.camera.near || Math.min(aw, bw) > near) continue;
      const dx = bx - ax, dy = by - ay;
      const t = Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
      if (Math.hypot(ax + t * dx - x, ay + t * dy - y) > REACH) continue;
      const w = aw + t * (bw - aw);
      if (w >= near) continue;
      near = w;
      best = { link };
    }
    return best;
  }
}
