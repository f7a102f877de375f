// SPDX-License-Identifier: Apache-2.0
// The one chart of all pages: curves over a number axis, or lanes over a time axis. Round ticks, zoom by dragging (a finger does it, too), values
// under the pointer, curves and kinds that the legend switches off. It is drawn in the pixels of its place, so that text stays readable on a phone.
"use strict";

/// Round numbers from `from` to `to`, about `count` of them: multiples of 1, 2 or 5 times a power of ten.
function roundTicks(from, to, count, least = 0) {
  const rough = Math.max((to - from) / Math.max(1, count), least);
  if (!(rough > 0) || !Number.isFinite(rough)) return { step: 1, values: [from] };
  const power = 10 ** Math.floor(Math.log10(rough) + 1e-9);
  const step = [1, 2, 5, 10].map((m) => Number((m * power).toPrecision(1))).find((s) => s >= rough * (1 - 1e-9));
  const values = [];
  for (let i = Math.ceil(from / step - 1e-9); i <= Math.floor(to / step + 1e-9); ++i) values.push(Number((i * step).toPrecision(12)));
  return { step, values };
}

/// A tick's text: as many decimals as its step has.
function tickText(value, step) {
  const largest = Math.abs(value);
  if (largest >= 1e9 || (largest > 0 && step < 1e-6)) return value.toExponential(Math.min(3, Math.max(0, Math.round(Math.log10(largest / step)))));
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/// A value with five digits, as the pointer reads it.
function valueText(value) {
  const large = Math.abs(value) >= 1e12 || (value !== 0 && Math.abs(value) < 1e-4);
  return large ? value.toPrecision(4) : value.toLocaleString("en-US", { maximumSignificantDigits: 5 });
}

/// The unit in which a span of seconds reads well.
function timeUnit(seconds) {
  const units = [[1e-3, 1e-6, "µs"], [1, 1e-3, "ms"], [300, 1, "s"], [18000, 60, "min"], [Infinity, 3600, "h"]];
  const [, size, name] = units.find(([below]) => Math.abs(seconds) < below) ?? units[4];
  return { size, name };
}

function timeText(seconds) {
  const unit = timeUnit(seconds);
  return `${Number((seconds / unit.size).toPrecision(3)).toLocaleString("en-US")} ${unit.name}`;
}

/// The place of the first element that is not below the value, in an ascending list.
function lowerBound(list, value) {
  let from = 0, to = list.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (list[middle] < value) from = middle + 1; else to = middle;
  }
  return from;
}

/// The place of the element that is nearest to the value; -1 when there is none.
function nearest(list, value) {
  const at = lowerBound(list, value);
  if (at === 0 || at === list.length) return Math.min(at, list.length - 1);
  return value - list[at - 1] <= list[at] - value ? at - 1 : at;
}

if (typeof module !== "undefined") module.exports = { roundTicks, tickText, valueText, timeUnit, timeText, lowerBound, nearest };

/// An element with attributes and children; texts are never read as markup.
function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "rect", "text", "line", "circle", "clipPath"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((c) => c !== undefined && c !== null));
  return made;
}

class Chart {
  static groups = new Map(); // charts over the same axis zoom together
  static count = 0;

