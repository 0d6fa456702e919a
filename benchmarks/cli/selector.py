"""`turngym selector`: train and score the model that judges papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import tyro
from rich.table import Table

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
from ...agents.paper_selector.settings import SELECTOR_FILE, SelectorSettings
from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import reporter
from ...algos.training.supervised.epochs import TrainingProgress
from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_integer
from ...envs.paper_crawler.env import PaperCrawler
from ...envs.paper_crawler.papers import Selector
from .arguments import Repeated, given, new_folder, output_file, refuse_without, values
from .env_options import existing_file
from .model_options import model_path
from .tables import plain_table, say

if TYPE_CHECKING:
    from ...agents.paper_selector.model import LanguageModelSelector


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """Where questions with their verdicts come from.

    Attributes:
        rows: File of supervised rows as PaSa's sft_selector; instead of all that follows.
        size: Size of the generated world, micro or full.
        data: PaSa's request files, with --papers instead of the generated world.
        papers: Folder of PaSa's paper database.
        env_arg: Any other setting of PaperCrawler-v0 as name=value, repeatable; short form:
            --env.NAME VALUE.
        n: Questions in all, half of them answers; left out: 20,000 to train on, 2,000 to score.
        seed: Seed of what is drawn.
    """

    rows: str | None = None
    size: str | None = None
    data: str | None = None
    papers: str | None = None
    env_arg: Repeated = ()
    n: int | None = None
    seed: int = 0


Questions = Annotated[QuestionOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a selector; without --model a small one is made here.

    Attributes:
        out: Folder of the selector.
        pairs: What it learns from.
        model: The model to start from: one that `turngym models` lists, a model folder, GGUF file,
            hub name or run directory; left out: a small one with random weights, and settings for
            small models.
        split: Split of the requests.
        prompt: Style of the question; left out: short for micro and for the small model, else
            rules.
        chat: Ask through the model's chat template.
        epochs: Times that every row is seen; left out: 1 (PaSa), 3 for the small model.
        batch: Rows per step.
        lr: Learning rate; left out: 1e-5 (PaSa), 1e-3 for the small model.
        rationale: Learn the reasons too; left out: yes (PaSa), no for the small model.
        keep_rows: File to write the rows to, in PaSa's format.
        device: auto, cpu or cuda.
    """

    out: str
    pairs: Questions = field(default_factory=QuestionOptions)
    model: str | None = None
    split: str = "train"
    prompt: Literal["rules", "pasa", "short"] | None = None
    chat: bool = False
    epochs: int | None = None
    batch: int | None = None
    lr: float | None = None
    rationale: bool | None = None
    keep_rows: str | None = None
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Eval:
    """Score a selector on held-out questions: table, reliability, calibration plot.

    Attributes:
        folder: Folder of the selector.
        pairs: What it is asked. The selector of a generated world (simulated, or --env.selector) is
            scored beside it.
        split: Split of the requests.
        plot: Where the picture goes; left out: calibration.png in the folder (here,
            for a hub name).
        probability: vocabulary (PaSa) or renormalised over True and False; left out: the folder's.
        threshold: Probability above which a paper is selected; left out: the folder's.
        batch: Papers per forward pass.
        device: auto, cpu or cuda.
        dtype: Number format of the weights.
    """

    folder: Annotated[str, tyro.conf.Positional]
    pairs: Questions = field(default_factory=QuestionOptions)
    split: str = "dev"
    plot: str | None = None
    probability: Literal["vocabulary", "renormalised"] | None = None
    threshold: float | None = None
    batch: int = 32
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


Command = (
    Annotated[Train, tyro.conf.subcommand("train")] | Annotated[Eval, tyro.conf.subcommand("eval")]
)
_TRAINED_ON, _SCORED_ON = 20_000, 2_000
_PICTURE = "calibration.png"


def run(command: Command) -> None:
    """Train or score a selector."""
    if isinstance(command, Train):
        train(command)
    else:
        evaluate(command)


def train(action: Train) -> None:
    """Train a selector and write its folder.

    Raises:
        BadValueError: Settings that exclude each other or make no sense.
        DataError: A file that does not hold what it should.
    """
    if action.pairs.rows is not None:
        refuse_without(action, "questions of an environment, in place of --rows", ("split",))
    out = new_folder(action.out)
    keep = None if action.keep_rows is None else output_file(action.keep_rows)
    from ...agents.models.loading import load_model, load_tokenizer, resolve_device
    from ...algos.training.supervised.selector import (
        MICRO,
        TrainingSettings,
        save_selector,
        small_model,
        train_selector,
    )

    how = replace(
        MICRO if action.model is None else TrainingSettings(),
        **given(action, "epochs", "batch", "lr", "rationale"),
        seed=action.pairs.seed,
    )
    questions = _questions(action.pairs, action.split, _TRAINED_ON, "answers")
    small = action.model is None or questions.micro
    asked = SelectorSettings(
        prompt=action.prompt or ("short" if small else "rules"), chat=action.chat
    )
    rows = questions.rows(asked.prompt)
    if keep is not None:
        write_rows(keep, rows)
    if action.model is None:
        model, tokenizer = small_model(rows)
    else:
        folder = model_path(action.model, (), "model")
        model = load_model(folder, dtype="float32", device=action.device)
        tokenizer = load_tokenizer(folder, pad="eos")
    model = model.to(resolve_device(action.device))
    report = reporter()
    with report.bar("training") as bar:

        def show(now: TrainingProgress) -> None:
            bar.update(now.step / now.steps, f"loss {now.loss:.3f}")

        result = train_selector(model, tokenizer, rows, (asked, how), show)
    save_selector(out, model, tokenizer, (asked, how), {"rows": len(rows), **result})
    report.note(f"{out}: trained on {len(rows):,} rows, loss {result['loss']:.3f}.")


