// The rollout trees of a group: turns from left to right, one row per leaf.

const ROW = 24;
const TOP = 14;

/** Rows and columns of every turn of a group's trees. */
function layout(group) {
  const places = [];
  let row = 0;
  let deepest = 0;
  group.trees.forEach((tree, t) => {
    const kids = kidsOf(tree);
    const spot = tree.map(() => null);
    const visit = (at, depth) => {
      deepest = Math.max(deepest, depth);
      const own = kids[at].filter((k) => !tree[k].spawn);
      const sessions = kids[at].filter((k) => tree[k].spawn);
      const rows = own.map((k) => visit(k, depth + 1));
      const y = rows.length ? rows[0] : row++;
      sessions.forEach((k) => visit(k, depth + 1));
      spot[at] = { depth, row: y };
      return y;
    };
    tree.forEach((turn, at) => turn.parent < 0 && visit(at, 0));
    places.push(spot);
    if (t < group.trees.length - 1 && tree.length > 1) row += 0.35;
  });
  return { places, rows: row, deepest };
}

function drawTree() {
  const group = groupNow();
  const { places, rows, deepest } = layout(group);
  const width = Math.max(200, byId("tree").clientWidth || 300);
  const label = 92;
  const gap = clamp((width - label - 24) / Math.max(1, deepest), 13, 56);
  const X = (spot) => 12 + spot.depth * gap;
  const Y = (spot) => TOP + spot.row * ROW;
  const edges = [];
  const nodes = [];
  group.trees.forEach((tree, t) => {
    tree.forEach((turn, at) => {
      const spot = places[t][at];
      if (!spot) return;
      if (turn.parent >= 0) edges.push(edge(places[t][turn.parent], spot, X, Y, turn, t, at));
      nodes.push(node(group, tree, t, at, X(spot), Y(spot)));
    });
  });
  const leaves = group.paths.map((path, p) => {
    const spot = places[path.tree][path.turns[path.turns.length - 1]];
    return leafLabel(group, path, p, X(spot) + 10, 24 + deepest * gap + 4, Y(spot));
  });
  const height = TOP + rows * ROW;
  const wide = 24 + deepest * gap + label;
  const drawing = svg("svg", {
    width: wide, height, viewBox: `0 0 ${wide} ${height}`, role: "tree", "aria-label": `rollout trees, ${plural(group.paths.length, "path")}`,
  }, ...edges, ...leaves, ...nodes);
  byId("tree").replaceChildren(
    el("div", { class: "treebox" }, drawing),
    el("p", { class: "hint" }, "Fill: the turn's mean in the chosen colouring."));
  markNode();
}

function edge(from, to, X, Y, turn, t, at) {
  const [x1, y1, x2, y2] = [X(from), Y(from), X(to), Y(to)];
  const bend = Math.min(14, (x2 - x1) / 2);
  const d = y1 === y2 ? `M${x1} ${y1}H${x2}` : `M${x1} ${y1}C${x1 + bend} ${y1} ${x1} ${y2} ${x1 + bend} ${y2}H${x2}`;
  return svg("path", { class: `edge${turn.spawn ? " spawned" : ""}`, d, "data-edge": `${t}:${at}` });
}

/** Mean of the colouring over a turn's tokens in all paths that hold them; rewards are summed. */
function nodeValue(group, t, at) {
  const colour = colourNow();
  if (colour.id === "rewards") return rewardOf(group.trees[t][at]);
  const values = [];
  for (const p of pathsThrough(group, t, at)) {
    const path = group.paths[p];
    const turn = group.trees[t][at];
    const offset = offsetOf(group, path, path.turns.indexOf(at));
    for (let i = 0; i < turn.n[1]; i++) {
      const value = colour.of(path, turn, offset, i);
      if (value !== null) values.push(value);
    }
  }
  return values.length ? mean(values) : null;
}

