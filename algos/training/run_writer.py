"""Write the files of a run directory: metrics, events, curve, transcripts and rollouts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...agents.rendering.factory import Renderer
from ...agents.scripted import text_env
from ...envs.core.digest import digest_of
from ...envs.utils.untrusted_text import plain
from ..core.forest import Forest, Tree
from ..core.forest_io import save_forest
from ..core.protocols import Scorer
from ..evaluation.evaluate import Evaluation
from ..evaluation.result import RunResult
from ..runs.loggers import (
    LoggedRun,
    Logger,
    TensorBoard,
    check_loggers,
    check_record_packages,
    make_logger,
)
from ..runs.metrics import checked
from ..runs.plots import draw_curve
from ..runs.process_group import Ranks
from ..runs.provenance import versions
from ..runs.run_dir import (
    add_version,
    list_differences,
    open_run_dir,
    read_json,
    read_metrics,
    read_starts,
)
from .config import EvalConfig, TrainConfig, model_digest
from .rollout_dump import SUFFIX, RolloutDump, write_dump

_RULE = "=" * 78
_HASHED = 16
"""Tasks from all parts of an evaluation set, which tell whether it is the one of before: making 200
of a large world takes seconds."""
_HEAD = re.compile(
    rf"^{_RULE}\n(?P<task>.*): (?P<status>\w+), return (?P<total>\S+), (?P<decoding>.+)\n{_RULE}\n",
    re.MULTILINE,
)
"""The beginning of an episode: a rule alone may be a line of what an environment showed."""
_TURN = re.compile(r"\[turn \d+: .*\]")
_MARK = re.compile(rf"^(?={_RULE}$|\[turn \d+: |>>> )", re.MULTILINE)
"""Before a line that, in what was seen or written, would read like one of the file's own."""


class RunWriter:
    """Writer of everything in a run directory except checkpoints.

    With ``records="metrics"`` it writes configuration, versions and metrics alone.

    Attributes:
        changed: What of the user's own was other code at an earlier start, and which evaluation
            sets had other tasks, in words; empty before :meth:`resume`.

    Args:
        config: The run.
        root: Its folder.
        resolved: The configuration as JSON data.
        ranks: The processes of the run; the first one writes into ``root``.
        loggers: Where the metrics go besides; the first process alone writes there too.

    Raises:
        TurngymError: As :class:`~turngym.algos.runs.run_dir.RunDir`, and as
            :func:`~turngym.algos.runs.loggers.check_loggers` and
            :func:`~turngym.algos.runs.loggers.check_record_packages`.
    """

    def __init__(
        self,
        config: TrainConfig,
        root: Path | str,
        resolved: Mapping[str, Any],
        ranks: Ranks,
        loggers: Sequence[str | Logger] = (),
    ) -> None:
        check_loggers(loggers)
        check_record_packages(config.records)
        self.config = config
        self._resolved = resolved
        self._wanted = loggers if ranks.first else ()
        self.dir = open_run_dir(root, resolved, ranks)
        self.root, self.checkpoints = self.dir.root, self.dir.checkpoints
        self.pending = self.root / "ahead"
        self._all = config.records == "all"
        self._loggers: list[Logger] = [self.dir]
        self.changed = ""

    def resume(self, step: int, metrics_bytes: int | None) -> Path | None:
        """Drop metrics logged after the checkpoint of ``step``; record the current versions.

        Args:
            step: Training steps done.
            metrics_bytes: Size of the metrics at the checkpoint; None without a checkpoint.

        Returns:
            Where metrics are now that no checkpoint is of; None where there are none.
        """
        aside = None
        if metrics_bytes is None:
            aside = self.dir.set_aside()
        else:
            self.dir.rewind_metrics(metrics_bytes)
        envs = [self.config.env, *(e.env for e in self.config.evals)]
        parts = self.config.recipe, [text_env(env.prototype) for env in envs]
        entry = versions(sorted({env.id for env in envs}), step, parts)
        entry["tasks"] = {e.name: _digest_of_tasks(e) for e in self.config.evals}
        said = []
        if other := _other_tasks(read_starts(self.root), entry["tasks"]):
            said.append(
                f"evaluation set {', '.join(other)}: other tasks than at an earlier start of this "
                "run, so that its scores of before and of now do not compare"
            )
        if changed := add_version(self.root, entry):
            said.append(f"{', '.join(changed)}: other code than at an earlier start of this run")
        self.changed = "; ".join(said)
        run = LoggedRun(self.root, self._resolved, step)
        if self._all:
            self._loggers.append(TensorBoard(run))
        self._loggers += [make_logger(one, run) for one in self._wanted]
        return aside

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Write a row of metrics.

        Raises:
            UnknownNameError: A key is not declared.
        """
        row = checked(row)
        for logger in self._loggers:
            logger.log(step, row)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows of metrics."""
        return read_metrics(self.dir.metrics_path)

    def draw(self) -> None:
        """Draw the learning curve."""
        if not self._all:
            return
        title = f"{self.config.recipe.name} on {self.config.env.id}"
        draw_curve(self.rows(), self.root / "curve.png", title, self.config.eval_temperature)

    def evaluation(self, step: int, evaluation: Evaluation, renderer: Renderer) -> None:
        """Write the first episodes of an evaluation as text."""
        if not self._all:
            return
        self.dir.check_held()
        path = self.root / "trajectories" / f"step-{step:06d}-{evaluation.name}.txt"
        write_evaluation(path, evaluation, renderer, self.config.transcripts)

    def rollouts(
        self, forest: Forest, dump: RolloutDump, scorer: Scorer, renderer: Renderer, tokenizer: Any
    ) -> None:
        """Write a step's rollouts as text and as trees, some of them with numbers per token.

        Args:
            forest: All groups of the step.
            dump: The step, and the groups whose numbers per token are written, if any.
            scorer: The learner, after the update.
            renderer: Converts token ids to text.
            tokenizer: The policy's tokenizer.
        """
        if not self._all:
            return
        stem = f"{self.root}/trajectories/step-{dump.step:06d}-train"
        write_group(Path(stem + ".txt"), forest, renderer)
        save_forest(Path(stem + ".jsonl"), forest)
        if dump.forest.groups:
            recipe = self.config.recipe
            about = {"recipe": recipe.name, "env": self.config.env.id}
            about |= {"sampled": recipe.rollout.samples}
            write_dump(Path(stem + SUFFIX), replace(dump, about=about), scorer, tokenizer)

    def close(self) -> None:
        """Close the loggers, the run directory last, also after one that fails."""
        with ExitStack() as stack:
            for logger in self._loggers:
                stack.callback(logger.close)


