// The calls of models that decided a step, and other texts of it.

function callCard(call, strings) {
  const spent = [];
  if (call.input_tokens !== undefined || call.output_tokens !== undefined) {
    const cached = call.cached_tokens ? ` (${call.cached_tokens} cached)` : "";
    const hidden = call.reasoning_tokens ? ` (${call.reasoning_tokens} reasoning)` : "";
    spent.push(`${shown(call.input_tokens)}${cached} → ${shown(call.output_tokens)}${hidden} tokens`);
  }
  if (call.usd !== undefined) spent.push(`$${shown(call.usd)}`);
  if (call.seconds !== undefined) spent.push(`${shown(call.seconds)} s`);
  if (call.waited_s) spent.push(`of which ${shown(call.waited_s)} s waiting`);
  if (call.finish && call.finish !== "stop") spent.push(`finish: ${call.finish}`);
  if (call.earlier) spent.push("reply recorded earlier");
  if (call.try) spent.push(`try ${call.try + 1}`);
  const model = [call.reported || call.asked || "model", call.role].filter(Boolean).join(", ");
  const bar = make("div", { className: "bar" }, make("b", {}, model), ...spent.map((text) => make("span", {}, text)));
  if (call.usable === false) bar.append(make("span", { className: "badge bad" }, `unusable: ${call.code || "no action"}`));
  const list = make("dl");
  const add = (name, text) => list.append(make("dt", {}, name), make("dd", { className: "text" }, text));
  for (const [name, text] of call.fields || []) add(name, strings[text]);
  if (call.action) add("action", String(call.action));
  if (call.reasoning !== undefined) add("reasoning", strings[call.reasoning]);
  if (call.answer !== undefined) add("answer", strings[call.answer]);
  for (const tool of call.tools || []) add("tool", strings[tool]);
  if (call.problem !== undefined) add("problem", strings[call.problem]);
  for (const error of call.errors || []) add("earlier error", String(error));
  const card = make("div", { className: call.usable === false ? "call unusable" : "call" }, bar, list);
  if (call.messages.length) {
    const prompt = make("details", {}, make("summary", {}, `Prompt, ${plural(call.messages.length, "message")}`));
    prompt.addEventListener("toggle", () => {
      if (prompt.children.length > 1) return;
      for (const [role, text] of call.messages) {
        prompt.append(make("div", { className: "message" }, make("b", {}, role), make("pre", { className: "code" }, strings[text])));
      }
    });
    card.append(prompt);
  }
  return card;
}

class Words {
  constructor(root) {
    this.root = root;
  }

  load(data) {
    this.data = data;
  }

  get any() {
    return this.data.transcript.length > 0 || this.data.texts.length > 0;
  }

  show(frame) {
    const { calls, strings, texts } = this.data;
    const before = calls.filter(([step]) => step <= frame);
    const parts = [];
    if (calls.length) {
      const sum = (name) => before.reduce((total, [, call]) => total + (call[name] ?? 0), 0);
      const usd = before.some(([, call]) => call.usd !== undefined) ? `, $${shown(sum("usd"))}` : "";
      const tokens = (sum("input_tokens") + sum("output_tokens")).toLocaleString("en");
      const made = calls.filter(([step]) => step === frame);
      const none = made.length ? "" : " No call at this step.";
      parts.push(make("p", { className: "total" }, `${plural(before.length, "call")} so far, ${tokens} tokens${usd}.${none}`));
      parts.push(...made.map(([, call]) => callCard(call, strings)));
    }
    for (const { name, values } of texts) {
      const text = values[frame] === undefined ? "" : strings[values[frame]];
      const open = !this.data.transcript.length;
      if (text) parts.push(make("details", { open }, make("summary", {}, name), make("pre", { className: "code" }, text)));
    }
    this.root.replaceChildren(...parts);
  }
}
