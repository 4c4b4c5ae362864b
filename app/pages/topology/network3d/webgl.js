// The scene on a canvas by WebGL 2: links as thin quads, nodes as shaded points. Nothing is blended, so order is free.

/** @import { Frame, Marked, Painter, Style } from "./types.d.ts" */
/** @import { Scene } from "./scene.js" */

import { FIELD, dot } from "./camera.js";

const MANY_NODES = 20000;

const LINE_VERTEX = `#version 300 es
precision highp float;
uniform mat4 view; uniform vec2 size; uniform float ratio, near, wide, dim, thick; uniform vec2 fog; uniform int heated;
uniform vec4 kinds[17]; uniform int dashes[17]; uniform vec3 ramp[6], back, failed, chosen;
in vec3 a, b; in uvec4 style;
out vec3 colour; out float along; flat out int dash;
void main() {
  vec4 p = view * vec4(a, 1.), q = view * vec4(b, 1.);
  bool far = (gl_VertexID & 1) == 1;
  if (p.w < near && q.w < near) { gl_Position = vec4(2., 2., 2., 1.); return; }
  if (p.w < near) p = mix(p, q, (near - p.w) / (q.w - p.w));
  if (q.w < near) q = mix(q, p, (near - q.w) / (p.w - q.w));
  vec2 way = (q.xy / q.w - p.xy / p.w) * size;
  vec2 side = length(way) > 1e-4 ? normalize(vec2(-way.y, way.x)) : vec2(0.);
  int kind = int(style.x);
  float width = kinds[kind].w;
  dash = dashes[kind];
  colour = kinds[kind].rgb;
  if (width == 0.) { gl_Position = vec4(2., 2., 2., 1.); return; }
  if (heated == 1 && style.y < 255u) {
    float at = float(style.y) / 254. * 5.;
    int low = min(int(at), 4);
    colour = mix(ramp[low], ramp[low + 1], at - float(low));
    width = max(width, 1.1) + float(style.y) / 254. * 1.4;
  }
  if (style.z == 1u) { colour = failed; dash = 1; width = 1.7; }
  if (wide > 0.) { colour = style.z == 1u ? failed : chosen; width = style.w == 1u ? wide * .5 : wide; }
  vec4 here = far ? q : p;
  if (wide == 0.) {
    float hidden = clamp((here.w - fog.x) * fog.y, 0., .86);
    if (style.w == 1u && far) hidden = .93;
    if (style.z == 0u) hidden = max(hidden, dim);
    colour = mix(colour, back, hidden);
  }
  along = far ? distance(a, b) : 0.;
  width = max(width * ratio * (wide > 0. ? 1. : thick), 1.15);
  here.xy += side * width / size * here.w * ((gl_VertexID & 2) == 0 ? 1. : -1.);
  gl_Position = here;
}`;

// While the picture turns: one pixel wide, undashed, with as little work at each end as there can be.
const THIN_VERTEX = `#version 300 es
precision highp float;
uniform mat4 view; uniform float dim; uniform vec2 fog; uniform int heated;
uniform vec4 kinds[17]; uniform vec3 ramp[6], back, failed;
in vec3 at; in uvec4 style;
flat out vec3 colour;
void main() {
  vec4 here = view * vec4(at, 1.);
  gl_Position = here;
  vec4 kind = kinds[min(style.x, 16u)];
  if (kind.w == 0.) gl_Position = vec4(2., 2., 2., 1.);
  colour = kind.rgb;
  if (heated == 1 && style.y < 255u) colour = ramp[(style.y + 25u) / 51u];
  float hidden = max(dim, clamp((here.w - fog.x) * fog.y, 0., .86));
  colour = style.z == 1u ? failed : mix(colour, back, hidden);
}`;

