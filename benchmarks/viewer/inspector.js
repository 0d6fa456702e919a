// Everything that is known about one token, and what other paths make of it.

const NAMES = {
  advantages: "advantage", old_logprobs: "log-prob at the step's start", ref_logprobs: "log-prob of the reference",
  new_logprobs: "log-prob after the step", values: "value before the token", value_targets: "value target",
  credit: "credit of the turn", true_advantage: "true advantage of the turn", true_error: "its standard error",
  spawned_values: "value of asked sessions", tracked_values: "expected of the task",
};
const FIRST = ["advantages", "values", "value_targets"];

function drawToken() {
  const box = byId("token");
  const card = byId("token-card");
  card.hidden = !stepNow().tokens;
  if (state.token === null) {
    card.classList.remove("open");
    box.replaceChildren(el("p", { class: "hint" }, "Point at a token, or reach one with Tab and the arrow keys."));
    return;
  }
  card.classList.add("open");
  const group = groupNow();
  const path = pathNow();
  const turn = turnsOf(group, path)[state.turn];
  const i = state.token;
  const text = visible(words[turn.act[i]]).replaceAll("\n", "↵");
  const head = el("p", { class: "token-text" }, el("code", {}, text || "part of a character"));
  const offset = offsetOf(group, path, state.turn);
  const rows = [["place", `turn ${state.turn + 1}, token ${i + 1} of ${turn.n[1]}`],
    ["mask", isMasked(path) ? "masked: the episode broke" : "trained"]];
  const put = (name) => {
    const value = path.streams[name]?.[offset + i];
    if (value !== undefined) rows.push([NAMES[name] ?? name.replaceAll("_", " "), num(value, FIRST.includes(name))]);
  };
  FIRST.forEach(put);
  const reward = turn.rewards.find(([at]) => at === i);
  if (reward) rows.push(["reward", num(reward[1], true)]);
  if (stepNow().sampled) {
    rows.push(["entropy, nats", num(turn.entropies[i])],
      ["log-prob as sampled", num(turn.logprobs[i])],
      ["probability", `${(Math.exp(turn.logprobs[i]) * 100).toFixed(1)} %`]);
  }
  Object.keys(path.streams).filter((name) => !FIRST.includes(name)).forEach(put);
  const ratio = COLOURS.find((c) => c.id === "ratio");
  if (stepNow().sampled && path.streams.new_logprobs) rows.push(["ratio after / before", formatValue(ratio, ratio.of(path, turn, offset, i))]);
  box.replaceChildren(head,
    el("dl", { class: "facts" }, ...rows.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    ...sharedBy(group, path, turn, i));
}

/** The same token's advantage in every path that shares it. */
function sharedBy(group, path, turn, i) {
  const at = path.turns[state.turn];
  const others = pathsThrough(group, path.tree, at);
  if (others.length < 2 || !path.streams.advantages) return [];
  const colour = COLOURS[0];
  const scale = scaleOf(group, colour);
  const rows = others.map((p) => {
    const other = group.paths[p];
    const value = other.streams.advantages?.[offsetOf(group, other, other.turns.indexOf(at)) + i] ?? null;
    const [cls, strength] = shade(colour, value, scale);
    return el("li", {}, el("button", {
      type: "button", class: p === state.path ? "here" : null,
      onclick: () => go({ path: p, turn: other.turns.indexOf(at), token: i }),
    }, `path ${p + 1}`), el("span", { class: "bar" }, el("span", { class: cls, vars: { "--x": `${strength}%` } })),
    el("span", { class: "n" }, formatValue(colour, value)));
  });
  return [el("h3", {}, `Shared by ${others.length} paths`), el("ul", { class: "shared" }, ...rows)];
}
