// The conversation of a path: heading, ribbon of all tokens, one card per turn.

function chip(text, cls = "", title = "") {
  return el("span", { class: `chip ${cls}`, title: title || null }, text);
}

function drawHead() {
  const group = groupNow();
  const path = pathNow();
  const turns = turnsOf(group, path);
  const end = endOf(group, path);
  const sessions = end.status === "running" && treeNow().some((turn) => turn.spawn);
  const [mark, status] = sessions ? ["…", "session over"] : STATUS[end.status];
  const trained = sum(turns.map((t) => t.n[1]));
  const seen = sum(turns.map((t) => t.n[0]));
  const total = path.return ?? path.reward;
  const facts = [
    chip(`${mark} ${status}`, `s-${end.status}`),
    chip(`return ${num(total, true)}`, total > 0 ? "good" : total < 0 ? "bad" : "", "of the whole episode"),
  ];
  if (path.return !== null && Math.abs(path.return - path.reward) > 1e-6) facts.push(chip(`this session ${num(path.reward, true)}`));
  facts.push(chip(plural(turns.length, "turn")));
  if (stepNow().tokens) {
    facts.push(isMasked(path)
      ? chip("all masked", "bad", "The environment broke, so nothing of it is trained")
      : chip(`${trained.toLocaleString("en")} trained`, "trained", "action tokens"));
    facts.push(chip(`${seen.toLocaleString("en")} masked`, "off", "prompt and observation tokens"));
  }
  if (path.streams.advantages) facts.push(chip(`mean advantage ${num(mean(path.streams.advantages), true)}`));
  if (scaleOf(group, COLOURS[0]) === 0 && path.streams.advantages) facts.push(chip("no signal", "", "Every advantage of this group is 0"));
  if (group.faults) facts.push(chip(`${plural(group.faults, "attempt")} broke before the first turn`, "bad"));
  if (group.pruned[0]) facts.push(chip(`${plural(group.pruned[0], "turn")} paid for but left out`));
  byId("head").replaceChildren(
    el("div", { class: "head-line" },
      el("h2", {}, visible(group.task)),
      el("span", { class: "muted" }, `path ${state.path + 1} of ${group.paths.length}` +
        (group.trees.length > 1 ? `, tree ${path.tree + 1} of ${group.trees.length}` : ""))),
    el("div", { class: "chips" }, ...facts),
    ...(stepNow().tokens ? [ribbon(group, path)] : []),
  );
}

