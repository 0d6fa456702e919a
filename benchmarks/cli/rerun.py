"""`turngym leaderboard rerun`: a maintainer's machine plays the checkpoint of an entry."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from ...agents.engines.factory import EngineSettings
from ...agents.models.built_folder import whole_or_nothing
from ...agents.scripted import scripted_names
from ...algos.runs.progress import reporter
from ...algos.training.config import model_digest
from ...envs.core.errors import BadValueError, DataError
from ...envs.utils.disk_errors import check_writable
from ...envs.wrappers.record import get_versions
from ...leaderboard.entries_io.files import EntryFiles, write_entry
from ...leaderboard.ranking.index import entries_folder
from ...leaderboard.schema.entry import Episode, Manifest
from ...leaderboard.schema.record import Record, Rerun, read_record, record_path
from ...leaderboard.schema.suite import Suite
from ...leaderboard.suites.files import known_suites
from ...leaderboard.verification.checks import check_manifest, find_suite
from . import submit
from .arguments import Repeated
from .model_options import Sampler, action_tokens, model_path
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Play the weights of an entry on this machine: its rerun is ranked, on open suites too.

    Attributes:
        entry: Id of the entry, as micro-v3/mine.
        weights: Model folder or run directory that the author sent; one per training run, in the
            entry's order.
        entries: Folder of entries; left out: the package's own.
        suite_file: JSON file of a further suite, repeatable.
        overwrite: Replace an earlier rerun.
        temperature: Temperature of the sampling that the entry declares; 0 is greedy.
        max_tokens: Maximum tokens of an action; left out: what the runs were trained with, else 64.
        sampler: What samples the actions.
    """

    entry: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENTRY")]
    weights: Repeated
    entries: str | None = None
    suite_file: Repeated = ()
    overwrite: bool = False
    temperature: float = 0.0
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)


def run(command: Command) -> None:
    """Play, and write the rerun beside the entry with its record.

    Raises:
        DataError: There is no such entry, or a rerun of it.
        BadValueError: The weights are no models, or not one per run.
        Refused: The entry is not of a known suite.
    """
    root = Path(command.entries).expanduser() if command.entries else entries_folder()
    folder = root / command.entry
    if not (folder / "entry.json").is_file():
        raise DataError(f"{folder}: there is no such entry; name it as SUITE/NAME.")
    files = EntryFiles(folder)
    manifest = files.manifest()
    suite = find_suite(manifest, known_suites([Path(name) for name in command.suite_file]))
    check_manifest(manifest, suite)
    _check_weights(command.weights, manifest)
    out = folder.with_name(folder.name + "-rerun")
    if out.exists() and not command.overwrite:
        raise DataError(f"{out}: exists; --overwrite replaces it.")
    check_writable(out.parent)  # before minutes of play
    models = [model_path(word, (), "model") for word in command.weights]
    limit = action_tokens(models, command.max_tokens, reporter())
    command = replace(command, max_tokens=limit)
    played, digests = _play(command, manifest, suite)
    equal = _count_equal(files, played)
    now = datetime.datetime.now(tz=datetime.UTC)
    rerun = Rerun(of=command.entry, weights=digests, equal=equal, episodes=len(played))
    record = Record(
        account=read_record(folder).account,
        accepted=now.isoformat(timespec="seconds"),
        rerun=rerun,
    )
    fields = {
        "versions": dict(get_versions()),
        "date": now.date().isoformat(),
        "card": manifest.card.model_copy(
            update={"sampling": submit.describe_sampling(command.temperature, limit)}
        ),
    }
    with whole_or_nothing(out, replace=command.overwrite) as draft:
        write_entry(draft, manifest.model_copy(update=fields), played)
        record.write(record_path(out))
    say(f"{len(played)} episodes of {suite.id} are in {out}; {equal} have the submitted actions")
    say("put it on the board with: turngym leaderboard index")


def _check_weights(weights: Sequence[str], manifest: Manifest) -> None:
    if len(weights) != len(manifest.runs):
        raise BadValueError(
            f"--weights: got {len(weights)} models for {len(manifest.runs)} runs; name one per run."
        )
    for word in weights:
        if word in scripted_names() or word.endswith(".jsonl"):
            raise BadValueError(
                f"--weights: {word!r} is no model; expected the folder of a checkpoint, since what "
                "is rerun is a model's play."
            )


def _play(
    command: Command, manifest: Manifest, suite: Suite
) -> tuple[list[Episode], tuple[str, ...]]:
    """Return the episodes of every run, and the hashes of the weights that played them."""
    asked = submit.Command(
        sources=command.weights,
        name=manifest.name,
        organisation=manifest.organisation,
        licence=manifest.licence,
        out="",
        suite=suite.id,
        temperature=command.temperature,
        max_tokens=command.max_tokens,
        sampler=command.sampler,
    )
    played: list[Episode] = []
    digests: list[str] = []
    for place, word in enumerate(command.weights):
        digests.append(model_digest(model_path(word, (), "model")))
        played += submit.source_of(word, asked).play(suite, place, reporter())
    return played, tuple(digests)


def _count_equal(files: EntryFiles, played: Sequence[Episode]) -> int:
    """Return how many episodes have the actions that were submitted."""
    sent = {(e.run, e.env, e.task, e.trial): e.actions for e in files.episodes()}
    return sum(sent.get((e.run, e.env, e.task, e.trial)) == e.actions for e in played)