  /// @param spec type "curves": x, y { name, from_zero }, curves [{ name, x, y }], marks [{ x, text }]; y null is a gap
  ///             stacked: bands of curves with the same x, which are 100 together
  ///             type "lanes": lanes [name], kinds [{ name, text }], length in seconds, boxes [[lane, kind, start, duration, label]]
  constructor(place, spec) {
    Object.assign(this, { place, spec, off: new Set(), id: `chart-${++Chart.count}` });
    this.isTime = spec.type === "lanes" || spec.x.unit === "s";
    this.whole = spec.type === "lanes" ? [0, spec.length] : Chart.wholeOf(spec);
    this.view = this.whole;
    this.legend = element("div", { class: "legend" });
    this.reset = element("button", { type: "button", class: "reset", hidden: true }, "Reset zoom");
    this.svg = element("svg", { tabindex: 0, role: "img", "aria-label": spec.label ?? "" });
    this.tip = element("div", { class: "tip", hidden: true });
    place.classList.add("chart", spec.type);
    place.append(
      element("div", { class: "above" }, element("div", {}, spec.name ? element("div", { class: "caption" }, spec.name) : null, this.legend), this.reset),
      element("div", { class: "drawing" }, this.svg, this.tip));
    this.makeLegend();
    this.listen();
    const group = spec.group ?? this.id;
    if (!Chart.groups.has(group)) Chart.groups.set(group, []);
    this.peers = Chart.groups.get(group);
    this.peers.push(this);
    new ResizeObserver(() => { if (place.clientWidth !== this.full) this.draw(); }).observe(place);
  }

  static drawAll() {
    for (const charts of Chart.groups.values()) charts.forEach((chart) => chart.draw());
  }

  static wholeOf(spec) {
    let from = Infinity, to = -Infinity;
    for (const c of spec.curves) {
      if (c.x.length > 0) [from, to] = [Math.min(from, c.x[0]), Math.max(to, c.x[c.x.length - 1])];
    }
    return from > to ? [0, 1] : from === to ? [from - 0.5, to + 0.5] : [from, to];
  }

  makeLegend() {
    const names = this.spec.type === "lanes" ? this.spec.kinds.map((k) => k.text) : this.spec.curves.map((c) => c.name);
    if (names.length < 2) return;
    names.forEach((name, i) => {
      const button = element("button", { type: "button", "aria-pressed": "true", title: "show or hide" },
        element("span", { class: `swatch ${this.look(i)}` }), name);
      button.addEventListener("click", () => {
        if (!this.off.delete(i)) this.off.add(i);
        button.setAttribute("aria-pressed", String(!this.off.has(i)));
        this.draw();
      });
      this.legend.append(button);
    });
  }

  /// The class that gives a curve or a kind of box its colour.
  look(i) {
    return this.spec.type === "lanes" ? `kind-${this.spec.kinds[i].name}` : `curve-${this.spec.curves[i].colour ?? i % 8}`;
  }

  // ---- zoom --------------------------------------------------------------------------------------------

  zoom(from, to) {
    const [first, last] = this.whole;
    const least = (last - first) * 1e-6;
    const span = Math.max(least, Math.min(to - from, last - first));
    const start = Math.max(first, Math.min(from, last - span));
    for (const peer of this.peers) {
      peer.view = [Math.max(start, peer.whole[0]), Math.min(start + span, peer.whole[1])];
      if (!(peer.view[0] < peer.view[1])) peer.view = peer.whole;
      peer.reset.hidden = peer.view[0] <= peer.whole[0] && peer.view[1] >= peer.whole[1];
      peer.draw();
    }
  }

