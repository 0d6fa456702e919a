// A crawl for papers: sessions, what each action found, and the queue.

const KINDS = { search: "⌕", expand: "⇲", invalid: "✕", stop: "■" };

/** Turns of a tree with a crawl's report, in the order they were taken. */
const crawlTurns = (tree) => tree.map((turn, at) => ({ turn, at })).filter(({ turn }) => turn.crawl);
const hasCrawl = (group) => group.trees.some((tree) => tree.some((turn) => turn.crawl));

function drawCrawl() {
  const group = groupNow();
  const tab = byId("tab-crawl");
  tab.hidden = !hasCrawl(group);
  if (tab.hidden) {
    showTab("tree");
    byId("crawl").replaceChildren();
    return;
  }
  const steps = crawlTurns(treeNow());
  if (!steps.length) {
    byId("crawl").replaceChildren(el("p", { class: "hint" }, "This tree reports no crawl."));
    return;
  }
  const queue = new Map();
  const read = new Map();
  for (const { turn, at } of steps) {
    if (turn.crawl.paper && !read.has(turn.crawl.paper)) read.set(turn.crawl.paper, at);
    for (const deed of turn.crawl.actions) for (const paper of deed.found) if (!queue.has(paper.id)) queue.set(paper.id, { ...paper, at });
  }
  const papers = [...queue.values()];
  const first = steps[0].turn.crawl;
  const answers = papers.filter((p) => p.answer).length;
  const waits = steps[steps.length - 1].turn.crawl.waiting;
  const sessions = new Map();
  for (const step of steps) {
    const id = step.turn.crawl.session;
    if (!sessions.has(id)) sessions.set(id, []);
    sessions.get(id).push(step);
  }
  byId("crawl").replaceChildren(
    el("p", { class: "request" }, visible(first.request)),
    el("div", { class: "chips" },
      chip(`★ ${answers} of ${plural(first.answers, "answer")}`, answers ? "good" : ""),
      chip(`${papers.length} in the queue`), chip(`${papers.filter((p) => p.selected).length} selected`),
      chip(`${read.size} read`), chip(`${waits} waiting`)),
    el("div", { class: "sessions" }, ...[...sessions.values()].map((list) => sessionCard(list, read))),
    el("details", { class: "queue" }, el("summary", {}, `Queue in the order found (${papers.length})`),
      el("ol", { class: "papers" }, ...papers.map((paper) => paperRow(paper, read)))));
  markDeeds();
}

function sessionCard(list, read) {
  const { paper, title, session } = list[0].turn.crawl;
  return el("section", { class: "session" },
    el("h3", {}, paper ? el("span", {}, "Reads ", el("cite", {}, visible(title))) : "Searches", el("span", { class: "muted" }, ` session ${session}`)),
    ...list.flatMap(({ turn, at }) => turn.crawl.actions.map((deed) => deedRow(deed, at, read))));
}

function deedRow(deed, at, read) {
  const own = deed.kind !== "stop" || deed.error;
  return el("div", { class: `deed ${deed.kind}`, "data-deed": at },
    el("button", { type: "button", class: "deed-head", onclick: () => openNode(pathNow().tree, at) },
      el("span", { class: "kind", "aria-hidden": "true" }, KINDS[deed.kind] ?? "·"), el("span", {}, `${deed.kind} `, el("b", {}, visible(deed.arg))),
      el("span", { class: "cost" }, own ? `${deed.found.length} new, ${deed.relevant} relevant · ${num(-deed.cost)}` : "")),
    deed.error ? el("p", { class: "hint bad" }, visible(deed.error)) : null,
    deed.found.length ? el("ul", { class: "papers" }, ...deed.found.map((paper) => paperRow(paper, read))) : null);
}

function paperRow(paper, read) {
  const at = read.get(paper.id);
  const marks = [paper.answer ? "★" : "", paper.selected ? "✓" : ""].join("");
  const name = [paper.answer ? "annotated answer" : "", paper.selected ? "selected" : "not selected", at === undefined ? "not read" : "read"].filter(Boolean).join(", ");
  return el("li", { class: `paper${paper.answer ? " answer" : ""}${paper.selected ? " selected" : ""}`, title: name },
    el("span", { class: "score", vars: { "--x": `${Math.round(paper.score * 100)}%` }, role: "img", "aria-label": `score ${num(paper.score)}` }),
    el("span", { class: "badge", "aria-label": name, role: "img" }, marks),
    el("span", { class: "name" }, visible(paper.title)),
    at === undefined ? null : el("button", { type: "button", class: "read", onclick: () => openNode(pathNow().tree, at) }, "read"));
}

function markDeeds() {
  const at = pathNow().turns[state.turn];
  for (const row of document.querySelectorAll("[data-deed]")) row.classList.toggle("now", Number(row.dataset.deed) === at);
}

function showTab(name) {
  for (const tab of ["tree", "crawl"]) {
    const on = tab === name;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(on));
    byId(`tab-${tab}`).tabIndex = on ? 0 : -1;
    byId(tab).hidden = !on;
  }
  if (name === "tree") drawTree();
}

function watchTabs() {
  for (const name of ["tree", "crawl"]) {
    byId(`tab-${name}`).addEventListener("click", () => showTab(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = name === "tree" ? "crawl" : "tree";
      if (byId(`tab-${other}`).hidden) return;
      showTab(other);
      byId(`tab-${other}`).focus();
      event.stopPropagation();
    });
  }
}
