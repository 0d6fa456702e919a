"""`turngym submit`: play a suite and pack what was done as an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ...agents.engines.factory import EngineSettings
from ...agents.models.built_folder import whole_or_nothing
from ...agents.scripted import scripted, scripted_names
from ...algos.evaluation.evaluate import describe_decoding
from ...algos.runs.progress import Bar, Reporter, reporter
from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import BadValueError, ContextFullError, DataError, EnvFault
from ...envs.wrappers.record import RecordEpisodes, read_transcripts
from ...leaderboard.entries_io.files import EntryFiles, write_entry, write_signature
from ...leaderboard.entries_io.packing import collect_episodes, make_manifest
from ...leaderboard.entries_io.play import (
    AgentStopped,
    make_episode,
    make_failed_episodes,
    play_suite,
)
from ...leaderboard.entries_io.signing import read_key, sign
from ...leaderboard.schema.base import make_form
from ...leaderboard.schema.entry import Budget, Episode, Manifest, ModelCard, Run, Track
from ...leaderboard.schema.result import Refused
from ...leaderboard.schema.suite import Cell, Slot, Suite, parts_of
from ...leaderboard.suites.digests import make_cell_env
from ...leaderboard.suites.files import known_suites, load_suite
from ...leaderboard.verification.checks import check_manifest
from ..runtime.threads import prepare_for
from .model_options import OF_ENGINES, Sampler, action_tokens, model_path

if TYPE_CHECKING:
    from ...algos.evaluation.lm_agent import TokenAgent
from .arguments import Repeated, new_folder, plugin_words, refuse_without
from .tables import say

Sources = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """What the entry says about itself; declared, not checked.

    Attributes:
        description: What it is.
        model: Name of the model; left out: the source's.
        parameters: Number of weights.
        base: The model that it was made from.
        recipe: How it was trained or prompted; left out: the run's recipe.
        data: What it was trained on.
        limitations: Known weaknesses.
        link: Address of weights, code or paper, repeatable.
        hardware: What it ran on.
        readme: Markdown file that goes along as README.md.
    """

    description: str = ""
    model: str | None = None
    parameters: int = 0
    base: str = ""
    recipe: str | None = None
    data: str = ""
    limitations: str = ""
    link: Repeated = ()
    hardware: str = ""
    readme: str | None = None


Card = Annotated[CardOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class Command:
    """Play a suite and pack what was done as an entry: actions and hashes, never a score.

    Attributes:
        sources: A run directory, a model folder, GGUF file or model that `turngym models` lists, a
            scripted agent (expert, random, null), or a .jsonl file of transcripts that
            RecordEpisodes wrote with the suite's seeds. Several are the training runs of one
            entry on the board of algorithms.
        name: Name of the entry.
        organisation: Who submits it.
        licence: Licence of the model or method.
        out: New folder for the entry.
        suite: Suite to play, or a file of one; `turngym leaderboard suites` lists them, and each
            has a part per environment, as micro-searchqa-v3.
        board: agents: any model; algorithms: same start, same budget, at least 3 training runs.
        card: What the entry says about itself.
        date: As 2026-01-31; left out: today.
        reproduces: Name or id of the entry that this one reproduces.
        budget_tokens: Sampled tokens that the track allows a run; left out: the run's own limit.
        budget_calls: Actions in environments that the track allows a run; likewise.
        fill_missing: Count episodes that are in no transcript as errors.
        key: File of a signing key (`turngym leaderboard key`).
        temperature: Temperature of a model's sampling; 0 is greedy.
        max_tokens: Maximum tokens of a model's action; left out: what a run was trained with, else
            64.
        sampler: What samples a model's actions.
    """

    sources: Sources
    name: str
    organisation: str
    licence: str
    out: str
    suite: str = "micro-v3"
    board: Literal["agents", "algorithms"] = "agents"
    card: Card = field(default_factory=CardOptions)
    date: str | None = None
    reproduces: str = ""
    budget_tokens: int | None = None
    budget_calls: int | None = None
    fill_missing: bool = False
    key: str | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)


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
        env_id: Environment that it was trained on; empty where nobody knows.
    """

    name: str
    label: str
    play: Callable[[Suite, int, Reporter], Iterator[Episode]]
    seed: int = 0
    used: Budget = field(default_factory=Budget)
    recipe: str = ""
    sampling: str = ""
    track: Track | None = None
    env_id: str = ""


def check_sources(command: Command) -> None:
    """Refuse an entry of nothing, and budgets that no track has.

    Raises:
        BadValueError: No source, or a budget below 0.
    """
    if not command.sources:
        raise BadValueError(
            "submit: names nothing to play; expected a model, a scripted agent or a file of "
            "transcripts, as in turngym submit expert."
        )
    for option, amount in (
        ("--budget-tokens", command.budget_tokens),
        ("--budget-calls", command.budget_calls),
    ):
        if amount is not None and amount < 0:
            raise BadValueError(f"{option} {amount}: expected 0 or more.")


