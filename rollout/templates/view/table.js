// The table of episodes. Only the rows in sight are in the document.

const ROW = 29; // pixels
const SPARE = 12; // rows above and below those in sight

class EpisodeTable {
  constructor(columns, keys, present, choose) {
    Object.assign(this, { present, choose, sorted: null, descending: false, chosen: null });
    byId("box").addEventListener("scroll", () => this.draw());
    byId("filter").addEventListener("input", () => this.refresh());
    new ResizeObserver(() => this.draw()).observe(byId("box"));
    this.update(columns, keys, null);
  }

  // Takes a newer table; the order and the place stay.
  update(columns, keys, chosen) {
    const top = byId("box").scrollTop;
    Object.assign(this, { columns, keys, chosen, texts: null });
    this.all = keys.map((_, n) => n);
    const [sorted, names] = [this.sorted?.name, byId("names")];
    this.sorted = columns.find(({ name }) => name === sorted) || null;
    const focused = [...names.children].findIndex((cell) => cell.contains(document.activeElement));
    names.replaceChildren(...columns.map((column) => this.head(column)));
    names.children[focused]?.firstChild.focus();
    this.widths = columns.map(({ name, values }) => {
      let longest = name;
      for (const value of values) {
        const text = shown(value);
        if (text.length > longest.length) longest = text.slice(0, 40);
      }
      return longest;
    });
    this.refresh();
    byId("box").scrollTop = top;
    this.draw();
  }

  head(column) {
    const button = make("button", { type: "button", title: `Sort by ${column.name}` }, column.name);
    const cell = make("th", { className: column.kind, scope: "col" }, button);
    if (column === this.sorted) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
    button.addEventListener("click", () => {
      // Large numbers are looked for more often than small ones.
      const first = column.kind === "number" && column.name !== "episode";
      this.descending = this.sorted === column ? !this.descending : first;
      this.sorted = column;
      for (const other of byId("names").children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      this.refresh();
    });
    return cell;
  }

  refresh() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.texts ??= words.length ? this.all.map((n) => this.columns.map(({ values }) => shown(values[n])).join(" ").toLowerCase()) : null;
    this.order = words.length ? this.all.filter((n) => words.every((word) => this.texts[n].includes(word))) : [...this.all];
    if (this.sorted) this.sort();
    byId("count").textContent = this.order.length === this.all.length ? plural(this.all.length, "episode") : `${this.order.length.toLocaleString("en")} of ${plural(this.all.length, "episode")}`;
    byId("box").scrollTop = 0;
    this.draw();
  }

  // What is missing comes last, whatever the order.
  sort() {
    const { kind, values } = this.sorted;
    const sign = this.descending ? -1 : 1;
    const missing = (value) => value === null || value === "";
    const compare = (a, b) => {
      if (kind === "digits") return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
      return kind === "number" ? a - b : a.localeCompare(b);
    };
    this.order.sort((m, n) => {
      const [a, b] = [values[m], values[n]];
      if (missing(a) || missing(b)) return missing(a) - missing(b) || m - n;
      return sign * compare(a, b) || m - n;
    });
  }

  draw() {
    const box = byId("box");
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.order.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + SPARE);
    const space = (rows) => {
      const cell = make("td", { colSpan: this.columns.length });
      cell.style.height = `${rows * ROW}px`;
      return make("tr", { className: "space" }, cell);
    };
    const widths = make("tr", { className: "widths", ariaHidden: "true" }, ...this.widths.map((text) => make("td", {}, text)));
    const rows = this.order.slice(first, last).map((n) => this.row(n));
    const none = make("tr", {}, make("td", { className: "empty", colSpan: this.columns.length }, this.all.length ? "No episode has these words." : "No episode has begun."));
    const focused = document.activeElement.closest?.("#rows .row")?.dataset.n;
    byId("rows").replaceChildren(widths, space(first), ...rows, space(this.order.length - last), ...(this.order.length ? [] : [none]));
    if (focused) byId("rows").querySelector(`[data-n="${Number(focused)}"]`)?.focus({ preventScroll: true });
  }

  row(n) {
    const cells = this.columns.map(({ name, kind, values }) => {
      const marked = name === "outcome" || name === "end" ? ` ${values[n]}` : "";
      return make("td", { className: kind + marked, title: kind === "text" ? values[n] : "" }, shown(values[n]));
    });
    const chosen = n === this.chosen;
    const row = make("tr", { className: this.present(n) ? "row" : "row absent", tabIndex: 0, ariaSelected: String(chosen) }, ...cells);
    row.dataset.n = n;
    row.addEventListener("click", () => this.choose(n));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.choose(n);
    });
    return row;
  }

  mark(n) {
    this.chosen = n;
    const place = this.order.indexOf(n);
    const box = byId("box");
    const [top, room] = [place * ROW, box.clientHeight - 2 * ROW];
    if (place >= 0 && (top < box.scrollTop || top > box.scrollTop + room)) box.scrollTop = Math.max(0, top - room / 2);
    this.draw();
  }

  // The episode before or after the chosen one, as they are listed.
  beside(by) {
    const place = this.order.indexOf(this.chosen);
    return this.order[place < 0 ? 0 : place + by];
  }
}