/** All tokens of the path as one strip: masked in grey, trained in the colouring. */
function ribbon(group, path) {
  const turns = turnsOf(group, path);
  const total = sum(turns.map((t) => t.n[0] + t.n[1]));
  const colour = colourNow();
  const scale = scaleOf(group, colour);
  const parts = [];
  let x = 0;
  let offset = 0;
  turns.forEach((turn, position) => {
    const jump = { onclick: () => go({ turn: position, token: null }, true) };
    if (turn.n[0]) parts.push(svg("rect", { class: "r off", x, y: 6, width: turn.n[0], height: 12, ...jump }));
    x += turn.n[0];
    for (let i = 0; i < turn.n[1]; i++, x++) {
      const value = isMasked(path) && colour.kind === "mask" ? 0 : colour.of(path, turn, offset, i);
      const [cls, strength] = shade(colour, value, scale);
      parts.push(svg("rect", {
        class: `r on ${cls}`, vars: { "--x": `${strength}%` }, x, y: 0, width: 1, height: 24,
        onclick: () => focusToken(position, i),
      }));
    }
    offset += turn.n[1];
    if (position) parts.push(svg("line", { class: "cut", x1: x - turn.n[0] - turn.n[1], x2: x - turn.n[0] - turn.n[1], y1: -3, y2: 27 }));
  });
  const label = `${total} tokens: low bars are masked, high bars are trained`;
  return el("figure", { class: "ribbon" },
    svg("svg", { viewBox: `0 -4 ${total} 32`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...parts),
    el("figcaption", { class: "hint" }, label));
}

function drawTurns() {
  const group = groupNow();
  const path = pathNow();
  let sofar = 0;
  const cards = turnsOf(group, path).map((turn, position) => {
    sofar += rewardOf(turn);
    return turnCard(group, path, turn, position, sofar);
  });
  byId("turns").replaceChildren(...cards);
  markTurn();
}

function turnCard(group, path, turn, position, sofar) {
  const at = path.turns[position];
  const tree = group.trees[path.tree];
  const reward = rewardOf(turn);
  const before = position ? tree[path.turns[position - 1]] : null;
  const result = before?.calls.length && !before.partial ? `Result of ${[...new Set(before.calls.map((c) => visible(c.tool)))].join(", ")}` : position ? "Observation" : turn.spawn ? "Prompt of a new session" : "Prompt";
  const unit = stepNow().tokens;
  return el("article", {
    class: `card turn${turn.spawn ? " spawn" : ""}${path.turns.length > 24 ? " many" : ""}`, "data-turn": position, tabindex: -1,
    "aria-label": `turn ${position + 1}`,
  },
    el("header", {},
      el("h3", {}, `Turn ${position + 1}`),
      el("div", { class: "chips" }, ...turnChips(group, path, tree, turn, at)),
      el("span", { class: `reward ${reward > 0 ? "good" : reward < 0 ? "bad" : ""}`, title: "reward of the turn, and the path's sum so far" },
        `${num(reward, true)}`, el("small", {}, ` Σ ${num(sofar, true)}`))),
    (unit ? turn.n[0] : textOf(turn.obs).trim()) ? block("obs", result, unit ? `masked · ${plural(turn.n[0], "token")}` : "", textOf(turn.obs), maskedTokens(turn.obs)) : null,
    block("act", turn.partial ? "Action, first part" : before?.partial ? "Action, goes on" : "Action",
      unit ? `${isMasked(path) ? "masked" : "trained"} · ${plural(turn.n[1], "token")}` : "",
      textOf(turn.act), actionTokens(position), turn.calls),
    turn.terms.length || turn.metrics.length ? footer(turn) : null);
}

/** Credit beside truth: what the recipe says of the turn, and what continuations show. */
function truthChips(group, path, turn, at) {
  const offset = offsetOf(group, path, path.turns.indexOf(at));
  const [credit, truth, error] = ["credit", "true_advantage", "true_error"].map((name) => path.streams[name]?.[offset] ?? null);
  if (truth === null || credit === null) return [];
  const certain = Math.abs(truth) > 3 * error;
  const right = Math.sign(credit) === Math.sign(truth);
  return [
    chip(`credit ${num(credit, true)}`, certain ? (right ? "good" : "bad") : "",
      certain ? (right ? "Of the right sign" : "Of the wrong sign") : "The truth is too near 0, or too uncertain, to tell the sign"),
    chip(`truth ${num(truth, true)} ± ${num(error)}`, "",
      `True advantage and its standard error${certain ? "" : ": within 3 standard errors of 0"}`),
  ];
}

function turnChips(group, path, tree, turn, at) {
  const chips = truthChips(group, path, turn, at);
  const ways = kidsOf(tree)[at].filter((k) => !tree[k].spawn);
  const through = pathsThrough(group, path.tree, at);
  if (through.length > 1) chips.push(chip(`in ${through.length} paths`, "", "These tokens are computed once and trained in each path"));
  if (ways.length > 1) {
    for (const kid of ways) {
      if (path.turns.includes(kid)) continue;
      const p = pathsThrough(group, path.tree, kid)[0];
      chips.push(el("button", { type: "button", class: "chip fork", onclick: () => go({ path: p, turn: group.paths[p].turns.indexOf(kid), token: null }, true) }, `fork: path ${p + 1}`));
    }
  }
  const sessions = kidsOf(tree)[at].filter((k) => tree[k].spawn);
  for (const kid of sessions.slice(0, 6)) {
    const p = pathsThrough(group, path.tree, kid)[0];
    chips.push(el("button", { type: "button", class: "chip spawn", onclick: () => go({ path: p, turn: 0, token: null }, true) }, `session: path ${p + 1}`));
  }
  if (sessions.length > 6) chips.push(chip(`and ${sessions.length - 6} sessions more`));
  if (turn.spawned) chips.push(chip(`asked for ${plural(turn.spawned, "session")}`));
  if (turn.partial) chips.push(chip("cut here: forks inside the action", "fork"));
  if (turn.verdict) chips.push(chip(`verdict ${num(turn.verdict, true)}`, turn.verdict > 0 ? "good" : "bad"));
  if (turn.invalid) chips.push(chip("not readable", "bad", "The environment could not read the action"));
  if (turn.stop === "length" && !turn.partial) chips.push(chip("cut off by the token limit", "bad"));
  if (turn.overflow) chips.push(chip("context full", "bad"));
  if (turn.status !== "running") chips.push(chip(STATUS[turn.status].join(" "), `s-${turn.status}`));
  return chips;
}

// Texts that are folded: of more characters, lines or spans.
const FOLDED = { obs: { chars: 1400, lines: 40, spans: 220 }, act: { chars: 4000, lines: 60, spans: Infinity } };
const MOST_OF_A_CALL = 400;

function block(kind, name, note, source, spans, calls = []) {
  const body = el("div", { class: `block ${kind}` },
    el("div", { class: "who" }, el("span", {}, name), el("span", { class: "muted" }, note)),
    calls.length ? el("div", { class: "calls" }, ...calls.map(callChip)) : null,
    el("div", { class: "text" }, ...spans));
  const most = FOLDED[kind];
  const long = source.length > most.chars || spans.length > most.spans || source.split("\n").length > most.lines;
  if (long) fold(body, plural([...source].length, "character"));
  return body;
}

function callChip({ tool, args }) {
  const shown = args.length > MOST_OF_A_CALL ? `${args.slice(0, MOST_OF_A_CALL)}…` : args;
  return el("span", { class: "call" }, el("b", {}, visible(tool)), shown ? ` ${visible(shown)}` : "");
}

/** Fold the text of a block; a button shows all of it, and `unfold` does where a token is chosen. */
function fold(body, length) {
  const more = el("button", { type: "button", class: "more" });
  const set = (folded) => {
    body.classList.toggle("clipped", folded);
    more.textContent = folded ? `Show all ${length}` : "Show less";
    more.setAttribute("aria-expanded", String(!folded));
  };
  more.addEventListener("click", () => {
    set(!body.classList.contains("clipped"));
    if (body.classList.contains("clipped")) body.scrollIntoView({ block: "nearest" });
  });
  body.unfold = () => set(false);
  body.append(more);
  set(true);
}

/** Show all of the text around a token that lies below the fold. */
function unfold(span) {
  const body = span.closest(".clipped");
  if (body && span.getBoundingClientRect().bottom > body.querySelector(".text").getBoundingClientRect().bottom) body.unfold();
}

function footer(turn) {
  const bars = turn.terms.map(([name, value]) => el("span", { class: `term ${value > 0 ? "good" : value < 0 ? "bad" : ""}` }, el("span", {}, visible(name)), el("b", {}, num(value, true))));
  const foot = el("footer", {});
  if (bars.length) foot.append(el("div", { class: "terms" }, el("span", { class: "muted" }, "reward"), ...bars));
  if (turn.metrics.length) {
    foot.append(el("details", {}, el("summary", {}, `${plural(turn.metrics.length, "measure")} of the episode`),
      el("dl", { class: "facts" }, ...turn.metrics.flatMap(([k, v]) => [el("dt", {}, visible(k)), el("dd", {}, num(v))]))));
  }
  return foot;
}

function markTurn() {
  for (const card of document.querySelectorAll(".turn")) {
    card.classList.toggle("current", Number(card.dataset.turn) === state.turn);
  }
  markNode();
  markDeeds();
}