  listen() {
    const svg = this.svg;
    let from = null;
    const at = (event) => Math.max(0, Math.min(this.width, event.clientX - svg.getBoundingClientRect().left - this.left));
    svg.addEventListener("pointerdown", (event) => { if (event.button === 0) from = at(event); });
    svg.addEventListener("pointermove", (event) => {
      if (from !== null && Math.abs(at(event) - from) > 6) {
        if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
        this.select(from, at(event));
      } else {
        this.point(event, at(event));
      }
    });
    svg.addEventListener("pointerup", (event) => {
      const selected = this.selection && from !== null ? [from, at(event)].sort((a, b) => a - b).map((x) => this.valueAt(x)) : null;
      from = null;
      this.unselect();
      if (selected) this.zoom(...selected); else this.point(event, at(event));
    });
    const leave = () => { from = null; this.unselect(); this.unpoint(); };
    svg.addEventListener("pointercancel", leave);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });  // what a finger asked for stays
    svg.addEventListener("dblclick", () => this.zoom(...this.whole));
    this.reset.addEventListener("click", () => this.zoom(...this.whole));
    svg.addEventListener("keydown", (event) => {
      const [a, b] = this.view, quarter = (b - a) / 4;
      const views = { "+": [a + quarter, b - quarter], "=": [a + quarter, b - quarter], "-": [a - 2 * quarter, b + 2 * quarter],
        ArrowLeft: [a - quarter, b - quarter], ArrowRight: [a + quarter, b + quarter], Escape: this.whole };
      if (event.ctrlKey || event.metaKey || !views[event.key]) return;
      event.preventDefault();
      this.zoom(...views[event.key]);
    });
  }

  select(from, to) {
    if (!this.selection) {
      this.selection = element("rect", { class: "selection", y: this.top, height: this.height });
      this.svg.append(this.selection);
    }
    this.selection.setAttribute("x", this.left + Math.min(from, to));
    this.selection.setAttribute("width", Math.abs(to - from));
    this.tip.hidden = true;
  }

  unselect() {
    this.selection?.remove();
    this.selection = null;
  }

  // ---- drawing -----------------------------------------------------------------------------------------

  valueAt(pixel) { return this.view[0] + (pixel / this.width) * (this.view[1] - this.view[0]); }
  pixelOf(value) { return ((value - this.view[0]) / (this.view[1] - this.view[0])) * this.width; }

  draw() {
    const full = this.full = this.place.clientWidth;
    if (full < 50) return;  // not in the page yet
    const lanes = this.spec.type === "lanes";
    const longest = lanes ? Math.max(...this.spec.lanes.map((l) => l.length)) : 0;
    this.left = lanes ? Math.min(90, 12 + 6.5 * longest) : 58;
    this.top = lanes ? 2 : 10;
    this.width = full - this.left - 14;
    this.height = lanes ? 22 * this.spec.lanes.length : full < 500 ? 170 : 210;
    this.unpoint();
    this.svg.replaceChildren();
    this.svg.setAttribute("width", full);
    this.svg.setAttribute("height", this.top + this.height + 34);
    this.plot = element("g", { transform: `translate(${this.left},${this.top})` });
    this.svg.append(
      element("clipPath", { id: this.id }, element("rect", { x: 0, y: -8, width: this.width, height: this.height + 8 })), this.plot);
    this.drawAxis();
    if (lanes) this.drawLanes(); else this.drawCurves();
  }

  drawAxis() {
    const [from, to] = this.view;
    const unit = this.isTime ? timeUnit(to) : { size: 1, name: this.spec.x.name };
    const marks = roundTicks(from / unit.size, to / unit.size, this.width / 90, this.isTime ? 0 : 1);
    for (const value of marks.values) {
      const x = this.pixelOf(value * unit.size);
      if (x < -0.5 || x > this.width + 0.5) continue;
      const text = tickText(value, marks.step);
      const middle = Math.min(x, this.width + 14 - 3.5 * text.length); // the last one stays inside
      this.plot.append(element("line", { class: "grid", x1: x, x2: x, y1: 0, y2: this.height + 4 }),
        element("text", { x: middle, y: this.height + 17, "text-anchor": "middle", class: "tick x" }, text));
    }
    const name = this.isTime ? `${this.spec.x?.name ?? "time"}, ${unit.name}` : unit.name;
    this.plot.append(element("text", { x: this.width, y: this.height + 31, "text-anchor": "end", class: "axis" }, name));
  }

  /// The least and the largest value in view, out to round numbers.
  heights() {
    if (this.spec.stacked) return [0, 100];
    let low = this.spec.y.from_zero ? 0 : Infinity, high = -Infinity;
    this.spec.curves.forEach((curve, i) => {
      if (this.off.has(i)) return;
      for (let k = lowerBound(curve.x, this.view[0]); k < curve.x.length && curve.x[k] <= this.view[1]; ++k) {
        if (curve.y[k] !== null) [low, high] = [Math.min(low, curve.y[k]), Math.max(high, curve.y[k])];
      }
    });
    if (low > high) return null;
    if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.05, high + Math.abs(high) * 0.05];
    const { step } = roundTicks(low, high, this.height / 40);
    return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  }

  drawCurves() {
    const range = this.heights();
    if (!range) {
      this.plot.append(element("text", { x: this.width / 2, y: this.height / 2, "text-anchor": "middle", class: "axis" }, "nothing to draw"));
      return;
    }
    const [low, high] = range;
    this.rise = (value) => this.height - ((value - low) / (high - low)) * this.height;
    const marks = roundTicks(low, high, this.height / 40);
    for (const value of marks.values) {
      const y = this.rise(value);
      this.plot.append(element("line", { class: "grid", x1: 0, x2: this.width, y1: y, y2: y }),
        element("text", { x: -7, y: y + 4, "text-anchor": "end", class: "tick y" }, tickText(value, marks.step)));
    }
    const inside = element("g", { "clip-path": `url(#${this.id})` });
    this.plot.append(inside);
    if (this.spec.stacked) this.drawBands(inside);
    for (const mark of this.spec.marks ?? []) {
      const x = this.pixelOf(mark.x);
      inside.append(element("line", { class: "mark", x1: x, x2: x, y1: 0, y2: this.height }),
        element("path", { class: "mark", d: `M${x - 5} -7H${x + 5}L${x} 1Z` }));
    }
    this.spec.curves.forEach((curve, i) => {
      if (!this.off.has(i) && !this.spec.stacked) this.drawCurve(inside, curve, i);
    });
    this.pointer = element("g", {});
    this.plot.append(this.pointer);
  }

  drawCurve(inside, curve, i) {
    let path = "", pen = "M";
    const last = Math.min(curve.x.length, lowerBound(curve.x, this.view[1]) + 1);
    for (let k = Math.max(0, lowerBound(curve.x, this.view[0]) - 1); k < last; ++k) {
      if (curve.y[k] === null) {
        pen = "M";
        continue;
      }
      path += `${pen}${this.pixelOf(curve.x[k]).toFixed(1)} ${this.rise(curve.y[k]).toFixed(1)}`;
      pen = "L";
    }
    inside.append(element("path", { class: `curve ${this.look(i)}`, d: path }));
    if (curve.x.length <= 30) {  // few points, or a single one, would not show as a line
      curve.x.forEach((x, k) => {
        if (curve.y[k] !== null) inside.append(element("circle", { class: `dot ${this.look(i)}`, cx: this.pixelOf(x), cy: this.rise(curve.y[k]), r: 2.5 }));
      });
    }
  }

  /// Each value holds from halfway to the one before to halfway to the one behind.
  drawBands(inside) {
    const below = [];
    this.spec.curves.forEach((curve, i) => {
      if (this.off.has(i) || curve.x.length === 0) return;
      let there = "", back = "";
      curve.x.forEach((x, k) => {
        const half = ((curve.x[1] ?? 1) - (curve.x[0] ?? 0)) / 2;
        const [from, to] = [this.pixelOf(x - half).toFixed(1), this.pixelOf(x + half).toFixed(1)];
        const low = below[k] ?? 0;
        below[k] = low + curve.y[k];
        there += `${k === 0 ? "M" : "L"}${from} ${this.rise(below[k]).toFixed(1)}H${to}`;
        back = `L${to} ${this.rise(low).toFixed(1)}H${from}` + back;
      });
      inside.append(element("path", { class: `band ${this.look(i)}`, d: `${there}${back}Z` }));
    });
  }

  drawLanes() {
    this.spec.lanes.forEach((name, i) => {
      this.plot.append(element("text", { x: -6, y: 22 * i + 15, "text-anchor": "end", class: "tick" }, name),
        element("rect", { class: "lane", x: 0, y: 22 * i + 1, width: this.width, height: 20 }));
    });
    const inside = element("g", { "clip-path": `url(#${this.id})` });
    this.plot.append(inside);
    const texts = [];
    this.spec.boxes.forEach(([lane, kind, start, duration, label], i) => {
      const x = this.pixelOf(start), width = Math.max(0.4, this.pixelOf(start + duration) - x);
      if (this.off.has(kind) || x > this.width || x + width < 0) return;
      inside.append(element("rect", { class: `box ${this.look(kind)}`, x: x.toFixed(2), y: 22 * lane + 1, width: width.toFixed(2), height: 20, "data-box": i }));
      if (label !== undefined && width > 8 + 6.5 * String(label).length) {
        const middle = (Math.max(0, x) + Math.min(this.width, x + width)) / 2;
        texts.push(element("text", { x: middle.toFixed(1), y: 22 * lane + 15, "text-anchor": "middle", class: "inside" }, String(label)));
      }
    });
    inside.append(...texts);
  }

  // ---- values under the pointer ------------------------------------------------------------------------

  point(event, x) {
    if (this.spec.type === "lanes") this.pointBox(event); else this.pointCurves(event, x);
  }

  unpoint() {
    this.tip.hidden = true;
    this.pointer?.replaceChildren();
  }

  pointBox(event) {
    const box = this.spec.boxes[event.target.dataset?.box];
    if (!box) return this.unpoint();
    const [lane, kind, start, duration, label] = box;
    const item = label === undefined ? "" : `, microbatch ${label}`;
    this.show(event, [[this.look(kind), `${this.spec.lanes[lane]}: ${this.spec.kinds[kind].text}${item}`, timeText(duration)], ["", "begins at", timeText(start)]]);
  }

  pointCurves(event, pixel) {
    if (!this.pointer) return;
    const value = this.valueAt(pixel);
    const found = [];
    this.spec.curves.forEach((curve, i) => {
      const k = this.off.has(i) ? -1 : nearest(curve.x, value);
      if (k >= 0 && curve.y[k] !== null) found.push({ curve, i, k, far: Math.abs(this.pixelOf(curve.x[k]) - pixel) });
    });
    const best = found.reduce((a, b) => (b.far < a?.far ? b : a), found[0]);
    const marks = (this.spec.marks ?? []).filter((m) => Math.abs(this.pixelOf(m.x) - pixel) < 7);
    this.pointer.replaceChildren();
    if (!best && marks.length === 0) return this.unpoint();
    const lines = [];
    if (best) {
      const x = best.curve.x[best.k];
      lines.push(["", this.spec.x.name, this.isTime ? timeText(x) : valueText(x)]);
      this.pointer.append(element("line", { class: "cross", x1: this.pixelOf(x), x2: this.pixelOf(x), y1: 0, y2: this.height }));
    }
    for (const { curve, i, k, far } of found) {
      if (far > best.far + 12) continue;
      lines.push([this.look(i), curve.name, valueText(curve.y[k])]);
      if (!this.spec.stacked) this.pointer.append(element("circle", { class: `dot ${this.look(i)}`, cx: this.pixelOf(curve.x[k]), cy: this.rise(curve.y[k]), r: 3.5 }));
    }
    for (const mark of marks) lines.push(["mark", mark.text, ""]);
    this.show(event, lines);
  }

  show(event, lines) {
    this.tip.replaceChildren(...lines.map(([look, name, value]) =>
      element("div", {}, element("span", {}, look ? element("span", { class: `swatch ${look}` }) : null, name), element("b", {}, value))));
    this.tip.hidden = false;
    const area = this.svg.getBoundingClientRect();
    const x = event.clientX - area.left, y = event.clientY - area.top;
    this.tip.style.left = `${Math.max(0, Math.min(area.width - this.tip.offsetWidth, x < area.width / 2 ? x + 16 : x - this.tip.offsetWidth - 16))}px`;
    this.tip.style.top = `${Math.max(0, Math.min(area.height - this.tip.offsetHeight, y - this.tip.offsetHeight - 8))}px`;
  }
}
