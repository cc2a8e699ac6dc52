// Puts the parts of the page together.

const summary = JSON.parse(byId("summary").textContent);
const { about, served } = summary; // served: live, done or not at all
let { keys } = summary;
const column = (name, n) => summary.table.find((each) => each.name === name)?.values[n];
const blocks = new Map([...document.querySelectorAll("script.steps")].map((block) => [block.dataset.key, block]));
const videos = [...document.querySelectorAll("script.video")];
const plots = new Plots(byId("plots"));
const words = new Words(byId("words"));
const transcript = new Transcript(byId("transcript"), (step) => film.go(step));
const film = new Film(showStep);
let current = null;
let loaded = ""; // of the shown episode, as the table told
let newest = "";

function showHead() {
  document.title = `${about.task} – ${about.name}`;
  byId("title").textContent = `${about.task} in ${about.bridge}`;
  byId("columns").hidden = !about.columns;
  byId("goal").textContent = about.goal;
  const ends = new Map();
  for (const end of summary.table.find(({ name }) => name === "end").values) ends.set(end, (ends.get(end) || 0) + 1);
  const facts = [
    ["episodes", [...ends].map(([end, count]) => `${count.toLocaleString("en")} ${end}`).join(", ") || "none"],
    ["steps in all", about.steps.toLocaleString("en")], ["policy", about.policy], [about.columns ? "dataset" : "evaluation", about.name], ["created", about.created], ["run", about.run],
  ];
  byId("facts").append(...facts.filter(([, value]) => value).map(([name, value]) => make("li", {}, `${name} `, make("b", {}, value))));
  byId("columns").querySelector("tbody").append(...(about.columns ?? []).map((each) => make("tr", {}, ...each.map((text) => make("td", {}, text)))));
}

const recorded = (n) => keys[n].includes(":");
const present = (n) => (served ? recorded(n) : blocks.has(keys[n]));

async function stepsOf(n) {
  const data = await recordedSteps(n);
  if (data?.failed) throw new Error(data.failed);
  return data;
}

