"use strict";
// Sort tables by their headers, filter them by words, and shade the edges behind which columns lie.
// Without scripts they are static.

function valueOf(row, column, kind) {
  const cell = row.cells[column];
  const value = cell.dataset.value ?? cell.textContent.trim();
  return kind === "number" ? Number(value) : value;
}

function sortBy(table, header, button) {
  const column = header.cellIndex;
  const kind = header.dataset.sort;
  const was = header.getAttribute("aria-sort");
  const other = { ascending: "descending", descending: "ascending" };
  const order = was ? other[was] : header.dataset.first;
  const sign = order === "ascending" ? 1 : -1;
  for (const cell of header.parentElement.cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => [valueOf(row, column, kind), place, row]);
  rows.sort((a, b) => {
    if (a[0] === b[0]) return a[1] - b[1];
    return (kind === "number" ? a[0] - b[0] : a[0].localeCompare(b[0])) * sign;
  });
  body.append(...rows.map((row) => row[2]));
  button.focus();
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  for (const header of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(table, header, button));
  }
}

for (const bar of document.querySelectorAll("[data-filters]")) {
  const rows = [...document.getElementById(bar.dataset.filters).tBodies[0].rows];
  const text = bar.querySelector("[data-filter-text]");
  const references = bar.querySelector("[data-filter-references]");
  const count = bar.querySelector("[data-filter-count]");
  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const content = (row.dataset.words ?? row.textContent).toLowerCase();
      const reference = "reference" in row.dataset;
      row.hidden =
        (reference && references !== null && !references.checked) ||
        !words.every((word) => content.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} rows`;
  };
  text.addEventListener("input", apply);
  if (references !== null) references.addEventListener("change", apply);
  bar.hidden = false;
  apply();
}

for (const box of document.querySelectorAll(".scroll")) {
  const shade = () => {
    const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    const sides = [box.scrollLeft > 1 && "left", rest > 1 && "right"].filter(Boolean);
    if (box.dataset.more !== sides.join(" ")) box.dataset.more = sides.join(" ");
  };
  box.addEventListener("scroll", shade, { passive: true });
  new ResizeObserver(shade).observe(box);
  new ResizeObserver(shade).observe(box.querySelector("table"));
}
