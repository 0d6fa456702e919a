"""The check of a GPU machine: ``benchmarks/gpu/check.sh``, or ``python -m`` this module."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro

from ....agents.models.registry.catalogue import CATALOGUE
from ....agents.models.registry.fetch import find_cached
from ....envs.core.errors import BadValueError
from .measures import (
    Table,
    correctness,
    environment,
    generation,
    hand_over,
    kernels,
    steps,
    updates,
)
from .report import Part, page
from .scale import TOY, Scale
from .training import language_model

MODEL = "smollm2-135m"
Name = Literal[
    "environment", "kernels", "correctness", "updates", "generation", "hand_over", "steps", "model"
]
MEASURES: dict[str, Callable[[Scale], Table]] = {
    "environment": environment,
    "kernels": kernels,
    "correctness": correctness,
    "updates": updates,
    "generation": generation,
    "hand_over": hand_over,
    "steps": steps,
}
"""In the order of what they decide."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """Measure what this machine's GPU does with turngym, and write one report.

    Attributes:
        toy: Do all of it with toy sizes on the CPU: a rehearsal.
        out: Folder of report.html, report.json and the training run.
        part: Parts to do, repeatable; left out: all.
        model: Language model of the last part: a name, folder or GGUF file; left out: SmolLM2-135M
            where it is in the cache already.
        minutes: How long it trains.
    """

    toy: bool = False
    out: Path = Path("gpu-check")
    part: tuple[Name, ...] = ()
    model: str | None = None
    minutes: float = 6.0


def run(check: Check) -> int:
    """Do the parts one after the other; return the exit status, 1 where something is wrong.

    The report is written after every part, so that a machine that goes away leaves what was found.

    Raises:
        BadValueError: There is no CUDA device.
    """
    if not check.toy and not torch.cuda.is_available():
        raise BadValueError(
            "the check measures a CUDA device, and torch sees none. Run it on a machine with a GPU "
            "and a CUDA build of torch, or rehearse it on this CPU with --toy."
        )
    scale = TOY if check.toy else Scale(minutes=check.minutes)
    check.out.mkdir(parents=True, exist_ok=True)
    work, skipped = _work(check, scale)
    parts: list[Part] = []
    for name, measure in work.items():
        print(f"{name} …", file=sys.stderr, flush=True)
        parts.append(_done(name, measure))
        gc.collect()
        if scale.device == "cuda":
            torch.cuda.empty_cache()
        _write(check.out, parts, scale, skipped)
        for line in parts[-1].failed:
            print(f"  WRONG: {line}", file=sys.stderr)
        print(f"  {parts[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    print(check.out / "report.html")
    return int(any(part.failed for part in parts))


def _work(check: Check, scale: Scale) -> tuple[dict[str, Callable[[], Table]], list[str]]:
    """Return the parts to do, and which are left out and why."""
    skipped = []
    work = {name: _bound(measure, scale) for name, measure in MEASURES.items()}
    model = check.model
    if model is None and not check.toy and find_cached(CATALOGUE[MODEL]) is not None:
        model = MODEL
    if model is not None or check.toy:
        work["model"] = lambda: language_model(scale, model, check.out)
    else:
        skipped.append(
            f"A language model learns: {MODEL} is not in the cache; name a folder or GGUF file "
            "with --model, or fetch it with turngym models where there is a network."
        )
    if check.part:
        work = {name: one for name, one in work.items() if name in check.part}
    return work, skipped


def _bound(measure: Callable[[Scale], Table], scale: Scale) -> Callable[[], Table]:
    return lambda: measure(scale)


def _done(name: str, measure: Callable[[], Table]) -> Part:
    began = time.perf_counter()
    try:
        table, fault = measure(), ""
    except Exception:  # noqa: BLE001 - the other parts are worth their time
        table, fault = None, traceback.format_exc()
    return Part(name, time.perf_counter() - began, table, fault)


def _write(folder: Path, parts: Sequence[Part], scale: Scale, skipped: Sequence[str]) -> None:
    what = "a rehearsal with toy sizes, no measurement" if scale.toy else scale.card()
    text = page(parts, f"turngym on a GPU: {what}", skipped)
    data = json.dumps([asdict(part) for part in parts], indent=1)
    for name, content in (("report.html", text), ("report.json", data)):
        fresh = folder / f"{name}.part"
        fresh.write_text(content, encoding="utf-8")
        fresh.replace(folder / name)


def main(words: Sequence[str] | None = None) -> int:
    """Run the check from the command line; return the exit status."""
    check = tyro.cli(Check, args=words, description=Check.__doc__)
    try:
        return run(check)
    except BadValueError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
