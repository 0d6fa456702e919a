// The data, what is shown of it, and small helpers that all parts use.

const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;

// Positions in lists; `turn` and `token` are positions in the path and in the turn's action.
const state = { step: 0, group: 0, path: 0, turn: 0, token: null, colour: "advantages" };

const byId = (id) => document.getElementById(id);
const stepNow = () => data.steps[state.step];
const groupNow = () => stepNow().groups[state.group];
const pathNow = () => groupNow().paths[state.path];
const treeNow = () => groupNow().trees[pathNow().tree];
const turnsOf = (group, path) => path.turns.map((at) => group.trees[path.tree][at]);

/** An element; texts become text nodes, so nothing in the data is ever read as markup. */
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, props, children);
  return node;
}

function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, props, children);
  return node;
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
}

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const sum = (list) => list.reduce((a, b) => a + b, 0);
const mean = (list) => (list.length ? sum(list) / list.length : 0);
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

/** Short number with a real minus sign; `sign` adds a plus. */
function num(x, sign = false) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  let text = size !== 0 && size < 0.001 ? size.toExponential(1) : size.toFixed(size < 10 ? 3 : 1);
  if (text.includes(".") && !text.includes("e")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  return (x < 0 && text !== "0" ? "−" : sign && x > 0 ? "+" : "") + text;
}

/** Text as it can safely be seen: controls and marks that turn the writing get names. */
function visible(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f\u0080-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** Whether the turn's action is there token by token. */
const hasTokens = (turn) => stepNow().tokens && turn.act.length === turn.n[1];

const textOf = (numbers) => (numbers ? numbers.map((n) => words[n]).join("") : "");

/** Place of a turn's first action token in the streams of its path. */
function offsetOf(group, path, position) {
  let offset = 0;
  for (let i = 0; i < position; i++) offset += group.trees[path.tree][path.turns[i]].n[1];
  return offset;
}

/** Paths of the group through a turn of a tree, as positions in the group's list. */
const throughCache = new WeakMap();
function pathsThrough(group, tree, at) {
  let known = throughCache.get(group);
  if (!known) {
    known = new Map();
    group.paths.forEach((path, p) => {
      path.turns.forEach((t) => {
        const key = `${path.tree}:${t}`;
        if (!known.has(key)) known.set(key, []);
        known.get(key).push(p);
      });
    });
    throughCache.set(group, known);
  }
  return known.get(`${tree}:${at}`) ?? [];
}

/** Children of each turn of a tree. */
const kidsCache = new WeakMap();
function kidsOf(tree) {
  let kids = kidsCache.get(tree);
  if (!kids) {
    kids = tree.map(() => []);
    tree.forEach((turn, i) => turn.parent >= 0 && kids[turn.parent].push(i));
    kidsCache.set(tree, kids);
  }
  return kids;
}

const isFork = (tree, at) => kidsOf(tree)[at].filter((k) => !tree[k].spawn).length > 1;
const endOf = (group, path) => group.trees[path.tree][path.turns[path.turns.length - 1]];
const isMasked = (path) => !path.trained;
const terms = (turn) => turn.terms.map(([name, value]) => `${name} ${num(value, true)}`).join(", ");
const rewardOf = (turn) => sum(turn.rewards.map(([, value]) => value));

const STATUS = {
  running: ["…", "left running"],
  solved: ["✓", "solved"],
  failed: ["✕", "failed"],
  truncated: ["▪", "truncated"],
  env_error: ["!", "environment error"],
};