async function recordedSteps(n) {
  if (blocks.has(keys[n])) return JSON.parse(blocks.get(keys[n]).textContent);
  if (!served || !recorded(n)) return null;
  const reply = await fetch(`episode/${keys[n].replace(":", "/")}`);
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

// Shows an episode; one that is shown already is loaded again, and stays at its step.
async function choose(n, frame = 0) {
  if (n === undefined) return;
  const again = current === n;
  if (!again) film.pause();
  current = n;
  table.mark(n);
  byId("viewer").hidden = false;
  showBadges(n);
  if (!again) showVideos(n);
  if (served && recorded(n) && !again) {
    byId("panes").hidden ||= !film.data; // those of the episode before stay until then
    byId("notes").replaceChildren(make("li", { className: "loading" }, "Loading the steps …"));
  }
  let [data, failed] = [null, ""];
  try {
    data = await stepsOf(n);
  } catch (error) {
    failed = `The steps cannot be shown: ${error.message}`;
  }
  if (current !== n) return; // another was chosen meanwhile
  loaded = told(n);
  byId("notes").replaceChildren(...[...notesOf(n, data, failed), failed].filter(Boolean).map((text) => make("li", {}, text)));
  byId("panes").hidden = data === null;
  byId("videos").hidden = data?.pictures.length > 0; // the film of the steps shows more
  if (data === null) return;
  const place = again ? (film.frame >= film.count - 1 ? Infinity : film.frame) : frame;
  plots.load(data, (step) => film.go(step));
  words.load(data);
  transcript.load(data);
  byId("panes").classList.toggle("talking", words.any);
  byId("panes").classList.toggle("told", data.transcript.length > 0);
  byId("words").hidden = !words.any;
  film.load(data);
  film.seek(place);
}

// Videos of an episode: in this page, from its server, or in a file beside it.
function showVideos(n) {
  const mine = videos.filter(({ dataset }) => dataset.key === keys[n]);
  byId("videos").replaceChildren(...mine.map((block) => {
    const { caption, link } = block.dataset;
    const src = block.textContent || (served ? link : "");
    const shownAs = src ? make("video", { controls: true, loop: true, muted: true, preload: "metadata", src, ariaLabel: caption }) : make("a", { href: link }, link);
    return make("figure", {}, shownAs, make("figcaption", {}, caption));
  }));
}

function showBadges(n) {
  const attempt = column("attempt", n) ? `, attempt ${column("attempt", n)}` : "";
  const of = ["player", "set", "actions"].map((name) => column(name, n)).filter(Boolean).join(", ");
  byId("which").textContent = `Episode ${column("episode", n)}${attempt}${of && `: ${of}`}`;
  const badges = ["outcome", "end"].filter((name) => column(name, n)).map((name) => make("span", { className: column(name, n) }, column(name, n)));
  byId("badges").replaceChildren(...badges, `return ${shown(column("return", n))}, ${plural(column("length", n), "step")}`);
  byId("previous").disabled = table.beside(-1) === undefined;
  byId("next").disabled = table.beside(1) === undefined;
}

function told(n) {
  return ["length", "end", "outcome"].map((name) => column(name, n)).join();
}

// What a run has recorded since; the page waits longer where that takes long.
async function refresh() {
  let pause = 2000;
  if (byId("live").getAttribute("aria-pressed") === "true") {
    const began = performance.now();
    try {
      const reply = await fetch("now");
      if (!reply.ok) throw new Error(await reply.text());
      const news = await reply.text();
      if (news !== newest || (current !== null && told(current) !== loaded)) show(JSON.parse(news));
      newest = news;
      byId("trouble").textContent = "";
    } catch (error) {
      byId("trouble").textContent = `No news: ${error.message}`;
    }
    pause = Math.max(pause, 5 * (performance.now() - began));
  }
  setTimeout(refresh, pause);
}

function show(news) {
  const key = keys[current];
  summary.table = news.table;
  keys = news.keys;
  current = keys.includes(key) ? keys.indexOf(key) : current;
  table.update(news.table, keys, current);
  if (current === null) choose(keys.length ? 0 : undefined);
  else if (!film.timer && told(current) !== loaded) choose(current);
}

function notesOf(n, data, failed) {
  const notes = [];
  const end = column("end", n);
  if (end === "lost") notes.push(`Lost, so not a result. ${column("reason", n) || column("last loss", n) || ""}`);
  for (const name of ["failure", "did not hold"]) if (column(name, n)) notes.push(`${name}: ${column(name, n)}`);
  if (end === "unfinished") notes.push(`Not finished: it ${served ? "is being played" : "was being played when this page was made"}, or its run was interrupted.`);
  if (end === "damaged") notes.push("Damaged: steps are missing or repeated.");
  if (data === null && !recorded(n)) notes.push(about.absent);
  else if (data === null && !failed && about.more) notes.push(about.more);
  else if (data === null && !served && !failed) {
    notes.push(`This file does not have the steps of this episode. Make one that has: gamut dataset view DATASET --episodes ${column("episode", n)}`);
  }
  for (const { name, left_out: count } of data?.pictures || []) {
    if (count) notes.push(`${name}: ${plural(count, "frame")} left out of this page for its size; the frame before is shown.`);
  }
  if (data?.not_shown.length) notes.push(`Not shown, because too large: ${data.not_shown.join(", ")}.`);
  return notes;
}

function showStep(frame) {
  const { reward, action, strings } = film.data;
  const end = frame >= reward.length;
  const total = reward.slice(0, frame + 1).reduce((sum, each) => sum + (each ?? 0), 0);
  const rows = end ? [["end", [column("end", current), column("outcome", current)].filter(Boolean).join(", ")]] : [["action", strings[action[frame]]], ["reward", shown(reward[frame])]];
  if (reward.length) rows.push(["return", shown(total)]);
  byId("now").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { className: name }, value)]));
  plots.show(frame);
  words.show(frame);
  transcript.show(frame);
  try {
    history.replaceState(null, "", `#${keys[current]}/${frame}`);
  } catch { /* a browser limits how often; the address is a convenience */ }
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input[type=search], select, video")) return;
  const moves = { ArrowLeft: film.frame - 1, ArrowRight: film.frame + 1, Home: 0, End: film.count - 1 };
  if (current === null) return;
  if (event.key in moves && !byId("panes").hidden) film.go(moves[event.key]);
  else if (event.key === "n" || event.key === "p") transcript.move(event.key === "n" ? 1 : -1);
  else if (event.key === "ArrowUp" || event.key === "ArrowDown") choose(table.beside(event.key === "ArrowUp" ? -1 : 1));
  else if (event.key === " " && !event.target.matches("button, summary")) film.toggle();
  else return;
  event.preventDefault();
}

showHead();
const table = new EpisodeTable(summary.table, keys, present, choose);
byId("previous").addEventListener("click", () => choose(table.beside(-1)));
byId("next").addEventListener("click", () => choose(table.beside(1)));
document.addEventListener("keydown", onKey);
byId("live").hidden = served !== "live";
byId("live").addEventListener("click", () => {
  byId("live").ariaPressed = String(byId("live").ariaPressed !== "true");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  plots.draw();
  film.drawTrack();
});
const [key, frame] = decodeURIComponent(location.hash.slice(1)).split("/");
const linked = keys.indexOf(key);
const first = linked >= 0 ? linked : keys.findIndex((_, n) => present(n) || videos.some(({ dataset }) => dataset.key === keys[n]));
if (first >= 0) choose(first, Number(frame) || 0);
if (served === "live") setTimeout(refresh, 2000);