function node(group, tree, t, at, x, y) {
  const turn = tree[at];
  const colour = colourNow();
  const value = nodeValue(group, t, at);
  const [cls, strength] = shade(colour, colour.kind === "mask" && value !== null ? Math.round(value) : value, scaleOf(group, colour));
  const fork = isFork(tree, at);
  const r = turn.partial ? 4 : 6;
  const shape = fork
    ? svg("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, rx: 1.5, transform: `rotate(45 ${x} ${y})` })
    : turn.spawn
      ? svg("rect", { x: x - 6, y: y - 6, width: 12, height: 12, rx: 3 })
      : svg("circle", { cx: x, cy: y, r });
  const name = [`tree ${t + 1}, turn at depth ${depthOf(tree, at) + 1}`, fork ? "branch point" : "", turn.spawn ? "new session" : "",
    value === null ? "" : `${colour.name.toLowerCase()} ${formatValue(colour, value)}`, turn.status === "running" ? "" : STATUS[turn.status][1]].filter(Boolean).join(", ");
  return svg("g", {
    class: `node ${cls}`, vars: { "--x": `${strength}%` }, role: "treeitem", "aria-label": name, tabindex: -1, "data-node": `${t}:${at}`,
    onclick: () => openNode(t, at), onfocus: (event) => event.currentTarget.scrollIntoView({ block: "nearest", inline: "nearest" }),
  }, svg("circle", { class: "hit", cx: x, cy: y, r: 11 }), shape, svg("title", {}, name));
}

function depthOf(tree, at) {
  let depth = 0;
  for (let i = at; tree[i].parent >= 0; i = tree[i].parent) depth++;
  return depth;
}

function leafLabel(group, path, p, from, x, y) {
  const end = endOf(group, path);
  const total = path.reward;
  return svg("g", { class: `leaf s-${end.status}`, "data-leaf": p, onclick: () => go({ path: p, turn: path.turns.length - 1, token: null }, true) },
    from < x - 6 ? svg("line", { class: "lead", x1: from, x2: x - 6, y1: y, y2: y }) : null,
    svg("rect", { class: "row", x: x - 3, y: y - 10, width: 86, height: 20, rx: 5 }),
    svg("text", { x, y: y + 4 }, `${STATUS[end.status][0]} ${num(total, true)}`),
    svg("text", { class: "dim", x: x + 78, y: y + 4, "text-anchor": "end" }, `${p + 1}`));
}

/** Show the path through a turn: the present one if it has it, else the first. */
function openNode(t, at) {
  const group = groupNow();
  const through = pathsThrough(group, t, at);
  if (!through.length) return;
  const p = through.includes(state.path) ? state.path : through[0];
  go({ path: p, turn: group.paths[p].turns.indexOf(at), token: null }, true, true);
}

function markNode() {
  const path = pathNow();
  const here = `${path.tree}:${path.turns[state.turn]}`;
  const line = new Set();
  const tree = treeNow();
  for (let i = path.turns[path.turns.length - 1]; i >= 0; i = tree[i].parent) line.add(`${path.tree}:${i}`);
  for (const item of document.querySelectorAll("[data-edge]")) item.classList.toggle("lit", line.has(item.dataset.edge));
  for (const item of document.querySelectorAll("[data-node]")) {
    const now = item.dataset.node === here;
    item.classList.toggle("lit", line.has(item.dataset.node));
    item.classList.toggle("now", now);
    item.setAttribute("tabindex", now ? 0 : -1);
    item.setAttribute("aria-selected", String(now));
  }
  for (const item of document.querySelectorAll("[data-leaf]")) item.classList.toggle("lit", Number(item.dataset.leaf) === state.path);
}

/** Arrow keys in the tree. */
function moveNode(key) {
  const focused = document.activeElement.closest("[data-node]");
  const [t, at] = focused.dataset.node.split(":").map(Number);
  const group = groupNow();
  const tree = group.trees[t];
  let next = null;
  if (key === "ArrowLeft" && tree[at].parent >= 0) next = [t, tree[at].parent];
  if (key === "ArrowRight") {
    const kids = kidsOf(tree)[at];
    if (kids.length) next = [t, kids.find((k) => pathNow().turns.includes(k)) ?? kids[0]];
  }
  if (key === "ArrowUp" || key === "ArrowDown") {
    const { places } = layout(group);
    const depth = places[t][at].depth;
    const column = places.flatMap((spots, i) => spots.map((spot, j) => [spot, i, j])).filter(([spot]) => spot?.depth === depth)
      .sort((a, b) => a[0].row - b[0].row);
    const index = column.findIndex(([, i, j]) => i === t && j === at) + (key === "ArrowDown" ? 1 : -1);
    if (column[index]) next = [column[index][1], column[index][2]];
  }
  if (!next) return;
  openNode(...next);
  document.querySelector(`[data-node="${next[0]}:${next[1]}"]`)?.focus({ preventScroll: true });
}

/** Mean return over the run; steps with rollouts are buttons. */
function drawCurve() {
  const curve = data.curve;
  byId("curve-card").hidden = curve.length < 2;
  if (curve.length < 2) return;
  const [w, h, pad] = [288, 74, 6];
  const [first, last] = [curve[0][0], curve[curve.length - 1][0]];
  const lows = curve.map((row) => row[1]);
  const [low, high] = [Math.min(0, ...lows), Math.max(0, ...lows)];
  const X = (step) => pad + ((step - first) / Math.max(1, last - first)) * (w - 2 * pad);
  const Y = (value) => h - 14 - ((value - low) / Math.max(1e-9, high - low)) * (h - 24);
  const value = (step) => curve.reduce((best, row) => (Math.abs(row[0] - step) < Math.abs(best[0] - step) ? row : best))[1];
  byId("curve").replaceChildren(svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `mean return from ${num(curve[0][1])} to ${num(curve[curve.length - 1][1])}` },
    svg("line", { class: "axis", x1: pad, x2: w - pad, y1: Y(0), y2: Y(0) }),
    svg("polyline", { class: "line", points: curve.map((row) => `${X(row[0])},${Y(row[1])}`).join(" ") }),
    ...data.steps.map((step, s) => svg("g", { class: `stop${s === state.step ? " now" : ""}`, onclick: () => go({ step: s }) },
      svg("circle", { cx: X(step.step), cy: Y(value(step.step)), r: 4.5 }), svg("title", {}, `step ${step.step}: return ${num(value(step.step))}`))),
    svg("text", { class: "dim", x: pad, y: h - 2 }, `step ${first}`),
    svg("text", { class: "dim", x: w - pad, y: h - 2, "text-anchor": "end" }, `step ${last}`),
    svg("text", { class: "dim", x: w / 2, y: h - 2, "text-anchor": "middle" }, `highest ${num(Math.max(...lows))}`)));
}