def run(command: Command) -> None:
    """Play, pack, sign.

    Raises:
        BadValueError: The sources do not fit the board, or a field of the entry is wrong.
        DataError: A file is missing or damaged.
    """
    if command.board != "algorithms":
        refuse_without(command, "--board algorithms", ("budget_tokens", "budget_calls"))
    check_sources(command)
    suite = load_suite(command.suite)
    out = new_folder(command.out)
    key = None if command.key is None else Path(command.key).expanduser()
    if key is not None:
        read_key(key)  # a wrong one is refused before minutes of play
    notes = _notes(command)
    if models := [_model_of(word) for word in command.sources if _is_model(word)]:
        limit = action_tokens(models, command.max_tokens, reporter())  # one card for all runs
        command = replace(command, max_tokens=limit)
    sources = [source_of(word, command) for word in command.sources]
    _check_read(command, sources)
    manifest = make_manifest(suite, **_fields(command, sources))
    _check_board_rules(manifest, suite)
    if warning := _untrained(suite, sources):
        say(warning)
    report = reporter()
    episodes = [
        episode
        for place, source in enumerate(sources)
        for episode in source.play(suite, place, report)
    ]
    with whole_or_nothing(out) as draft:
        write_entry(draft, manifest, episodes, notes)
        if key is not None:
            write_signature(draft, sign(EntryFiles(draft).canonical, key))
    lost = sum(episode.error is not None for episode in episodes)
    errors = f"; {lost} of them stopped with an error and count as 0" if lost else ""
    say(f"{len(episodes)} episodes of {suite.id} are in {out}{errors}")
    file = f" --suite-file {quote(command.suite)}" if Path(command.suite).is_file() else ""
    entry = quote(str(out))
    say(f"check it with: turngym leaderboard verify {entry}{file}{plugin_words()}")


def _check_board_rules(manifest: Manifest, suite: Suite) -> None:
    """Refuse what verification would refuse, before minutes of play.

    Raises:
        BadValueError: The runs do not fit the board, or the organisation is reserved.
    """
    try:
        check_manifest(manifest, suite)
    except Refused as error:
        found = error.refusal
        wanted = f" Expected {found.expected}." if found.expected else ""
        raise BadValueError(f"submit: {found.message} Got {found.got}.{wanted}") from error


def _check_read(command: Command, sources: Sequence[Source]) -> None:
    """Refuse options that no source reads.

    Raises:
        BadValueError: One was given.
    """
    if not any(source.sampling for source in sources):
        of_models = ("temperature", "max_tokens", *OF_ENGINES)
        refuse_without(command, "a source that is a model", of_models)
    if not any(_is_transcript(source.name) for source in sources):
        refuse_without(command, "a source that is a file of transcripts", ("fill_missing",))


def _is_model(word: str) -> bool:
    """Return whether a source is neither a scripted agent nor a file of transcripts."""
    return word not in scripted_names() and not _is_transcript(word)


def _model_of(word: str) -> str:
    """Return the folder or hub name of a model, by what was typed."""
    return model_path(word, ("a .jsonl file of transcripts",))


def _is_transcript(word: str) -> bool:
    """Return whether a source is a file of transcripts."""
    return word.endswith(".jsonl")


def _untrained(suite: Suite, sources: Sequence[Source]) -> str:
    """Return a warning if the suite plays what the runs were not trained on; else nothing."""
    trained = sorted({source.env_id for source in sources} - {""})
    others = sorted({cell.env_id for cell in suite.cells} - set(trained))
    if not trained or not others:
        return ""
    count = len({cell.env_id for cell in suite.cells})
    return (
        f"note: trained on {', '.join(trained)}, but the score of {suite.id} is the mean over "
        f"{count} environments, among them {', '.join(others)}."
        + (f" Of {trained[0]} alone: --suite {own}" if (own := _part(suite, trained)) else "")
    )


def _part(suite: Suite, trained: Sequence[str]) -> str:
    """Return the part of a suite that holds what was trained on alone, if that is one."""
    found = (p.id for p in parts_of(suite) if [p.cells[0].env_id] == list(trained))
    return next((name for name in found if name in known_suites()), "")


def source_of(word: str, command: Command) -> Source:
    """Return what a word on the command line means.

    Raises:
        UnknownNameError: Neither an agent nor a path.
        BadValueError: A run directory without a checkpoint.
        DataError: A damaged run directory.
    """
    if word in scripted_names():
        return Source(name=word, label=word, play=lambda *how: _play_scripted(word, *how))
    if _is_transcript(word):
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
    model = _model_of(word)
    return Source(
        name=word,
        label=folder.name,
        sampling=describe_sampling(command.temperature, action_tokens([model], command.max_tokens)),
        play=lambda *how: _play_model(model, command, *how),
        **about,
    )


def describe_sampling(temperature: float, max_tokens: int) -> str:
    """Return what an entry's card says about how a model's actions are sampled."""
    return f"{describe_decoding(temperature)}, at most {max_tokens} tokens"


