// Ratings by people. Every choice is sent at once; the page goes on when it is on the disk.

const about = JSON.parse(byId("about").textContent);
const pairwise = about.mode === "pairwise";
const NONE = { value: null, label: "cannot tell", key: "n" };
const CHOICES = [{ value: "A", label: "A is better", key: "a" }, { value: "tie", label: "equal", key: "t" }, { value: "B", label: "B is better", key: "b" }, NONE];
let [rater, items, current, focus, sending] = ["", [], 0, 0, Promise.resolve()];

// The scores that a criterion offers: whole numbers, or eleven steps of its scale.
function choicesOf({ low, high }) {
  if (pairwise) return CHOICES;
  const whole = Number.isInteger(low) && Number.isInteger(high) && high - low <= 10;
  const count = whole ? high - low + 1 : 11;
  const scores = [...Array(count).keys()].map((n) => (whole ? low + n : Number((low + (n * (high - low)) / 10).toPrecision(4))));
  return [...scores.map((value, n) => ({ value, label: String(value), key: n === 10 ? "x" : whole ? String(value) : String(n) })), NONE];
}

const complete = ({ scores }) => about.criteria.every(({ name }) => name in scores);

function showEntry() {
  const what = pairwise ? "pairs of recordings: which of the two is better" : "recordings, one after the other";
  byId("what").textContent = `${about.count} ${what}. Ratings are kept at every key that you press; you can stop at any time and go on later under the same name.`;
  byId("raters").append(...Object.entries(about.raters).map(([name, done]) => make("option", { value: name }, `${done} of ${about.count}`)));
  byId("rater").focus();
}

async function asked(path, options) {
  let reply = null;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is gamut rate still running?");
  }
  if (!reply.ok) throw new Error(await reply.text());
  return reply;
}

async function begin(event) {
  event.preventDefault();
  byId("refused").textContent = "";
  try {
    const reply = await asked(`work?rater=${encodeURIComponent(byId("rater").value)}`);
    ({ rater, items } = await reply.json());
  } catch (error) {
    byId("refused").textContent = error.message;
    return;
  }
  document.activeElement?.blur();
  byId("entry").hidden = true;
  const open = items.findIndex((item) => !complete(item));
  if (open < 0) finish();
  else show(open);
}

function show(n) {
  current = n;
  const item = items[n];
  byId("work").hidden = false;
  byId("end").hidden = true;
  byId("goal").textContent = item.goal || item.task;
  byId("place").textContent = `${pairwise ? "Pair" : "Recording"} ${n + 1} of ${items.length}`;
  byId("saved").textContent = "";
  byId("back").disabled = n === 0;
  byId("criteria").replaceChildren(...about.criteria.map((criterion, c) => cardOf(criterion, c, item)));
  const open = about.criteria.findIndex(({ name }) => !(name in item.scores));
  focus = Math.max(0, open);
  mark();
  showVideos(item);
}

function cardOf(criterion, c, item) {
  const rules = item.rules[criterion.name] || [];
  const buttons = choicesOf(criterion).map(({ value, label, key }) => {
    const button = make("button", { type: "button", title: `Key ${key}` }, label);
    button.addEventListener("click", () => { focus = c; choose(value); });
    button.dataset.value = JSON.stringify(value);
    return button;
  });
  return make("div", { className: "criterion" },
    make("h3", {}, criterion.title), make("p", {}, criterion.doc),
    make("ul", {}, ...rules.map((rule) => make("li", {}, rule))), make("div", { className: "scores" }, ...buttons));
}

function mark() {
  const { scores } = items[current];
  [...byId("criteria").children].forEach((card, c) => {
    const { name } = about.criteria[c];
    card.classList.toggle("now", c === focus);
    card.classList.toggle("given", name in scores);
    for (const button of card.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(name in scores && button.dataset.value === JSON.stringify(scores[name])));
    }
  });
  byId("criteria").children[focus].scrollIntoView({ block: "nearest" });
  const done = items.filter(complete).length;
  byId("done").value = done / items.length;
  byId("counts").textContent = `${done} of ${items.length} rated`;
  byId("next").classList.toggle("ready", complete(items[current]));
}

function showVideos(item) {
  const sides = pairwise ? (item.swapped ? ["1", "0"] : ["0", "1"]) : ["0"];
  clearVideos();
  const figures = sides.map((side, n) => {
    const video = make("video", { muted: true, loop: true, playsInline: true, preload: "auto", tabIndex: -1 });
    load(video, item, side);
    return make("figure", {}, ...(pairwise ? [make("figcaption", {}, "AB"[n])] : []), video);
  });
  byId("videos").replaceChildren(...figures);
  byId("trouble").textContent = "";
}

