// The transcript of an episode: its entries in their order, those of the shown step marked.

const NEAR = 60; // entries in the document, before and after the shown step

class Transcript {
  constructor(root, seek) {
    Object.assign(this, { root, seek, hidden: new Set(), entries: [], frame: 0 });
    byId("talk").addEventListener("click", (event) => {
      const entry = event.target.closest("button[data-step]");
      if (entry) this.seek(Number(entry.dataset.step));
    });
    byId("entry-back").addEventListener("click", () => this.move(-1));
    byId("entry-on").addEventListener("click", () => this.move(1));
  }

  load(data) {
    this.entries = data.transcript.map(([step, kind, who, text]) => ({ step, kind, who, text: data.strings[text] }));
    const kinds = new Map();
    for (const { kind } of this.entries) kinds.set(kind, (kinds.get(kind) || 0) + 1);
    byId("kinds").replaceChildren(...[...kinds].map(([kind, count]) => this.toggle(kind, count)));
    this.root.hidden = !this.entries.length;
  }

  toggle(kind, count) {
    const button = make("button", { type: "button", ariaPressed: String(!this.hidden.has(kind)), className: `chip is-${kind}` }, `${kind} ${count.toLocaleString("en")}`);
    button.addEventListener("click", () => {
      if (!this.hidden.delete(kind)) this.hidden.add(kind);
      button.ariaPressed = String(!this.hidden.has(kind));
      this.show(this.frame);
    });
    return button;
  }

  get listed() {
    return this.entries.filter(({ kind }) => !this.hidden.has(kind));
  }

  // To the step of the entry before or after the shown step.
  move(by) {
    const steps = this.listed.map(({ step }) => step);
    const found = by > 0 ? steps.find((step) => step > this.frame) : steps.findLast((step) => step < this.frame);
    if (found !== undefined) this.seek(found);
  }

  show(frame) {
    this.frame = frame;
    if (this.root.hidden) return;
    const listed = this.listed;
    const after = listed.findIndex(({ step }) => step > frame);
    const middle = after < 0 ? listed.length : after;
    const [first, last] = [Math.max(0, middle - NEAR), Math.min(listed.length, middle + NEAR)];
    const more = (count, where) => (count ? [make("li", { className: "more" }, `${count.toLocaleString("en")} ${where}`)] : []);
    const focused = byId("talk").contains(document.activeElement);
    byId("talk").replaceChildren(...more(first, "before"), ...listed.slice(first, last).map((entry) => this.item(entry)), ...more(listed.length - last, "after"));
    const now = byId("talk").querySelector("[aria-current]") || byId("talk").children[middle - first - 1];
    if (now) byId("talk").scrollTop = now.offsetTop - byId("talk").clientHeight / 3;
    if (focused) now?.querySelector("button")?.focus({ preventScroll: true });
    const latest = (kind) => this.entries.findLast((entry) => entry.step <= frame && entry.kind === kind);
    const pinned = [latest("plan"), latest("question"), latest("answer"), latest("verdict")].filter(Boolean);
    byId("pinned").replaceChildren(...pinned.flatMap(({ kind, who, text }) => [make("dt", {}, who ? `${kind}, ${who}` : kind), make("dd", {}, text)]));
    byId("entry-back").disabled = !listed.some(({ step }) => step < frame);
    byId("entry-on").disabled = !listed.some(({ step }) => step > frame);
  }

  item({ step, kind, who, text }) {
    const asks = kind === "chat" && text.trimEnd().endsWith("?") ? " asks" : "";
    const head = make("button", { type: "button", title: `Show step ${step}` }, make("b", {}, kind), who ? ` ${who}` : "", make("span", {}, `step ${step}`));
    head.dataset.step = step;
    const item = make("li", { className: `entry is-${kind}${asks}` }, head, make("p", {}, text));
    if (step === this.frame) item.setAttribute("aria-current", "step");
    return item;
  }
}