def _digest_of_tasks(evaluation: EvalConfig) -> str | None:
    """Return a hash of some of a set's tasks; None where they cannot be made or hashed."""
    try:
        made = evaluation.make()
        source, places = made.base_env.source, made.tasks
        chosen = places[:: max(1, len(places) // _HASHED)]
        return digest_of([source.task(made.split, place).digest for place in chosen])
    except Exception:  # noqa: BLE001 - the evaluation will tell it
        return None


def _other_tasks(starts: Sequence[Mapping[str, Any]], now: Mapping[str, str | None]) -> list[str]:
    """Return which evaluation sets had other tasks at an earlier start; unknown ones had not."""
    known = [(name, start.get("tasks", {}).get(name)) for start in starts for name in now]
    return sorted({n for n, digest in known if digest and now[n] and digest != now[n]})


def read_finished(config: TrainConfig, root: Path | str) -> RunResult | None:
    """Return the result of a finished run of this configuration that cannot be resumed.

    That is one without checkpoints, or with ``records="metrics"``, where a checkpoint is of an
    interruption. None where there is none, or the budget is larger now.

    Args:
        config: The run.
        root: Its folder.

    Raises:
        DataError: The result is damaged.
    """
    path, about = Path(root) / "result.json", Path(root) / "config.json"
    saved = next(Path(root).glob("checkpoints/*"), None)
    if not (path.is_file() and about.is_file()):
        return None
    if saved is not None and config.records == "all":
        return None
    result, now = RunResult.read(path), config.resolved(model_digest(config.model))
    if list_differences(read_json(about), json.loads(json.dumps(now))):
        return None
    used = result.steps, result.sampled_tokens, result.env_turns, result.seconds
    return result if config.budget.spent(*used) >= 1.0 else None


def write_evaluation(path: Path, evaluation: Evaluation, renderer: Any, count: int) -> None:
    """Write the episodes of an evaluation's first ``count`` tasks, sampled and greedy.

    A line of an episode that reads like a mark of the file gets a blank before it.
    """
    ways = evaluation.both()
    blocks = [
        _block(f"{e.task_id}: {e.status}, return {e.return_:g}, {way.decoding}", e.tree, renderer)
        for task in zip(*(way.episodes[:count] for way in ways), strict=True)
        for way, e in zip(ways, task, strict=True)
        if e.tree is not None
    ]
    _write(path, blocks)


@dataclass(frozen=True, kw_only=True)
class WrittenEpisode:
    """An evaluation episode as :func:`write_evaluation` wrote it.

    Attributes:
        task_id: The environment's id of the task.
        status: How it ended.
        total: Its return.
        decoding: As :func:`~turngym.algos.evaluation.evaluate.describe_decoding` has it.
        lines: Observations, actions after ``>>>``, and a note before each turn.
    """

    task_id: str
    status: str
    total: float
    decoding: str
    lines: Sequence[str]

    def turns(self) -> list[tuple[str, str]]:
        """Return what the model saw and wrote, turn by turn."""
        found: list[tuple[list[str], list[str]]] = []
        for line in self.lines:
            if _TURN.fullmatch(line):
                found.append(([], []))
            elif found and (found[-1][1] or line.startswith(">>> ")):
                found[-1][1].append(line if found[-1][1] else line.removeprefix(">>> "))
            elif found:
                found[-1][0].append(line)
        return [("\n".join(seen).strip("\n"), "\n".join(wrote)) for seen, wrote in found]


def read_evaluation(path: Path) -> list[WrittenEpisode]:
    """Return the episodes of a file of :func:`write_evaluation`; nothing without the file."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        WrittenEpisode(
            task_id=head["task"],
            status=head["status"],
            total=float(head["total"]),
            decoding=head["decoding"],
            lines=text[head.end() : end].splitlines(),
        )
        for head, end in zip(heads, ends, strict=False)
    ]


def read_first_episode(path: Path, decoding: str) -> list[str]:
    """Return the first episode that was decoded so from what :func:`write_evaluation` wrote.

    Args:
        path: The file; without it there is nothing to return.
        decoding: As :func:`~turngym.algos.evaluation.evaluate.describe_decoding` has it.

    Returns:
        The episode's lines but for its notes: observations, and actions after ``>>>``.
    """
    for episode in read_evaluation(path):
        if episode.decoding == decoding:
            lines = (line for line in episode.lines if line.strip())
            return [line for line in lines if not line.startswith("[turn ")]
    return []


def write_group(path: Path, forest: Forest, renderer: Any) -> None:
    """Write all trees of the first group of a forest."""
    group = forest.groups[0]
    blocks = []
    for i, tree in enumerate(group.trees):
        if not tree.turns:
            continue
        total = sum(t.reward for t in tree.turns)
        head = f"{group.task_id}, tree {i}: {tree.turns[-1].status}, return {total:g}"
        blocks.append(_block(head, tree, renderer))
    _write(path, blocks)


def _block(head: str, tree: Tree, renderer: Any) -> str:
    return "\n".join([_RULE, head, _RULE, *_lines(tree, renderer)])


def _lines(tree: Tree, renderer: Any) -> Iterable[str]:
    for i, turn in enumerate(tree.turns):
        terms = ", ".join(f"{name} {value + 0.0:g}" for name, value in turn.reward_terms)
        notes = [
            f"after turn {turn.parent}",
            f"{len(turn.obs_ids)} tokens seen, {len(turn.act_ids)} written, ended by {turn.stop}",
            *([terms] if terms else []),
            *([] if turn.valid else ["not readable"]),
            *(["context full"] if turn.overflow else []),
            turn.status,
        ]
        yield f"[turn {i}: {'; '.join(notes[1:] if turn.parent == i - 1 else notes)}]"
        yield _MARK.sub(" ", renderer.text(turn.obs_ids).strip("\n"))
        first, *rest = turn.action.split("\n", 1)
        yield "\n".join([f">>> {first}", *(_MARK.sub(" ", text) for text in rest)])


def _write(path: Path, blocks: Sequence[str]) -> None:
    """Write for people: a file that is printed in a terminal must not control it."""
    path.write_text(plain("\n".join(blocks) + "\n"), encoding="utf-8")