def _play_scripted(name: str, suite: Suite, place: int, report: Reporter) -> Iterator[Episode]:
    with report.bar(f"{name} on {suite.id}") as bar:
        yield from scripted_episodes(name, suite, place, bar)


def _play_model(
    model: str, command: Command, suite: Suite, place: int, report: Reporter
) -> Iterator[Episode]:
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare_for(model)
    agent = TokenAgent(
        model,
        max_tokens=action_tokens([model], command.max_tokens),
        temperature=command.temperature,
        engine=command.sampler,
    )
    with report.bar(f"{Path(model).name} on {suite.id}") as bar:
        yield from model_episodes(agent, suite, place, bar)


def _about_run(folder: Path, command: Command) -> dict[str, Any]:
    """Return what a run directory says: seed, cost, recipe, start and budget."""
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
    about: dict[str, Any] = {"seed": result.seed, "used": used, "recipe": result.recipe}
    about["env_id"] = result.env_id
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
    """Return a budget: as given, else as the run was limited."""
    for amount in (given, own.get(name), otherwise):
        if amount is not None:
            return int(amount)
    raise BadValueError(
        f"{folder}: trained without a limit of sampled {name}; say with --budget-{name} which "
        "track it belongs to."
    )


def _fields(command: Command, sources: Sequence[Source]) -> dict[str, Any]:
    """Return the fields of entry.json that the options and the sources give."""
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
    """Return the start and budget that all runs share.

    Raises:
        BadValueError: A source is no training run, or they differ, in their recipe too.
    """
    tracks: list[Track] = []
    for source in sources:
        if source.track is None:
            raise BadValueError(
                f"{source.name}: is no run directory; the board of algorithms takes training runs."
            )
        tracks.append(source.track)
    for source, track in zip(sources, tracks, strict=True):
        if source.recipe != sources[0].recipe:
            raise BadValueError(
                f"{source.name}: was trained by {source.recipe}, but {sources[0].name} by "
                f"{sources[0].recipe}. The runs of one entry are of one algorithm."
            )
        if track != tracks[0]:
            raise BadValueError(
                f"{source.name}: has another start or budget than {sources[0].name} "
                f"({track.start}, {track.budget.sampled_tokens} tokens, "
                f"{track.budget.tool_calls} calls). Runs of one entry share both; name the "
                "track's budget with --budget-tokens and --budget-calls."
            )
    return tracks[0]


def _notes(command: Command) -> dict[str, str]:
    if command.card.readme is None:
        return {}
    path = Path(command.card.readme).expanduser()
    try:
        return {"README.md": path.read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        raise DataError(f"--readme {path}: cannot be read as text ({error}).") from error


def scripted_episodes(name: str, suite: Suite, run: int, bar: Bar) -> Iterator[Episode]:
    """Play every episode of a suite with a scripted agent, as one run of an entry."""

    def make(env: TextEnv[Any, Any], seed: int) -> Policy:
        return scripted(name, seed, env)

    yield from play_suite(
        suite, make, run=run, on_progress=lambda n, count: bar.update(n / count, f"{n} of {count}")
    )


def model_episodes(agent: TokenAgent, suite: Suite, run: int, bar: Bar) -> Iterator[Episode]:
    """Play every episode of a suite with a language model, those of a cell at the same time."""
    total = sum(1 for _ in suite.slots())
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        bar.update(done / total, f"{done} of {total}")

    for cell in suite.cells:
        recorder = RecordEpisodes(make_cell_env(cell), None)
        yield from asyncio.run(_play_cell(agent, suite, cell, recorder, run, tick))
        recorder.close()


async def _play_cell(
    agent: TokenAgent,
    suite: Suite,
    cell: Cell,
    recorder: RecordEpisodes,
    run: int,
    tick: Callable[[], None],
) -> list[Episode]:
    from ...algos.core.forest import Tree
    from ...algos.core.protocols import Start
    from ...algos.rollouts import play_out

    runner = agent.runner(recorder)

    async def play(slot: Slot) -> Episode:
        uid = f"{slot.env}/{slot.task}/{slot.trial}"
        start = Start(cell.split, slot.task, suite.seed_of(slot), uid)
        try:
            # A fork of the start samples what the first chain of a group would.
            handle = (await runner.open(start)).fork(0, redraw=False)
            tree = await play_out(runner, handle, Tree())
        except ContextFullError as full:
            return lost(slot, AgentStopped("context_full", str(full)))
        except EnvFault:
            return lost(slot, AgentStopped("env_error", "the environment broke at its start"))
        finally:
            tick()
        stopped = None
        if tree.turns[-1].overflow:
            stopped = AgentStopped("context_full", "no room for another action")
        assert isinstance(handle.env, RecordEpisodes)
        return make_episode(handle.env.transcript, suite, slot, run, stopped)

    def lost(slot: Slot, stopped: AgentStopped) -> Episode:
        return next(make_failed_episodes(suite, [slot], stopped, run))

    return await asyncio.gather(*(play(slot) for slot in cell.slots()))
