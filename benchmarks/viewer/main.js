// Choosing what is shown: pickers, deep links, keys, theme.

/** Change what is shown; `scroll` brings the turn into view, `keep` leaves the focus. */
function go(change, scroll = false, keep = false) {
  const before = { ...state };
  Object.assign(state, change);
  if ("step" in change && !("group" in change)) { state.group = Math.min(state.group, stepNow().groups.length - 1); state.path = 0; state.turn = 0; }
  if ("group" in change && !("path" in change)) { state.path = 0; state.turn = 0; }
  if ("path" in change && !("turn" in change)) state.turn = 0;
  if (!("token" in change)) state.token = null;
  settle();
  const other = before.step !== state.step || before.group !== state.group;
  if (other) drawGroup();
  if (other || before.path !== state.path || before.colour !== state.colour) drawPath();
  else { drawToken(); markTurn(); }
  if (state.token !== null) focusToken(state.turn, state.token);
  else if (scroll) focusTurn(keep);
  writeHash();
}

/** Positions that exist, whatever a link says. */
function settle() {
  state.step = clamp(state.step, 0, data.steps.length - 1);
  state.group = clamp(state.group, 0, stepNow().groups.length - 1);
  state.path = clamp(state.path, 0, groupNow().paths.length - 1);
  state.turn = clamp(state.turn, 0, pathNow().turns.length - 1);
  const shown = turnsOf(groupNow(), pathNow())[state.turn];
  if (!hasTokens(shown)) state.token = null;
  if (state.token !== null) state.token = clamp(state.token, 0, shown.act.length - 1);
  const usable = colourings();
  if (!usable.some((c) => c.id === state.colour)) state.colour = usable[0].id;
}

function drawGroup() {
  drawCurve();
  fillPickers();
}

function drawPath() {
  drawColours();
  drawHead();
  drawTurns();
  drawTree();
  drawCrawl();
  drawLegend();
  drawToken();
  byId("step").value = state.step;
  byId("group").value = state.group;
  byId("path").value = state.path;
}

function fillPickers() {
  const option = (i, text) => el("option", { value: i }, text);
  const group = groupNow();
  byId("step").replaceChildren(...data.steps.map((s, i) => option(i, String(s.step))));
  byId("group").replaceChildren(...stepNow().groups.map((g, i) => option(i, `${i + 1} · ${visible(g.task)}`)));
  byId("path").replaceChildren(...group.paths.map((p, i) => option(i, `${i + 1} · ${STATUS[endOf(group, p).status][0]} ${num(p.reward, true)}`)));
}

function drawColours() {
  byId("colours").replaceChildren(...colourings().map((colour) => {
    const input = el("input", { type: "radio", name: "colour", id: `colour-${colour.id}`, value: colour.id, checked: colour.id === state.colour });
    input.addEventListener("change", () => { go({ colour: colour.id }); byId(`colour-${colour.id}`).focus(); });
    return el("label", { title: colour.help }, input, el("span", {}, colour.name));
  }));
}

function focusTurn(keep = false) {
  const card = document.querySelector(`.turn[data-turn="${state.turn}"]`);
  if (!card) return;
  if (!keep) card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "start", behavior: "auto" });
}

// ---------------------------------------------------------------------- links

let written = "";

function writeHash() {
  const parts = [["step", stepNow().step], ["group", state.group + 1], ["path", state.path + 1], ["turn", state.turn + 1]];
  if (state.token !== null) parts.push(["token", state.token + 1]);
  parts.push(["colour", state.colour]);
  written = `#${parts.map(([k, v]) => `${k}=${v}`).join("&")}`;
  history.replaceState(null, "", written);
}

/** Positions that a link names; what it does not name or names wrongly is the first. */
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const place = (name) => Math.max(0, (Number.parseInt(given.get(name) ?? "1", 10) || 1) - 1);
  const step = data.steps.findIndex((s) => String(s.step) === given.get("step"));
  const colour = COLOURS.some((c) => c.id === given.get("colour")) ? given.get("colour") : state.colour;
  const token = given.has("token") ? place("token") : null;
  return { step: Math.max(0, step), group: place("group"), path: place("path"), turn: place("turn"), token, colour };
}

// ---------------------------------------------------------------------- keys

function shift(what, by) {
  const most = { step: data.steps.length, group: stepNow().groups.length, path: groupNow().paths.length }[what];
  const next = state[what] + by;
  if (next >= 0 && next < most) go({ [what]: next });
}

function nextColour() {
  const usable = colourings();
  const now = usable.findIndex((c) => c.id === state.colour);
  go({ colour: usable[(now + 1) % usable.length].id, token: state.token });
}

const KEYS = {
  j: () => go({ turn: state.turn + 1, token: null }, true),
  k: () => go({ turn: state.turn - 1, token: null }, true),
  "[": () => shift("path", -1), "]": () => shift("path", 1),
  "{": () => shift("group", -1), "}": () => shift("group", 1),
  ",": () => shift("step", -1), ".": () => shift("step", 1),
  c: nextColour, t: () => byId("theme").click(), "?": () => byId("keys").showModal(),
  "/": () => byId("find-text").focus(),
  n: () => openHit(hit + 1), p: () => openHit(hit - 1),
  Escape: () => go({ token: null }, true),
};

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const target = event.target;
  if (event.key in ARROWS) {
    if (target.closest("[data-node]")) moveNode(event.key);
    else if (target.closest(".t[data-token]")) moveToken(...ARROWS[event.key]);
    else if (target.closest(".turn") && event.key.match(/Left|Right/)) focusToken(state.turn, 0);
    else return;
    event.preventDefault();
    return;
  }
  if (target.closest("input[type=search], select")) return;
  if ((event.key === "Enter" || event.key === " ") && target.closest("[data-node]")) {
    target.closest("[data-node]").dispatchEvent(new MouseEvent("click"));
    focusTurn();
    event.preventDefault();
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// ---------------------------------------------------------------------- start

function watchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  });
}

function start() {
  document.documentElement.dataset.started = "";
  byId("title").textContent = data.title;
  byId("about").textContent = Object.entries(data.about).map(([k, v]) => `${k} ${v}`).join(" · ") || data.place;
  byId("about").title = data.place;
  byId("step").parentElement.hidden = data.steps.length === 1 && !data.steps[0].tokens;
  drawPair();
  byId("crawl-symbols").hidden = !data.steps.some((step) => step.groups.some(hasCrawl));
  byId("notes").hidden = !data.notes.length;
  byId("notes").replaceChildren(...data.notes.map((note) => el("p", {}, note)));
  for (const what of ["step", "group", "path"]) byId(what).addEventListener("change", (event) => go({ [what]: Number(event.target.value) }));
  for (const button of document.querySelectorAll("[data-go]")) {
    const [what, by] = button.dataset.go.split(":");
    button.addEventListener("click", () => shift(what, Number(by)));
  }
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("skip").addEventListener("click", () => focusTurn());
  Object.assign(state, readHash());
  settle();
  drawGroup();
  drawPath();
  watchTokens();
  watchTabs();
  watchFind();
  watchTheme();
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => { if (location.hash !== written) { Object.assign(state, readHash()); settle(); drawGroup(); drawPath(); arrive(); } });
  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; drawTree(); } });
  if (location.hash) arrive();
}

/** Bring what a link names into view. */
function arrive() {
  if (state.token !== null) focusToken(state.turn, state.token);
  else if (state.turn) focusTurn();
  writeHash();
}

start();
