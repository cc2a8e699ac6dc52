// The pictures of an episode with the controls that move through its steps.

const SIDE = 560; // pixels; smaller pictures are enlarged by whole factors
const SMOOTH = 300; // pixels; wider pictures are smoothed where they are scaled

class Film {
  constructor(changed) {
    this.changed = changed;
    this.frame = 0;
    this.count = 0;
    this.timer = 0;
    byId("scrub").addEventListener("input", (event) => this.seek(Number(event.target.value)));
    byId("play").addEventListener("click", () => this.toggle());
    onDrag(byId("track"), (share) => this.seek(Math.round(share * (this.count - 1))));
    new ResizeObserver(() => this.drawTrack()).observe(byId("track"));
  }

  load(data) {
    this.pause();
    this.data = data;
    const pictures = Math.max(0, ...data.pictures.map(({ at }) => at.length));
    const told = (data.transcript.at(-1)?.[0] ?? -1) + 1; // of the end, where there are no pictures
    this.count = Math.max(pictures, data.reward.length, told);
    this.images = data.pictures.map((column) => {
      const factor = Math.max(1, Math.floor(Math.min(SIDE / column.width, SIDE / column.height)));
      const image = make("img", { alt: column.name, className: column.width < SMOOTH ? "small" : "" });
      image.style.width = `min(${column.width * factor}px, 46vh * ${column.width / column.height})`;
      image.style.aspectRatio = `${column.width} / ${column.height}`;
      const lossy = column.lossy ? `, recorded as ${column.lossy}` : "";
      const caption = make("figcaption", {}, `${column.name}${lossy}`);
      return { image, column, caption, figure: make("figure", {}, image, caption) };
    });
    byId("stage").replaceChildren(...this.images.map(({ figure }) => figure));
    byId("controls").hidden = this.count === 0;
    byId("scrub").max = Math.max(0, this.count - 1);
    this.drawTrack();
  }

  seek(frame) {
    this.frame = Math.min(Math.max(0, frame), Math.max(0, this.count - 1));
    byId("scrub").value = this.frame;
    for (const { image, column, caption } of this.images) this.picture(image, column, caption);
    const end = this.frame >= this.data.reward.length;
    byId("place").textContent = end ? `end, after ${plural(this.data.reward.length, "step")}` : `step ${this.data.step[this.frame]} of ${this.data.reward.length}`;
    this.changed(this.frame);
  }

  // To a step that a person chose.
  go(frame) {
    this.pause();
    this.seek(frame);
  }

  // The picture of the step, or the one before that is there.
  picture(image, column, caption) {
    let at = Math.min(this.frame, column.at.length - 1);
    while (at > 0 && column.at[at] === null) at--;
    const file = column.at[at];
    image.hidden = file === null || file === undefined;
    if (!image.hidden) image.src = `data:${column.files[file]}`;
    caption.classList.toggle("lost", at < this.frame && column.at.length > this.frame);
  }

  toggle() {
    if (this.timer) return this.pause();
    if (this.frame >= this.count - 1) this.seek(0);
    byId("play").textContent = "⏸";
    byId("play").setAttribute("aria-label", "Pause");
    const next = () => {
      this.timer = setTimeout(next, 1000 / Number(byId("speed").value));
      this.seek(this.frame + 1);
      if (this.frame >= this.count - 1) this.pause();
    };
    next();
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
    byId("play").textContent = "▶";
    byId("play").setAttribute("aria-label", "Play");
  }

  // Marks of rewards above, of what was said, called and judged below.
  drawTrack() {
    if (!this.data) return;
    const { pen, width, height } = sharpened(byId("track"));
    const place = (frame) => 8 + (frame / Math.max(1, this.count - 1)) * (width - 16);
    const rewarded = this.data.reward.map((reward, t) => [reward, t]).filter(([reward]) => reward);
    if (rewarded.length <= this.data.reward.length / 2) {
      for (const [reward, t] of rewarded) {
        pen.fillStyle = colour(reward > 0 ? "--good" : "--bad");
        pen.fillRect(place(t) - 1, 0, 2, height / 2);
      }
    }
    for (const [t, kind] of this.data.transcript) {
      if (kind === "event" || kind === "stage") continue;
      pen.fillStyle = colour({ call: "--accent", chat: "--ink", violation: "--bad" }[kind] || "--warn");
      pen.fillRect(place(t) - 1, height / 2 + 1, 2, height / 2 - 1);
    }
  }
}