def evaluate(action: Eval) -> None:
    """Print a selector's scores and draw its calibration.

    Raises:
        BadValueError: Settings that exclude each other, or no selector in the folder.
        DataError: A file that does not hold what it should.
    """
    if action.pairs.rows is not None:
        of_draws = ("split", "seed")
        refuse_without(action, "questions of an environment, in place of --rows", of_draws)
    folder = Path(action.folder).expanduser()
    picture = output_file(action.plot or str((folder if folder.is_dir() else Path()) / _PICTURE))
    from ...agents.paper_selector.model import open_selector

    asked = replace(
        SELECTOR_FILE.read(folder, SelectorSettings()),
        **given(action, "probability", "threshold"),
    )
    selector = open_selector(
        model_path(action.folder, (), "model"),
        asked,
        batch=action.batch,
        device=action.device,
        dtype=action.dtype,
    )
    questions = _questions(action.pairs, action.split, _SCORED_ON, "met")
    scores = selector_scores(questions.judge(selector), questions.labels)
    found = {"selector": scores}
    if questions.other is not None:
        others = questions.other.probabilities([pair.judged for pair in questions.pairs])
        found["the world's"] = selector_scores(others, questions.labels)
    console = PlainConsole()
    console.print(_table(found))
    console.print(_reliability(scores))
    draw_calibration(scores, picture, folder.resolve().name)
    say(f"calibration plot: {picture}")


class _Questions(NamedTuple):
    """Questions with verdicts, from a file or from an environment."""

    written: Sequence[SelectorRow]
    pairs: Sequence[Pair]
    other: Selector | None  # the generated world's own, where it has one
    micro: bool

    @property
    def labels(self) -> list[bool]:
        return [one.label for one in (self.pairs or self.written)]

    def rows(self, prompt: str) -> list[SelectorRow]:
        return rows_of(self.pairs, prompt) if self.pairs else list(self.written)

    def judge(self, selector: LanguageModelSelector) -> list[float]:
        rows = self.rows(selector.settings.prompt)
        found: list[float] = []
        report = reporter()
        with report.bar("judging") as bar:
            for start in range(0, len(rows), 256):
                found += selector.of_prompts([row.prompt for row in rows[start : start + 256]])
                bar.update(len(found) / len(rows), f"{len(found):,} of {len(rows):,}")
        return found


def _questions(
    options: QuestionOptions, split: str, n: int, others: Literal["met", "answers"]
) -> _Questions:
    """Return questions; ``others`` are the papers of a generated world that are no answer."""
    made = _env_settings(options)
    if options.rows is not None:
        if made:
            raise BadValueError(
                f"--rows: are questions already; leave out {', '.join(sorted(made))}."
            )
        if options.n is not None:
            check_integer("--n", options.n, "--rows", min=1)
        rows = read_rows(existing_file(options.rows, "--rows"))
        return _Questions(rows if options.n is None else rows[: options.n], (), None, False)
    env = PaperCrawler(**made)
    settings = PairSettings(
        n=n if options.n is None else options.n,
        others=others if env.parts.size else "met",
        seed=options.seed,
    )
    pairs = selector_pairs(env, split, settings)
    own = env.parts.size is not None or "selector" in made
    other = env.parts.selector if own else None
    return _Questions((), pairs, other, env.parts.size == "micro")


def _env_settings(options: QuestionOptions) -> dict[str, Any]:
    made = values(options.env_arg, "--env-arg")
    if options.size is not None:
        made["size"] = options.size
    for name in ("data", "papers"):
        if (file := getattr(options, name)) is not None:
            made[name] = existing_file(file, f"--{name}", folder=True)
    return made


def _table(found: dict[str, SelectorScores]) -> Table:
    heads = ("papers", "answers", "precision", "recall", "F1", "accuracy", "ECE", "Brier")
    table = plain_table("", right=heads, padding=(0, 1, 0, 0))
    for name, scores in found.items():
        n, positives, *others = scores.figures().values()
        table.add_row(name, f"{n:,}", f"{positives:,}", *(f"{x:.3f}" for x in others))
    return table


def _reliability(scores: SelectorScores) -> Table:
    heads = ("probability", "papers", "mean", "answers among them")
    table = plain_table(right=heads, title="reliability", title_justify="left")
    for low, high, n, mean, true in scores.bins:
        shown = (f"{mean:.3f}", f"{true:.3f}") if n else ("", "")
        table.add_row(f"{low:.1f} to {high:.1f}", f"{n:,}", *shown)
    return table
