"""`turngym selector train | eval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...agents.models.loading import load_model, load_tokenizer, resolve_device
from ...agents.paper_selector.calibration import SelectorScores, draw_calibration, selector_scores
from ...agents.paper_selector.examples import (
    Pair,
    PairSettings,
    SelectorRow,
    read_rows,
    rows_of,
    selector_pairs,
    write_rows,
)
from ...agents.paper_selector.model import LanguageModelSelector, open_selector
from ...agents.paper_selector.settings import SELECTOR_FILE, SelectorSettings
from ...algos.runs.progress import reporter
from ...algos.training.supervised.epochs import TrainingProgress
from ...algos.training.supervised.selector import (
    MICRO,
    TrainingSettings,
    save_selector,
    small_model,
    train_selector,
)
from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.env import PaperCrawler
from ...envs.paper_crawler.papers import Selector
from .arguments import values
from .envs import existing_file
from .selector_options import PairOptions, SelectorCommand, SelectorEval, SelectorTrain

_TRAINED_ON, _SCORED_ON = 20_000, 2_000
_PICTURE = "calibration.png"


def run(command: SelectorCommand) -> None:
    """Do what was asked for."""
    action = command.action
    if isinstance(action, SelectorTrain):
        train(action)
    else:
        evaluate(action)


def train(action: SelectorTrain) -> None:
    """Train a selector and write its folder.

    Raises:
        BadValueError: Settings that exclude each other or make no sense.
        DataError: A file that does not hold what it should.
    """
    out = Path(action.out).expanduser()
    if out.is_dir() and any(out.iterdir()):
        raise BadValueError(f"--out {out}: holds files; choose a new folder, or empty this one.")
    how = _how(action)
    questions = _questions(action.pairs, action.split, _TRAINED_ON, "answers")
    small = action.model is None or questions.micro
    asked = SelectorSettings(
        prompt=action.prompt or ("short" if small else "rules"), chat=action.chat
    )
    rows = questions.rows(asked.prompt)
    if action.keep_rows is not None:
        write_rows(_place(action.keep_rows), rows)
    if action.model is None:
        model, tokenizer = small_model(rows)
    else:
        model = load_model(action.model, dtype="float32", device=action.device)
        tokenizer = load_tokenizer(action.model, pad="eos")
    model = model.to(resolve_device(action.device))
    report = reporter()
    with report.bar("training") as bar:

        def tell(now: TrainingProgress) -> None:
            bar.update(now.step / now.steps, f"loss {now.loss:.3f}")

        told = train_selector(model, tokenizer, rows, (asked, how), tell)
    save_selector(out, model, tokenizer, (asked, how), {"rows": len(rows), **told})
    report.note(f"{out}: trained on {len(rows):,} rows, loss {told['loss']:.3f}.")


def _how(action: SelectorTrain) -> TrainingSettings:
    start = MICRO if action.model is None else TrainingSettings()
    names = ("epochs", "batch", "lr", "rationale")
    given = {name: getattr(action, name) for name in names}
    changed = {name: value for name, value in given.items() if value is not None}
    return replace(start, **changed, seed=action.pairs.seed)


def evaluate(action: SelectorEval) -> None:
    """Print a selector's scores and draw its calibration.

    Raises:
        BadValueError: Settings that exclude each other, or no selector in the folder.
        DataError: A file that does not hold what it should.
    """
    folder = Path(action.folder).expanduser()
    kept = SELECTOR_FILE.read(folder, SelectorSettings())
    changes: dict[str, Any] = {}
    if action.probability is not None:
        changes["probability"] = action.probability
    if action.threshold is not None:
        changes["threshold"] = action.threshold
    selector = open_selector(
        action.folder,
        replace(kept, **changes),
        batch=action.batch,
        device=action.device,
        dtype=action.dtype,
    )
    questions = _questions(action.pairs, action.split, _SCORED_ON, "met")
    scores = selector_scores(questions.asked_of(selector), questions.labels)
    found = {"selector": scores}
    if questions.other is not None:
        others = questions.other.probabilities([pair.judged for pair in questions.pairs])
        found["the world's"] = selector_scores(others, questions.labels)
    console = Console()
    console.print(_table(found))
    console.print(_reliability(scores))
    picture = _place(action.plot or str((folder if folder.is_dir() else Path()) / _PICTURE))
    draw_calibration(scores, picture, folder.resolve().name)
    console.print(f"calibration plot: {escape(str(picture))}", highlight=False, soft_wrap=True)


class _Questions(NamedTuple):
    """Questions with verdicts, from a file or from a world."""

    written: Sequence[SelectorRow]
    pairs: Sequence[Pair]
    other: Selector | None  # the world's own, where it has one
    micro: bool

    @property
    def labels(self) -> list[bool]:
        return [one.label for one in (self.pairs or self.written)]

    def rows(self, prompt: str) -> list[SelectorRow]:
        return rows_of(self.pairs, prompt) if self.pairs else list(self.written)

    def asked_of(self, selector: LanguageModelSelector) -> list[float]:
        rows = self.rows(selector.settings.prompt)
        found: list[float] = []
        report = reporter()
        with report.bar("judging") as bar:
            for start in range(0, len(rows), 256):
                found += selector.of_prompts([row.prompt for row in rows[start : start + 256]])
                bar.update(len(found) / len(rows), f"{len(found):,} of {len(rows):,}")
        return found


def _questions(
    options: PairOptions, split: str, n: int, others: Literal["met", "answers"]
) -> _Questions:
    """Questions; ``others`` are what a generated world shows as no answer."""
    made = _world_settings(options)
    if options.rows is not None:
        if made:
            raise BadValueError(
                f"--rows: are questions already; leave out {', '.join(sorted(made))}."
            )
        rows = read_rows(existing_file(options.rows, "--rows"))
        return _Questions(rows if options.n is None else rows[: options.n], (), None, False)
    world = PaperCrawler(**made)
    settings = PairSettings(
        n=n if options.n is None else options.n,
        others=others if world.parts.size else "met",
        seed=options.seed,
    )
    pairs = selector_pairs(world, split, settings)
    own = world.parts.size is not None or "selector" in made
    other = world.parts.selector if own else None
    return _Questions((), pairs, other, world.parts.size == "micro")


def _world_settings(options: PairOptions) -> dict[str, Any]:
    made = values(options.env_arg, "--env-arg")
    if options.size is not None:
        made["size"] = options.size
    for name in ("data", "papers"):
        if (file := getattr(options, name)) is not None:
            made[name] = existing_file(file, f"--{name}", folder=True)
    return made


def _place(file: str) -> Path:
    """Where a file is written; its folder is made."""
    path = Path(file).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _table(found: dict[str, SelectorScores]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    heads = ("papers", "answers", "precision", "recall", "F1", "accuracy", "ECE", "Brier")
    for head in ("", *heads):
        table.add_column(head, justify="right" if head else "left", no_wrap=not head)
    for name, scores in found.items():
        n, positives, *others = scores.figures().values()
        table.add_row(name, f"{n:,}", f"{positives:,}", *(f"{x:.3f}" for x in others))
    return table


def _reliability(scores: SelectorScores) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title="reliability", title_justify="left")
    for head in ("probability", "papers", "mean", "answers among them"):
        table.add_column(head, justify="right")
    for low, high, n, said, true in scores.bins:
        shown = (f"{said:.3f}", f"{true:.3f}") if n else ("", "")
        table.add_row(f"{low:.1f} to {high:.1f}", f"{n:,}", *shown)
    return table
