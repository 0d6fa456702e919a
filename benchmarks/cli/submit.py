"""`turngym submit`: play a suite and pack what was done as an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from ...agents.scripted import scripted_names
from ...algos.runs.progress import Reporter, reporter
from ...envs.core.errors import BadValueError, DataError
from ...envs.wrappers.record import read_transcripts
from ...leaderboard.entries_io.files import EntryFiles, write_entry, write_signature
from ...leaderboard.entries_io.packing import collect_episodes, make_manifest
from ...leaderboard.entries_io.signing import read_key, sign
from ...leaderboard.schema.base import make_form
from ...leaderboard.schema.entry import Budget, Episode, ModelCard, Run, Track
from ...leaderboard.schema.suite import Suite
from ...leaderboard.suites.files import load_suite
from ..runtime.threads import prepare
from .leaderboard_options import SubmitCommand
from .models import model_path
from .suite_play import model_episodes, scripted_episodes


@dataclass(frozen=True, kw_only=True)
class Source:
    """One thing to play, and what is known about it.

    Attributes:
        name: What was typed.
        label: Name of the model or agent.
        play: Plays the suite; takes the place of the run and a reporter.
        seed: Training seed.
        used: What training cost.
        recipe: How it was trained; empty where nobody knows.
        sampling: How its actions are sampled; empty where they are not sampled here.
        track: Start and budget of a training run; None for anything else.
    """

    name: str
    label: str
    play: Callable[[Suite, int, Reporter], Iterator[Episode]]
    seed: int = 0
    used: Budget = field(default_factory=Budget)
    recipe: str = ""
    sampling: str = ""
    track: Track | None = None


def run(command: SubmitCommand) -> None:
    """Play, pack, sign.

    Raises:
        BadValueError: The sources do not fit the board, or a field of the entry is wrong.
        DataError: A file is missing or damaged.
    """
    suite = load_suite(command.suite)
    out = Path(command.out).expanduser()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadValueError(f"--out {command.out}: is not empty; name a new folder.")
    key = None if command.key is None else Path(command.key).expanduser()
    if key is not None:
        read_key(key)  # a wrong one is told before minutes of play
    notes = _notes(command)
    sources = [source_of(word, command) for word in command.sources]
    manifest = make_manifest(suite, **_fields(command, sources))
    report = reporter()
    episodes = [
        episode
        for place, source in enumerate(sources)
        for episode in source.play(suite, place, report)
    ]
    write_entry(out, manifest, episodes, notes)
    if key is not None:
        write_signature(out, sign(EntryFiles(out).canonical, key))
    lost = sum(episode.error is not None for episode in episodes)
    console = Console()
    console.print(
        f"{len(episodes)} episodes of {suite.id} are in {out}"
        + (f"; {lost} of them stopped with an error and count as 0" if lost else ""),
        highlight=False,
    )
    console.print(f"check it with: turngym leaderboard verify {out}", highlight=False)


def source_of(word: str, command: SubmitCommand) -> Source:
    """What a word on the command line means.

    Raises:
        UnknownNameError: Neither an agent nor a path.
        BadValueError: A run directory without a checkpoint.
        DataError: A damaged run directory.
    """
    if word in scripted_names():
        return Source(name=word, label=word, play=lambda *how: _scripted(word, *how))
    if word.endswith(".jsonl"):
        path = Path(word).expanduser()
        return Source(
            name=word,
            label=path.stem,
            play=lambda suite, place, _: iter(
                collect_episodes(
                    read_transcripts(path), suite, run=place, fill=command.fill_missing
                )
            ),
        )
    folder = Path(word).expanduser()
    about = _about_run(folder, command) if (folder / "checkpoints").is_dir() else {}
    model = model_path(word, ("a .jsonl file of transcripts",))
    return Source(
        name=word,
        label=folder.name,
        sampling=f"temperature {command.temperature:g}, at most {command.max_tokens} tokens",
        play=lambda *how: _model(model, command, *how),
        **about,
    )


def _scripted(name: str, suite: Suite, place: int, report: Reporter) -> Iterator[Episode]:
    with report.bar(f"{name} on {suite.id}") as bar:
        yield from scripted_episodes(name, suite, place, bar)


def _model(
    model: str, command: SubmitCommand, suite: Suite, place: int, report: Reporter
) -> Iterator[Episode]:
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare(small=False)
    agent = TokenAgent(
        model,
        max_tokens=command.max_tokens,
        temperature=command.temperature,
        engine=command.sampler,
    )
    with report.bar(f"{Path(model).name} on {suite.id}") as bar:
        yield from model_episodes(agent, suite, place, bar)


def _about_run(folder: Path, command: SubmitCommand) -> dict[str, Any]:
    """What a run directory says: seed, cost, recipe, start and budget."""
    from ...algos.evaluation.result import RunResult
    from ...algos.runs.run_dir import read_json

    config = read_json(folder / "config.json")
    if not (folder / "result.json").exists():
        if command.board == "algorithms":
            raise DataError(
                f"{folder}: has no result.json, so the run is not finished and its cost is not "
                "known; let it end first."
            )
        return {"seed": config.get("seed", 0)}
    result = RunResult.read(folder / "result.json")
    used = Budget(sampled_tokens=result.sampled_tokens, tool_calls=result.env_turns)
    about = {"seed": result.seed, "used": used, "recipe": result.recipe}
    if command.board == "algorithms":
        own = config.get("budget", {})
        about["track"] = Track(
            start=Path(str(config.get("model", ""))).name or "unknown",
            start_digest=result.model_digest,
            budget=Budget(
                sampled_tokens=_allowed(command.budget_tokens, own, "tokens", folder),
                tool_calls=_allowed(command.budget_calls, own, "calls", folder, used.tool_calls),
            ),
        )
    return about


def _allowed(
    given: int | None, own: dict[str, Any], name: str, folder: Path, otherwise: int | None = None
) -> int:
    """A budget: as given, else as the run was limited."""
    for amount in (given, own.get(name), otherwise):
        if amount is not None:
            return int(amount)
    raise BadValueError(
        f"{folder}: trained without a limit of sampled {name}; say with --budget-{name} which "
        "track it belongs to."
    )


def _fields(command: SubmitCommand, sources: Sequence[Source]) -> dict[str, Any]:
    """The fields of entry.json that the options and the sources give."""
    card, first = command.card, sources[0]
    fields: dict[str, Any] = {
        "name": command.name,
        "organisation": command.organisation,
        "board": command.board,
        "description": card.description,
        "hardware": card.hardware,
        "licence": command.licence,
        "reproduces": command.reproduces,
        "runs": tuple(Run(seed=source.seed, used=source.used) for source in sources),
        "card": make_form(
            ModelCard,
            "entry: card",
            model=first.label if card.model is None else card.model,
            parameters=card.parameters,
            base=card.base,
            recipe=first.recipe if card.recipe is None else card.recipe,
            data=card.data,
            limitations=card.limitations,
            sampling=first.sampling,
            links=card.link,
        ),
    }
    if command.date is not None:
        fields["date"] = command.date
    if command.board == "algorithms":
        fields["track"] = _common_track(sources)
    elif len(sources) > 1:
        raise BadValueError(
            f"the board of agents takes one source per entry, not {len(sources)}; several training "
            "runs go to --board algorithms."
        )
    return fields


def _common_track(sources: Sequence[Source]) -> Track:
    """Start and budget that all runs share.

    Raises:
        BadValueError: A source is no training run, or they differ.
    """
    tracks: list[Track] = []
    for source in sources:
        if source.track is None:
            raise BadValueError(
                f"{source.name}: is no run directory; the board of algorithms takes training runs."
            )
        tracks.append(source.track)
    for source, track in zip(sources, tracks, strict=True):
        if track != tracks[0]:
            raise BadValueError(
                f"{source.name}: has another start or budget than {sources[0].name} "
                f"({track.start}, {track.budget.sampled_tokens} tokens, "
                f"{track.budget.tool_calls} calls). Runs of one entry share both; name the "
                "track's budget with --budget-tokens and --budget-calls."
            )
    return tracks[0]


def _notes(command: SubmitCommand) -> dict[str, str]:
    if command.card.readme is None:
        return {}
    path = Path(command.card.readme).expanduser()
    try:
        return {"README.md": path.read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        raise DataError(f"--readme {path}: cannot be read as text ({error}).") from error