function clearVideos() {
  for (const video of videos()) {
    const { src } = video;
    video.removeAttribute("src");
    video.load(); // so that nothing reads it any more
    if (src) URL.revokeObjectURL(src);
  }
  byId("videos").replaceChildren();
}

async function load(video, item, side) {
  try {
    const file = await (await asked(`video/${item.item}/${side}`)).blob();
    if (items[current] !== item) return;
    video.src = URL.createObjectURL(file);
    video.addEventListener("error", () => video.getAttribute("src") && tell("This browser cannot play the recording; answer “cannot tell”."));
    setSpeed();
    await video.play().catch(() => {});
    showPlaying();
  } catch (error) {
    if (items[current] === item) tell(`The recording cannot be shown: ${error.message}`);
  }
}

function tell(text) {
  byId("trouble").textContent = text;
}

function choose(value) {
  const item = items[current];
  const { name } = about.criteria[focus];
  const scores = { [name]: value };
  item.scores[name] = value;
  if (focus < about.criteria.length - 1) focus++;
  mark();
  byId("saved").textContent = "saving …";
  // One after the other, so that the last choice is the last line of the file.
  sending = sending.then(() => send(item, name, value, { rater, item: item.item, swapped: item.swapped, scores }));
}

async function send(item, name, value, data) {
  try {
    await asked("rating", { method: "POST", body: JSON.stringify(data) });
    if (items[current] === item) byId("saved").textContent = "saved";
  } catch (error) {
    if (item.scores[name] === value) delete item.scores[name];
    if (!byId("work").hidden) mark();
    byId("saved").textContent = "";
    tell(`Not saved: ${error.message}`);
  }
}

async function move(step) {
  await sending;
  if (byId("work").hidden) return;
  if (step > 0 && !complete(items[current])) {
    focus = about.criteria.findIndex(({ name }) => !(name in items[current].scores));
    mark();
    if (!byId("trouble").textContent) byId("saved").textContent = "rate all of them first";
    return;
  }
  if (current + step >= items.length) return items.every(complete) ? finish() : show(items.findIndex((item) => !complete(item)));
  if (current + step >= 0) show(current + step);
}

async function finish() {
  byId("work").hidden = true;
  byId("end").hidden = false;
  clearVideos();
  const { alpha, raters } = await (await asked("agreement")).json();
  byId("heads").replaceChildren(make("tr", {}, make("th", {}, "rater"), make("th", {}, "rated")));
  const rows = Object.entries(raters).map(([name, { done, all }]) => [name, `${done} of ${all}`]);
  const titles = new Map(about.criteria.map(({ name, title }) => [name, title]));
  const agreed = Object.entries(alpha).map(([name, value]) => [`Krippendorff's alpha: ${titles.get(name)}`, value.toFixed(3)]);
  byId("alphas").replaceChildren(...[...rows, ...agreed].map((row) => make("tr", {}, ...row.map((text) => make("td", {}, text)))));
}

const videos = () => [...document.querySelectorAll("video")];

function toggle() {
  const paused = videos().every((video) => video.paused);
  for (const video of videos()) paused ? video.play().catch(() => {}) : video.pause();
  showPlaying();
}

function showPlaying() {
  byId("play").textContent = videos().every((video) => video.paused) ? "Play" : "Pause";
}

function setSpeed() {
  for (const video of videos()) video.playbackRate = Number(byId("speed").value);
}

function seek(seconds) {
  for (const video of videos()) {
    video.pause();
    video.currentTime = Math.min(video.duration || 0, Math.max(0, video.currentTime + seconds));
  }
  showPlaying();
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || byId("work").hidden || event.target.matches("select")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const chosen = choicesOf(about.criteria[focus]).find((each) => each.key === key);
  if (chosen) choose(chosen.value);
  else if (key === "ArrowDown" || key === "ArrowUp") {
    focus = Math.min(about.criteria.length - 1, Math.max(0, focus + (key === "ArrowDown" ? 1 : -1)));
    mark();
  } else if (key === "ArrowLeft" || key === "ArrowRight") seek(key === "ArrowRight" ? 0.5 : -0.5);
  else if (key === " ") toggle();
  else if (key === "Enter") move(1);
  else if (key === "Backspace") move(-1);
  else return;
  event.preventDefault();
}

const scoring = pairwise ? "a, b: the better one. t: equal." : "Digits: the score, x: 10.";
byId("keys").textContent = `${scoring} n: cannot tell. Arrow up, down: another criterion. Enter: next. Backspace: previous. Space: play. Arrow left, right: half a second.`;
byId("who").addEventListener("submit", begin);
byId("next").addEventListener("click", () => move(1));
byId("back").addEventListener("click", () => move(-1));
byId("again").addEventListener("click", () => show(0));
byId("play").addEventListener("click", toggle);
byId("speed").addEventListener("change", setSpeed);
document.addEventListener("keydown", onKey);
showEntry();