const THIN_FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour; out vec4 pixel;
void main() { pixel = vec4(colour, 1.); }`;

const LINE_FRAGMENT = `#version 300 es
precision mediump float;
in vec3 colour; in float along; flat in int dash; out vec4 pixel;
void main() {
  if (dash == 1 && fract(along * 3.2 + .25) > .6) discard;
  if (dash == 2 && fract(along * 6.4 + .25) > .5) discard;
  pixel = vec4(colour, 1.);
}`;

const POINT_VERTEX = `#version 300 es
precision highp float;
uniform mat4 view; uniform float ratio, scale, dim; uniform vec2 fog; uniform vec3 chip, packetSwitch, failed, back;
in vec3 at; in uint glyph;
out vec3 colour; flat out int form;
void main() {
  gl_Position = view * vec4(at, 1.);
  form = int(glyph);
  float least = glyph == 0u ? 2.4 : glyph == 1u ? 5. : 7.;
  float wide = glyph == 0u ? .34 : glyph == 1u ? .4 : .62;
  gl_PointSize = clamp(wide * scale / gl_Position.w, least * ratio, 90. * ratio);
  colour = glyph == 0u ? chip : glyph == 1u ? packetSwitch : failed;
  float hidden = clamp((gl_Position.w - fog.x) * fog.y, 0., .86);
  if (glyph != 2u) colour = mix(colour, back, max(hidden, dim));
}`;

const POINT_FRAGMENT = `#version 300 es
precision mediump float;
in vec3 colour; flat in int form; out vec4 pixel;
void main() {
  vec2 p = gl_PointCoord * 2. - 1.;
  float shade = 1.;
  if (form == 0) {
    float r = dot(p, p);
    if (r > 1.) discard;
    shade = .72 + .4 * max(0., dot(vec3(p.x, -p.y, sqrt(1. - r)), vec3(-.4, .55, .73)));
  } else if (form == 2) {
    vec2 turned = abs(vec2(p.x + p.y, p.x - p.y));
    if (min(turned.x, turned.y) > .36 || max(turned.x, turned.y) > 1.8) discard;
  }
  pixel = vec4(min(colour * shade, vec3(1.)), 1.);
}`;

const FLAT_COLOURS = /** @type {const} */ (["failed", "back", "chosen", "chip", "packetSwitch"]);

/** @typedef {ReturnType<typeof program>} Program */
/** @typedef {{ array: WebGLVertexArrayObject, triangles: WebGLBuffer, name: string, count: number }} Lines */

/** @implements {Painter} */
export class WebglPainter {
  /** null where the browser has no WebGL 2. @param {HTMLCanvasElement} canvas */
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, powerPreference: "high-performance" });
    return gl && new WebglPainter(gl);
  }

  /** @param {WebGL2RenderingContext} gl */
  constructor(gl) {
    this.gl = gl;
    this.lines = program(gl, LINE_VERTEX, LINE_FRAGMENT, ["a", "b", "style"]);
    this.thin = program(gl, THIN_VERTEX, THIN_FRAGMENT, ["at", "style"]);
    this.points = program(gl, POINT_VERTEX, POINT_FRAGMENT, ["at", "glyph"]);
    this.count = 0;
    /** @type {Record<string, WebGLBuffer>} */
    this.buffers = {};
    this.all = this.lineArray("all");
    this.marks = this.lineArray("marks");
    this.fine = gl.createVertexArray();
    gl.bindVertexArray(this.fine);
    this.floats("fine", 0, 12);
    this.bytes("fine style", 1, 4);
    this.nodes = gl.createVertexArray();
    gl.bindVertexArray(this.nodes);
    this.floats("at", 0, 12);
    this.bytes("glyph", 1, 1);
  }

  // Milliseconds until all that was asked of the graphics is drawn.
  async finished() {
    const gl = this.gl,
      began = performance.now(),
      fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    for (let i = 0; i < 500 && fence && gl.getSyncParameter(fence, gl.SYNC_STATUS) === gl.UNSIGNALED; i++) {
      await new Promise((done) => setTimeout(done, 2));
    }
    gl.deleteSync(fence);
    return performance.now() - began;
  }

  get lost() {
    return this.gl.isContextLost();
  }

  // Four corners of each piece, and the triangles between them. Instances would say the same shorter, but renderers in
  // software draw them one by one.
  /** @param {string} name */
  lineArray(name) {
    const gl = this.gl,
      array = gl.createVertexArray();
    gl.bindVertexArray(array);
    this.floats(name, 0, 24);
    this.floats(name, 1, 24, 12);
    this.bytes(name + " style", 2, 4);
    return { array, triangles: gl.createBuffer(), name, count: 0 };
  }

  /** @param {string} buffer @param {number} place @param {number} stride */
  floats(buffer, place, stride, offset = 0) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, (this.buffers[buffer] ??= gl.createBuffer()));
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 3, gl.FLOAT, false, stride, offset);
  }

  /** @param {string} buffer @param {number} place @param {number} count */
  bytes(buffer, place, count, stride = 0) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, (this.buffers[buffer] ??= gl.createBuffer()));
    gl.enableVertexAttribArray(place);
    gl.vertexAttribIPointer(place, count, gl.UNSIGNED_BYTE, stride, 0);
  }

  /** @param {string} buffer @param {Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>} values */
  fill(buffer, values) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
  }

  /** @param {Lines} lines @param {Float32Array<ArrayBuffer>} pieces 6 numbers each */
  fillLines(lines, pieces) {
    const gl = this.gl,
      triangles = new Uint32Array(pieces.length),
      corners = [0, 1, 2, 2, 1, 3];
    lines.count = pieces.length / 6;
    for (let i = 0; i < triangles.length; i++) triangles[i] = 4 * Math.floor(i / 6) + corners[i % 6];
    this.fill(lines.name, repeated(pieces, 6, 4));
    gl.bindVertexArray(lines.array);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, lines.triangles);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
  }

  /** @param {Lines} lines */
  drawLines(lines) {
    this.gl.bindVertexArray(lines.array);
    this.gl.drawElements(this.gl.TRIANGLES, 6 * lines.count, this.gl.UNSIGNED_INT, 0);
  }

  /** @param {Scene} scene */
  scene(scene) {
    this.fillLines(this.all, scene.pieces);
    this.fill("fine", scene.pieces);
    this.fill("at", scene.at);
    this.count = scene.nodes;
  }

  /** @param {Style} style */
  style({ style, glyph }) {
    this.fill("all style", repeated(style, 4, 4));
    this.fill("fine style", repeated(style, 4, 2));
    this.fill("glyph", glyph);
  }

  /** @param {Marked[]} marked pieces drawn thick, over everything */
  mark(marked) {
    this.fillLines(this.marks, new Float32Array(marked.flatMap(([a, b]) => [...a, ...b])));
    const style = marked.flatMap(([, , lost, thinner]) => [0, 255, +lost, +thinner]);
    this.fill("marks style", repeated(new Uint8Array(style), 4, 4));
  }

  /** @param {Frame} frame */
  draw({ camera, look, ratio, dim, heated, moving, share }) {
    const gl = this.gl,
      { width, height } = gl.canvas,
      view = camera.matrix();
    gl.viewport(0, 0, width, height);
    const [red, green, blue] = look.back;
    gl.clearColor(red, green, blue, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const depth = camera.distance + dot(camera.target, camera.frame().back),
      radius = Math.max(camera.fitted.radius, 2);
    const fog = [depth - radius * 0.75, 0.5 / radius];
    const thick = Math.min(1, Math.max(0.4, camera.pixels(height) / ratio / 22)); // thinner where all is small
    /** @param {Program} p */
    const use = (p) => {
      gl.useProgram(p.program);
      gl.uniformMatrix4fv(p.at("view"), false, view);
      gl.uniform1f(p.at("ratio"), ratio);
      gl.uniform1f(p.at("thick"), p === this.lines ? thick : 1);
      gl.uniform1f(p.at("dim"), dim);
      gl.uniform1f(p.at("wide"), 0);
      gl.uniform2fv(p.at("fog"), fog);
      gl.uniform2f(p.at("size"), width, height);
      gl.uniform1f(p.at("near"), camera.near);
      gl.uniform1i(p.at("heated"), heated ? 1 : 0);
      gl.uniform4fv(p.at("kinds"), look.kinds);
      gl.uniform1iv(p.at("dashes"), look.dashes);
      gl.uniform3fv(p.at("ramp"), look.ramp);
      for (const name of FLAT_COLOURS) gl.uniform3fv(p.at(name), look[name]);
    };
    if (moving) {
      use(this.thin);
      gl.bindVertexArray(this.fine);
      gl.drawArrays(gl.LINES, 0, 2 * Math.ceil(this.all.count * share));
    } else {
      use(this.lines);
      this.drawLines(this.all);
    }
    use(this.points);
    gl.uniform1f(this.points.at("scale"), height / (2 * FIELD));
    const step = share < 0.5 && this.count > MANY_NODES ? Math.min(20, Math.round(1 / share)) : 1;
    gl.bindVertexArray(this.nodes);
    this.floats("at", 0, 12 * step);
    this.bytes("glyph", 1, 1, step);
    gl.drawArrays(gl.POINTS, 0, Math.ceil(this.count / step));
    if (!this.marks.count) return;
    use(this.lines);
    gl.uniform1f(this.lines.at("wide"), look.chosenWidth);
    gl.disable(gl.DEPTH_TEST);
    this.drawLines(this.marks);
  }
}

/**
 * Each group of `size` values `times` in a row: once for each corner or end.
 * @template {Float32Array | Uint8Array} T
 * @param {T} values
 * @param {number} size
 * @param {number} times
 */
function repeated(values, size, times) {
  const Values = /** @type {new (length: number) => T} */ (values.constructor);
  const found = new Values(times * values.length);
  for (let i = 0; i < values.length; i += size) {
    const group = values.subarray(i, i + size);
    for (let time = 0; time < times; time++) found.set(group, times * i + time * size);
  }
  return found;
}

/** @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment @param {string[]} attributes */
function program(gl, vertex, fragment, attributes) {
  const made = gl.createProgram();
  const shaders = /** @type {const} */ ([
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ]);
  for (const [type, source] of shaders) {
    const shader = gl.createShader(type);
    if (!shader) throw new Error("the picture's shaders: the graphics make none");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  attributes.forEach((name, place) => gl.bindAttribLocation(made, place, name));
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error("the picture's shaders: " + gl.getProgramInfoLog(made));
  }
  /** @type {Record<string, WebGLUniformLocation | null>} */
  const places = {};
  /** @param {string} name */
  const at = (name) => (places[name] ??= gl.getUniformLocation(made, name));
  return { program: made, at };
}
