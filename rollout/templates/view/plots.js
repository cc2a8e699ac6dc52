// Plots of numbers over steps. A plot is drawn once; the cursor moves on top of it.

const LINES = 4; // wider values are drawn as a map
const COLOURS = ["--accent", "--bad", "--good", "--warn"];

class Plot {
  constructor({ name, role = "", unit = "", doc = "", values, width = 1, bars = false }, seek) {
    Object.assign(this, { values, width, bars });
    this.value = make("span", { className: "value" });
    this.canvas = make("canvas");
    this.cursor = make("div", { className: "cursor" });
    this.top = make("span", { className: "range top" });
    this.bottom = make("span", { className: "range bottom" });
    const flat = width === 1 && values.every((value) => value === values[0]);
    const area = make("div", { className: flat ? "flat area" : "area" }, this.canvas, this.top, this.bottom, this.cursor);
    const own = name.startsWith(`${role}/`) ? name.slice(role.length + 1) : name;
    const title = make("span", { className: "name", title: doc }, unit ? `${own} [${unit}]` : own);
    this.element = make("div", { className: "plot" }, make("div", { className: "bar" }, title, this.value), area);
    onDrag(area, (share) => seek(Math.round(share * Math.max(0, values.length - 1))));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(area);
  }

  remove() {
    this.observer.disconnect();
  }

  show(frame) {
    const value = this.values[frame];
    this.value.textContent = Array.isArray(value) ? value.map(shown).join(" ") : shown(value);
    const share = this.values.length > 1 ? frame / (this.values.length - 1) : 0;
    this.cursor.style.left = `${Math.min(1, share) * 100}%`;
  }

  draw() {
    const { pen, width, height } = sharpened(this.canvas);
    if (!width || !this.values.length) return;
    let [low, high] = [Infinity, -Infinity];
    for (const row of this.values) {
      for (const value of this.width > 1 ? row : [row]) {
        if (value === null) continue;
        low = Math.min(low, Number(value));
        high = Math.max(high, Number(value));
      }
    }
    if (low > high) return;
    this.top.textContent = shown(high);
    this.top.hidden = low === high;
    this.bottom.textContent = low === high ? "" : shown(low);
    if (this.width > LINES) this.drawMap(pen, width, height, low, high);
    else {
      if (this.bars) [low, high] = [Math.min(0, low), Math.max(0, high)];
      if (low === high) [low, high] = [low - 1, high + 1];
      const place = (value) => height - 5 - ((Number(value) - low) / (high - low)) * (height - 10);
      if (this.bars) this.drawBars(pen, width, place);
      else for (let n = 0; n < this.width; n++) this.drawLine(pen, width, place, n);
    }
  }

  // Of many steps in one column of pixels, the least and the greatest value.
  drawLine(pen, width, place, n) {
    pen.strokeStyle = colour(COLOURS[n]);
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    pen.beginPath();
    const count = this.values.length;
    const last = Math.max(1, count - 1);
    let drawing = false;
    for (let start = 0; start < count; ) {
      const x = (start / last) * width;
      let [stop, low, high] = [start, null, null];
      for (; stop < count && (stop === start || (stop / last) * width < x + 1); stop++) {
        const value = this.width > 1 ? this.values[stop][n] : this.values[stop];
        if (value === null) continue;
        low = low === null ? value : Math.min(low, value);
        high = high === null ? value : Math.max(high, value);
      }
      if (low === null) drawing = false;
      else {
        if (drawing) pen.lineTo(x, place(low));
        else pen.moveTo(x, place(low));
        pen.lineTo(x + (count === 1 ? width : 0.01), place(high));
        drawing = true;
      }
      start = stop;
    }
    pen.stroke();
  }

  drawBars(pen, width, place) {
    const [good, bad] = [colour("--good"), colour("--bad")];
    const count = this.values.length;
    const step = width / Math.max(1, count - 1);
    this.values.forEach((value, t) => {
      if (!value) return;
      pen.fillStyle = value > 0 ? good : bad;
      const size = Math.max(1, Math.min(8, step * 0.7));
      const x = Math.min(width - size, Math.max(0, t * step - size / 2));
      pen.fillRect(x, Math.min(place(0), place(value)), size, Math.max(1, Math.abs(place(value) - place(0))));
    });
    pen.fillStyle = colour("--line");
    pen.fillRect(0, place(0), width, 1);
  }

  drawMap(pen, width, height, low, high) {
    const map = make("canvas", { width: this.values.length, height: this.width });
    const image = new ImageData(this.values.length, this.width);
    const [cold, warm] = ["--cold", "--warm"].map((name) => colour(name).split(",").map(Number));
    this.values.forEach((row, t) => row.forEach((value, n) => {
      const share = value === null ? 0 : high > low ? (value - low) / (high - low) : 1;
      const at = 4 * (n * this.values.length + t);
      for (let c = 0; c < 3; c++) image.data[at + c] = cold[c] + share * (warm[c] - cold[c]);
      image.data[at + 3] = value === null ? 0 : 255;
    }));
    map.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(map, 0, 0, width, height);
  }
}

// All plots of an episode, in groups.
class Plots {
  constructor(root) {
    this.root = root;
    this.list = [];
  }

  load(data, seek) {
    this.list.forEach((plot) => plot.remove());
    this.list = [];
    this.root.replaceChildren();
    if (!data.reward.length) return;
    let total = 0;
    const returns = data.reward.map((reward) => (total += reward ?? 0));
    const steps = data.series.filter((each) => each.role === "step");
    this.group("Rewards", [
      { name: "reward", values: data.reward, bars: true, doc: "reward of the action" },
      { name: "return", values: returns, doc: "sum of rewards so far" },
      ...steps.filter((each) => each.name === "progress" && each.values.some((value) => value !== null)),
    ], seek);
    const of = (role) => data.series.filter((each) => each.role === role);
    this.group("Signals", of("signal"), seek);
    this.group("Observations", of("observation"), seek);
    this.group("Policy", of("extra"), seek);
    this.group("Time", steps.filter((each) => each.name !== "progress"), seek, false);
  }

  group(title, series, seek, open = true) {
    if (!series.length) return;
    const plots = series.map((each) => new Plot(each, seek));
    this.list.push(...plots);
    this.root.append(make("details", { open }, make("summary", {}, title), make("div", { className: "grid" }, ...plots.map((plot) => plot.element))));
  }

  show(frame) {
    this.list.forEach((plot) => plot.show(frame));
  }

  draw() {
    this.list.forEach((plot) => plot.draw());
  }
}
