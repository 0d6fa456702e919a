// Search over all turns of all steps, and kinds of turns.

const KIND_TESTS = [
  ["any", "All turns", () => true],
  ["reward", "Rewarded", (turn) => rewardOf(turn) > 0],
  ["cost", "Punished", (turn) => rewardOf(turn) < 0],
  ["invalid", "Not readable", (turn) => turn.invalid],
  ["good", "Verdict +1", (turn) => turn.verdict > 0],
  ["bad", "Verdict −1", (turn) => turn.verdict < 0],
  ["fork", "Branch points", (turn, tree, at) => isFork(tree, at)],
  ["spawn", "New sessions", (turn) => turn.spawn],
  ["cut", "Cut off", (turn) => turn.overflow || (turn.stop === "length" && !turn.partial)],
  ["solved", "Ends: solved", (turn) => turn.status === "solved"],
  ["failed", "Ends: failed", (turn) => turn.status === "failed"],
  ["truncated", "Ends: truncated", (turn) => turn.status === "truncated"],
  ["env_error", "Ends: environment error", (turn) => turn.status === "env_error"],
];
const MOST_HITS = 200;
let hits = [];
let hit = -1;
let index = null;

function* allTurns() {
  for (const [s, step] of data.steps.entries()) {
    for (const [g, group] of step.groups.entries()) {
      for (const [t, tree] of group.trees.entries()) {
        for (const [at, turn] of tree.entries()) yield { s, g, t, at, turn, tree, group };
      }
    }
  }
}

/** Kinds and tools that occur, as options. */
function fillKinds() {
  const tools = new Set();
  const seen = new Set();
  for (const place of allTurns()) {
    for (const call of place.turn.calls) tools.add(call.tool);
    for (const [name, , test] of KIND_TESTS) if (!seen.has(name) && test(place.turn, place.tree, place.at)) seen.add(name);
  }
  const kinds = KIND_TESTS.filter(([name]) => seen.has(name)).map(([name, label]) => el("option", { value: name }, label));
  const called = [...tools].sort().slice(0, 60).map((tool) => el("option", { value: `tool:${tool}` }, `Calls ${visible(tool)}`));
  byId("find-kind").replaceChildren(...kinds, ...called);
}

function search() {
  const wanted = byId("find-text").value.trim().toLowerCase();
  const kind = byId("find-kind").value;
  const test = kind.startsWith("tool:")
    ? (turn) => turn.calls.some((call) => call.tool === kind.slice(5))
    : KIND_TESTS.find(([name]) => name === kind)[2];
  index ??= [...allTurns()].map((place) => ({ ...place, text: `${textOf(place.turn.obs)}\n${textOf(place.turn.act)}`.toLowerCase() }));
  hit = -1;
  hits = !wanted && kind === "any" ? [] : index.filter(({ turn, tree, at, text }) => test(turn, tree, at) && (!wanted || text.includes(wanted)));
  drawHits(wanted, kind);
}

function drawHits(wanted, kind) {
  const box = byId("hits");
  box.hidden = !wanted && kind === "any";
  byId("find-text").setAttribute("aria-expanded", String(!box.hidden));
  const rows = hits.slice(0, MOST_HITS).map((place, i) => {
    const p = pathsThrough(place.group, place.t, place.at)[0] ?? 0;
    const turn = place.group.paths[p].turns.indexOf(place.at) + 1;
    return el("button", { type: "button", role: "option", class: "found", "data-hit": i, tabindex: -1, onclick: () => openHit(i, true) },
      el("span", { class: "muted" }, `step ${data.steps[place.s].step} · ${visible(place.group.task)} · path ${p + 1}, turn ${turn}`),
      el("span", {}, ...snippet(place, wanted)));
  });
  const count = hits.length > MOST_HITS ? `first ${MOST_HITS} of ${plural(hits.length, "turn")}` : plural(hits.length, "turn");
  box.replaceChildren(el("p", { class: "hint", role: "status" }, `${count} found`), ...rows);
}

/** A line of the turn around what was searched, which is marked. */
function snippet(place, wanted) {
  const line = (text) => visible(text).replaceAll("\n", " ");
  const at = wanted ? place.text.indexOf(wanted) : -1;
  if (at < 0) return [line(textOf(place.turn.act).slice(0, 90))];
  const whole = `${textOf(place.turn.obs)}\n${textOf(place.turn.act)}`;
  const end = at + wanted.length;
  return [line(whole.slice(Math.max(0, at - 28), at)), el("mark", {}, line(whole.slice(at, end))), line(whole.slice(end, end + 52))];
}

function openHit(i, close = false) {
  if (!hits.length) return;
  hit = (i + hits.length) % hits.length;
  const { s, g, t, at } = hits[hit];
  const group = data.steps[s].groups[g];
  const p = pathsThrough(group, t, at)[0];
  if (p === undefined) return;
  go({ step: s, group: g, path: p, turn: group.paths[p].turns.indexOf(at), token: null }, true);
  for (const row of document.querySelectorAll("[data-hit]")) row.setAttribute("aria-selected", String(Number(row.dataset.hit) === hit));
  if (close) closeHits();
}

function closeHits() {
  byId("hits").hidden = true;
  byId("find-text").setAttribute("aria-expanded", "false");
}

function watchFind() {
  fillKinds();
  let timer = 0;
  byId("find-text").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 80); });
  byId("find-text").addEventListener("focus", () => { if (hits.length) byId("hits").hidden = false; });
  byId("find-kind").addEventListener("change", search);
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search();
    openHit(0, true);
  });
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { closeHits(); focusTurn(); event.stopPropagation(); }
    const rows = [...document.querySelectorAll("[data-hit]")];
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && rows.length && event.target.id !== "find-kind") {
      const now = rows.indexOf(document.activeElement);
      const next = now + (event.key === "ArrowDown" ? 1 : -1);
      if (next < 0) byId("find-text").focus();
      else rows[Math.min(next, rows.length - 1)].focus();
      event.preventDefault();
    }
  });
  document.addEventListener("click", (event) => { if (!event.target.closest("#find")) closeHits(); });
}
