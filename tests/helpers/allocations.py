"""Memory that torch takes on a CPU, followed allocation by allocation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(work: Callable[[], Any]) -> int:
    """Run ``work``; return the most memory that it held above what was there before."""
    return _traced(work)[1]


def held_bytes(work: Callable[[], Any]) -> int:
    """Run ``work``; return by how much more memory is held afterwards, below 0 for less."""
    return _traced(work)[0]


def _traced(work: Callable[[], Any]) -> tuple[int, int]:
    torch.zeros(1)  # so that what the first call keeps is there
    collecting = gc.isenabled()
    gc.disable()  # what earlier tests left behind is not counted as given back by this one
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as traced:
            work()
    finally:
        if collecting:
            gc.enable()
    assert traced.profiler is not None
    results: Any = traced.profiler.kineto_results
    events = [e for e in results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return held, peak
