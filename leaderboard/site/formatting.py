"""Format numbers for the pages."""

from __future__ import annotations

from urllib.parse import quote

from ...envs.utils.statistics import Estimate

_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
HEAT_STEPS = 20


def percent(share: float) -> str:
    """Format a fraction as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def interval(estimate: Estimate) -> str:
    """Format the interval as percentages, as ``61.2 to 70.4``."""
    return f"{percent(estimate.low95)} to {percent(estimate.high95)}"


def amount(number: float) -> str:
    """Format a count in at most four characters, as ``1.5M``."""
    for size, sign in _STEPS:
        if number >= size:
            shown = f"{number / size:.1f}" if number < 100 * size else f"{number / size:.0f}"
            return shown.removesuffix(".0") + sign
    return f"{number:g}"


def memory(size: float) -> str:
    """Format bytes in powers of 1,024, as ``64 MiB``."""
    for step, sign in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= step:
            return f"{size / step:.1f}".removesuffix(".0") + f" {sign}"
    return f"{size:g} bytes"


def lasting(seconds: float) -> str:
    """Format a time span in its largest fitting unit, as ``1.5 hours``."""
    for step, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= step:
            shown = f"{seconds / step:.1f}".removesuffix(".0")
            return f"{shown} {unit}" + ("" if shown == "1" else "s")
    return f"{seconds:g} seconds"


def counted(number: int, noun: str) -> str:
    """Format a number of things, as ``1 turn`` or ``3 turns``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shorten(text: str, limit: int = 90) -> str:
    """Return a text as one line; one of more characters ends at a word, with ``…``."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    whole, blank, _ = line[:limit].rpartition(" ")
    return (whole if blank else line[: limit - 1]).rstrip(" ,;:.") + "…"


def few(number: float) -> str:
    """Format a mean count with one decimal."""
    return f"{number:.1f}"


def signed(number: float) -> str:
    """Format a difference as signed percentage points."""
    return f"{100 * number:+.1f}"


def heat(share: float) -> int:
    """Return the step of the colour scale, 0 to 20."""
    return round(HEAT_STEPS * min(1.0, max(0.0, share)))


def place(path: str) -> str:
    """Quote a path inside the site for a URL."""
    return quote(path, safe="/")


def probability(p_value: float) -> str:
    """Format a p-value; very small ones by their bound."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
