// One task before and after training, above everything else.

function drawPair() {
  const box = byId("pair");
  box.hidden = !data.pair;
  if (!data.pair) return;
  const { episodes, task, decoding, set } = data.pair;
  const body = el("div", { class: "sides" }, ...episodes.map((episode, i) => pairSide(episode, i)));
  const close = el("button", { type: "button", "aria-expanded": "true" }, "Hide");
  close.addEventListener("click", () => {
    body.hidden = !body.hidden;
    close.textContent = body.hidden ? "Show" : "Hide";
    close.setAttribute("aria-expanded", String(!body.hidden));
  });
  if (location.hash) close.click(); // a link leads to its turn
  box.replaceChildren(
    el("div", { class: "head-line" }, el("h2", { id: "pair-title" }, "One task before and after training"),
      el("span", { class: "muted" }, `${visible(task)} of ${visible(set)}, ${visible(decoding)}; below: what was trained on`), close),
    body);
}

function pairSide(episode, after) {
  const [mark, status] = STATUS[episode.status] ?? ["·", episode.status];
  return el("article", { class: "side-by-side" },
    el("header", {}, el("h3", {}, `${after ? "After" : "Before"}: step ${episode.step}`),
      el("div", { class: "chips" }, chip(`${mark} ${status}`, `s-${episode.status}`), chip(`return ${num(episode.return, true)}`), chip(plural(episode.turns.length, "turn")))),
    ...episode.turns.map(([seen, wrote], i) => el("div", {},
      seen ? block("obs", i ? "Observation" : "Prompt", "", seen, [visible(seen)]) : null,
      block("act", "Action", "", wrote, [visible(wrote)]))));
}
