"use strict";
// Unpack the episodes of an entry in an environment, and show those of one task at a time.
// Everything in the data is text of strangers: it becomes text nodes, never markup.

function make(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children.filter((child) => child !== null));
  return node;
}

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3);

function says(who, head, text) {
  const body = make("pre", "text", text);
  return make("div", `says ${who}`, make("b", "", ...head), body);
}

function showTurn(texts, turn, number) {
  const [seen, wrote, session, valid, reward, terms] = turn;
  const head = [`agent · turn ${number}`];
  if (!valid) head.push(" ", make("span", "chip bad", "invalid"));
  if (reward) {
    const parts = terms.map(([name, value]) => `${name} ${signed(value)}`).join(", ");
    head.push(" ", make("span", "reward", signed(reward) + (terms.length > 1 ? ` (${parts})` : "")));
  }
  const where = `environment${session ? ` · session ${session}` : ""}`;
  return make("li", "", says("env", [where], texts[seen]), says("agent", head, texts[wrote]));
}

function showEpisode(texts, one) {
  const chip = make("span", `chip ${one.status === "solved" ? "good" : "bad"}`, one.status);
  const facts = [`seed ${one.seed}`, `${one.turns.length} turn${one.turns.length === 1 ? "" : "s"}`, `return ${one.return.toFixed(3)}`];
  facts.push(...one.metrics.map(([name, value]) => `${name} ${value}`));
  const turns = one.turns.map((turn, i) => showTurn(texts, turn, i + 1));
  if (one.end !== null) turns.push(make("li", "", says("env", ["environment · end"], texts[one.end])));
  const title = make("h2", "", `Trial ${one.trial}${one.run ? `, run ${one.run}` : ""} `, chip);
  const why = one.why ? `: ${one.why}` : "";
  return make("section", "episode", title, make("p", "hint", facts.join(" · ")),
    one.error ? make("p", "note", `${one.error}${why}. The episode counts as 0.`) : null,
    make("ol", "turns", ...turns));
}

function start(data) {
  const box = document.getElementById("episodes");
  const picker = document.getElementById("task");
  const tasks = [...picker.options].map((option) => option.value);
  const [back, on] = document.querySelectorAll("#pager a");
  const draw = () => {
    const asked = location.hash.slice(1);
    const at = Math.max(0, tasks.indexOf(asked));
    picker.value = tasks[at];
    for (const [link, to] of [[back, tasks[at - 1]], [on, tasks[at + 1]]]) {
      link.hidden = to === undefined;
      link.href = `#${to ?? ""}`;
    }
    document.getElementById("which").textContent = `, task ${tasks[at]}`;
    box.replaceChildren(...data.tasks[tasks[at]].map((one) => showEpisode(data.texts, one)));
  };
  picker.addEventListener("change", () => { location.hash = picker.value; });
  addEventListener("hashchange", draw);
  document.getElementById("pager").hidden = false;
  draw();
}

unpack(globalThis.packedEpisodes).then(start).catch((error) => {
  const told = `The episodes could not be unpacked (${error.message}); they need a browser of 2023 or newer.`;
  document.getElementById("episodes").replaceChildren(make("p", "note", told));
});
