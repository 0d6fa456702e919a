// Colourings of tokens: a value per action token, a scale over the group, a legend.

const stream = (name) => (path, turn, offset, i) => path.streams[name]?.[offset + i] ?? null;
const base = (path, turn, offset, i) => path.streams.old_logprobs?.[offset + i] ?? turn.logprobs[i];

const COLOURS = [
  {
    id: "advantages", name: "Advantage", kind: "div", of: stream("advantages"),
    help: "The credit: what multiplies the gradient of the token's log-probability.",
    low: "less likely", high: "more likely",
  },
  {
    id: "truth", name: "Truth", kind: "div", of: stream("true_advantage"),
    help: "The turn's true advantage, measured by continuations (turngym credit).",
    low: "worse than the policy's own", high: "better",
  },
  {
    id: "mask", name: "Mask", kind: "mask", of: (path) => (isMasked(path) ? 0 : 1), always: true,
    help: "Only what the model wrote is trained; prompts, results and broken episodes are masked.",
  },
  {
    id: "entropies", name: "Entropy", kind: "seq", sampled: true,
    of: (path, turn, offset, i) => turn.entropies[i],
    help: "Entropy in nats of the choice as it was sampled.", low: "certain", high: "open",
  },
  {
    id: "logprobs", name: "Log-prob", kind: "seq", flip: true,
    of: (path, turn, offset, i) =>
      (stepNow().sampled ? turn.logprobs[i] : path.streams.new_logprobs?.[offset + i] ?? null),
    help: "Log-probability in nats as sampled (of demonstrations: after the step); strong colour is a surprising token.",
    low: "expected", high: "surprising",
  },
  {
    id: "ratio", name: "Ratio", kind: "div", sampled: true, ratio: true,
    of: (path, turn, offset, i) => {
      const now = path.streams.new_logprobs?.[offset + i];
      return now === undefined ? null : now - base(path, turn, offset, i);
    },
    help: "Probability after this step over the probability before it.",
    low: "fell", high: "rose",
  },
  {
    id: "values", name: "Value", kind: "div", of: stream("values"),
    help: "The critic's value of the state before the token.", low: "below 0", high: "above 0",
  },
  {
    id: "drift", name: "KL", kind: "div", sampled: true,
    of: (path, turn, offset, i) => {
      const ref = path.streams.ref_logprobs?.[offset + i];
      return ref === undefined ? null : base(path, turn, offset, i) - ref;
    },
    help: "Log-probability above the frozen reference's: the token's part of the KL.",
    low: "rarer than in the reference", high: "likelier",
  },
  {
    id: "rewards", name: "Reward", kind: "div", always: true,
    of: (path, turn, offset, i) => turn.rewards.find(([at]) => at === i)?.[1] ?? 0,
    help: "Reward on the token as the credit rule saw it.", low: "cost", high: "reward",
  },
];

const colourNow = () => COLOURS.find((c) => c.id === state.colour);

/** Colourings that the step has numbers for. */
function colourings() {
  const step = stepNow();
  const path = groupNow().paths.find((p) => p.trained && p.turns.length) ?? groupNow().paths[0];
  return COLOURS.filter((c) => {
    if (c.sampled && !step.sampled) return false;
    if (c.kind === "mask" && !step.tokens) return false;
    if (c.always) return true;
    if (!path) return false;
    return c.of(path, turnsOf(groupNow(), path)[0], 0, 0) !== null;
  });
}

/** Largest size of the colouring's values in the group: where colour is full. */
const scaleCache = new WeakMap();
function scaleOf(group, colour) {
  let known = scaleCache.get(group);
  if (!known) scaleCache.set(group, (known = {}));
  if (known[colour.id] === undefined) {
    const sizes = [];
    for (const path of group.paths) {
      let offset = 0;
      for (const turn of turnsOf(group, path)) {
        for (let i = 0; i < turn.n[1]; i++) {
          const value = colour.of(path, turn, offset, i);
          if (value !== null) sizes.push(Math.abs(value));
        }
        offset += turn.n[1];
      }
    }
    sizes.sort((a, b) => a - b);
    const top = sizes[sizes.length - 1] || 0;
    const usual = colour.id === "advantages" || colour.id === "rewards" || colour.id === "values";
    known[colour.id] = usual ? top : sizes[Math.floor((sizes.length - 1) * 0.98)] || top;
  }
  return known[colour.id];
}

/** Class and strength (0 to 100) of a value. */
function shade(colour, value, scale) {
  if (colour.kind === "mask") return value ? ["trained", 100] : ["off", 0];
  if (value === null) return ["", 0];
  // a tenth of the strength separates small values from none
  const share = scale > 0 && value !== 0 ? 0.1 + 0.9 * clamp(Math.abs(value) / scale, 0, 1) : 0;
  const strength = Math.round(share * 100);
  if (colour.kind === "seq") return ["seq", strength];
  return [value > 0 ? "pos" : value < 0 ? "neg" : "", strength];
}

/** A value of a colouring as text. */
function formatValue(colour, value) {
  if (colour.kind === "mask") return value ? "trained" : "masked";
  if (value === null) return "–";
  return colour.ratio ? `×${num(Math.exp(value))}` : num(value, colour.kind === "div");
}

function drawLegend() {
  const colour = colourNow();
  byId("legend-title").textContent = colour.name;
  const box = byId("legend");
  const items = [el("p", { class: "hint" }, colour.help)];
  if (colour.kind !== "mask" && scaleOf(groupNow(), colour) === 0) {
    items.push(el("p", { class: "hint" }, "Here all values are 0."));
  } else if (colour.kind !== "mask") {
    const top = scaleOf(groupNow(), colour);
    const ends = colour.kind === "div"
      ? [formatValue(colour, -top), colour.ratio ? "×1" : "0", formatValue(colour, top)]
      : [colour.flip ? "0" : "0", "", colour.flip ? num(-top) : num(top)];
    items.push(
      el("div", { class: `ramp ${colour.kind}`, role: "img", "aria-label": `from ${ends[0]} to ${ends[2]}` }),
      el("div", { class: "ends" }, ...ends.map((text) => el("span", {}, text))),
      el("div", { class: "ends hint" }, el("span", {}, colour.low ?? ""), el("span", {}, colour.high ?? "")),
    );
  }
  const sample = (cls, vars, text) => el("span", { class: `t ${cls}`, vars }, text);
  const full = { "--x": "70%" };
  const rows = [[el("span", { class: "t off" }, "prompt"), "masked: never trained"]];
  if (colour.kind === "div") {
    rows.unshift([sample("on pos", full, "token"), "above 0: solid line"], [sample("on neg", full, "token"), "below 0: dashed line"]);
  } else {
    rows.unshift([sample(colour.kind === "seq" ? "on seq" : "on trained", full, "token"), "trained"]);
  }
  if (stepNow().tokens) items.push(el("ul", { class: "marks" }, ...rows.map(([mark, text]) => el("li", {}, mark, " ", text))));
  box.replaceChildren(...items);
}
