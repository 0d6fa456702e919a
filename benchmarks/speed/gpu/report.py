"""The report of a check: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ...matrix.plots import nice_ticks, short
from .measures import Table

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0}
td,th{border-bottom:1px solid #8884;padding:.2rem .7rem}
td,th{text-align:left;vertical-align:top}.bad{color:#b00020;font-weight:600}small{opacity:.75}
figure{margin:1rem 0}svg{max-width:44rem;width:100%}text{font-size:12px;fill:currentColor}
""".strip()
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 280, 48, 150, 14, 34


@dataclass(frozen=True)
class Part:
    """One part of a check.

    Attributes:
        name: As on the command line.
        seconds: How long it took.
        table: What it found; None when it failed.
        fault: Why it failed.
    """

    name: str
    seconds: float
    table: Table | None
    fault: str = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """What is wrong."""
        if self.table is None:
            return (f"{self.name}: {self.fault.strip().splitlines()[-1]}",)
        return self.table.failed


def page(parts: Sequence[Part], title: str, skipped: Sequence[str]) -> str:
    """Return the whole report.

    Args:
        parts: What was done, in order.
        title: The page's.
        skipped: What was not done, and why.
    """
    wrong = [line for part in parts for line in part.failed]
    out = [f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title>"]
    out += [f"<style>{STYLE}</style><h1>{escape(title)}</h1>"]
    if wrong:
        out.append("<h2 class=bad>What is wrong</h2>" + _listed(wrong))
    else:
        out.append(f"<p>{len(parts)} parts, nothing is wrong.</p>")
    if skipped:
        out.append("<h2>What was left out</h2>" + _listed(skipped))
    aims = [aim for part in parts if part.table for aim in part.table.aims]
    if aims:
        cells = [(aim, found, "yes" if reached else "no") for aim, found, reached in aims]
        out.append("<h2>Aims</h2>" + _table(("aim", "measured", "reached"), cells))
    for part in parts:
        name = part.table.title if part.table else part.name
        out.append(f"<h2>{escape(name)}</h2>")
        if part.table is None:
            out.append(f"<pre class=bad>{escape(part.fault)}</pre>")
            continue
        if part.table.curve:
            out.append(curve(part.table.curve))
        out.append(_table(part.table.head, part.table.rows))
        out.append(f"<p><small>{escape(part.table.note)} {part.seconds:.0f} s.</small></p>")
    return "\n".join(out) + "\n"


def curve(lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Return shares between 0 and 1 over minutes as an SVG picture."""
    last = max((x for _, line in lines for x, _ in line), default=1.0) or 1.0
    marks = nice_ticks(0.0, last)
    end = max(last, marks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + x / end * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM), 1)

    out = [f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(0.0, share)
        across = WIDTH - RIGHT
        out.append(f'<path d="M{x} {y}H{across}" stroke="currentColor" stroke-opacity=".2"/>')
        out.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{share:.0%}</text>')
    for mark in marks:
        x, y = place(mark, 0.0)
        out.append(f'<text x="{x}" y="{y + 16}" text-anchor="middle">{short(mark)}</text>')
    x, y = place(end / 2, 0.0)
    out.append(f'<text x="{x}" y="{y + 31}" text-anchor="middle">minutes of training</text>')
    for i, (name, line) in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{a},{b}" for a, b in (place(*point) for point in line))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        below = TOP + 14 + 18 * i
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{below}" style="fill:{colour}">')
        out.append(f"{escape(name)}</text>")
    return "".join([*out, "</svg></figure>"])


def _listed(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}" for line in lines) + "</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}" for cell in cells)

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"
