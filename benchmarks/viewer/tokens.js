// Tokens of a turn as spans, their keyboard and their tooltip.

/** Spans of a masked text; long ones are one span per line, so that pages stay quick. */
function maskedTokens(numbers) {
  if (numbers === null) return [el("span", { class: "t off none" }, "text not stored")];
  if (numbers.length > 1500) return [el("span", { class: "t off" }, visible(textOf(numbers)))];
  const texts = numbers.map((n) => visible(words[n]));
  // Blank lines at both ends would only push the text away: they become marks.
  const blank = (text) => /^\n+$/.test(text);
  for (let i = 0; i < texts.length && blank(texts[i]); i++) texts[i] = "↵".repeat(texts[i].length);
  for (let i = texts.length - 1; i >= 0 && blank(texts[i]); i--) texts[i] = "↵".repeat(texts[i].length);
  return texts.map((text, i) => el("span", { class: i % 2 ? "t off odd" : "t off" }, text));
}

/** Spans of an action's tokens, coloured; one of them can be reached with Tab. */
function actionTokens(position) {
  const group = groupNow();
  const path = pathNow();
  const turn = turnsOf(group, path)[position];
  const offset = offsetOf(group, path, position);
  const colour = colourNow();
  const scale = scaleOf(group, colour);
  const plain = !hasTokens(turn);
  const last = turn.act.length - 1;
  return turn.act.map((n, i) => {
    const value = colour.of(path, turn, offset, i);
    const [cls, strength] = shade(colour, value, scale);
    const whole = visible(words[n]).replaceAll("\n", "↵\n");
    const text = i === last ? whole.replace(/↵\n$/, "↵") : whole;
    if (plain) return el("span", { class: "t plain" }, text);
    return el("span", {
      class: `t on ${cls}${text ? "" : " part"}`,
      vars: { "--x": `${strength}%` },
      "data-turn": position, "data-token": i,
      role: "button", tabindex: i === 0 ? 0 : -1,
      "aria-label": `${text.trim() || "blank"}, ${colour.name.toLowerCase()} ${formatValue(colour, value)}`,
    }, text || "◦");
  });
}

const spanOf = (turn, token) =>
  document.querySelector(`#turns .t[data-turn="${turn}"][data-token="${token}"]`);

function focusToken(turn, token) {
  const span = spanOf(turn, token);
  if (!span) return;
  for (const other of document.querySelectorAll(`#turns .t[data-turn="${turn}"][tabindex="0"]`)) other.tabIndex = -1;
  span.tabIndex = 0;
  unfold(span);
  span.focus({ preventScroll: true });
  span.scrollIntoView({ block: "nearest", inline: "nearest" });
  showTip(span);
}

/** Move among tokens: along the path with `by`, between turns with `rows`. */
function moveToken(by, rows) {
  const turns = turnsOf(groupNow(), pathNow());
  let turn = state.turn;
  let token = (state.token ?? 0) + by;
  if (rows) {
    turn = clamp(turn + rows, 0, turns.length - 1);
    token = Math.min(state.token ?? 0, turns[turn].act.length - 1);
  } else if (token < 0 && turn > 0) token = turns[--turn].act.length - 1;
  else if (token >= turns[turn].act.length && turn < turns.length - 1) { turn++; token = 0; }
  focusToken(turn, clamp(token, 0, turns[turn].act.length - 1));
}

function chooseToken(span) {
  for (const old of document.querySelectorAll(".t.now")) old.classList.remove("now");
  span.classList.add("now");
  state.turn = Number(span.dataset.turn);
  state.token = Number(span.dataset.token);
  drawToken();
  markTurn();
  writeHash();
}

let tipped = null;

function showTip(span) {
  const tip = byId("tip");
  tipped = span;
  const [turn, i] = [Number(span.dataset.turn), Number(span.dataset.token)];
  const group = groupNow();
  const path = pathNow();
  const row = turnsOf(group, path)[turn];
  const offset = offsetOf(group, path, turn);
  const colour = colourNow();
  tip.replaceChildren(
    el("b", {}, `${colour.name} ${formatValue(colour, colour.of(path, row, offset, i))}`),
  );
  tip.hidden = false;
  const box = span.getClientRects()[0];
  const width = tip.offsetWidth;
  tip.style.left = `${clamp(box.left + box.width / 2 - width / 2, 6, innerWidth - width - 6)}px`;
  const above = box.top - tip.offsetHeight - 6;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
}

function hideTip() {
  byId("tip").hidden = true;
  tipped = null;
}

function watchTokens() {
  const turns = byId("turns");
  const token = (event) => event.target.closest?.(".t[data-token]");
  turns.addEventListener("mouseover", (event) => token(event) && showTip(token(event)));
  turns.addEventListener("mouseout", hideTip);
  turns.addEventListener("focusin", (event) => {
    const span = token(event);
    if (!span) return;
    chooseToken(span);
    showTip(span);
  });
  turns.addEventListener("focusout", hideTip);
  turns.addEventListener("click", (event) => {
    const span = token(event);
    if (span) focusToken(Number(span.dataset.turn), Number(span.dataset.token));
  });
  addEventListener("scroll", () => tipped && showTip(tipped), { passive: true });
}
