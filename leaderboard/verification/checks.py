"""Checks that an entry is about the suite: the right version, every episode, each one once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...envs.core.errors import UnknownNameError
from ..schema.entry import Episode, Manifest, PlayedEnv
from ..schema.result import refused, refused_episode
from ..schema.suite import Cell, Slot, Suite

MIN_RUNS = 3
"""Training runs that an entry on the board of algorithms needs."""
OVERSHOOT = 1.05
"""Training ends after the step that reaches the budget: by so much it may be passed."""


def suite_of(manifest: Manifest, suites: Mapping[str, Suite]) -> Suite:
    """The suite that an entry played.

    Raises:
        Refused: There is no such suite, not in this version, or it has other content.
    """
    wanted = manifest.suite
    suite = suites.get(wanted.id)
    if suite is None:
        versions = sorted(s.version for s in suites.values() if s.name == wanted.name)
        if versions:
            raise refused(
                "suite_version",
                f"the suite {wanted.name!r} has no version {wanted.version}.",
                expected=f"one of {', '.join(map(str, versions))}",
                got=str(wanted.version),
            )
        hint = UnknownNameError("suite", wanted.name, sorted(suites))
        raise refused("unknown_suite", str(hint), got=wanted.name)
    if wanted.digest != suite.digest:
        raise refused(
            "suite_digest",
            f"the entry played another content under the id {suite.id}.",
            expected=suite.digest,
            got=wanted.digest,
        )
    return suite


def check_manifest(manifest: Manifest, suite: Suite) -> None:
    """The worlds must be the suite's, and the runs must fit the board.

    Raises:
        Refused: The first that does not.
    """
    cells = suite.by_key()
    for played in manifest.environments:
        _check_env(played, cells)
    keys = [played.key for played in manifest.environments]
    if keys != list(cells):
        raise refused(
            "missing_episode" if set(keys) < set(cells) else "format",
            "entry.json: the environments are not those of the suite, each once, in its order.",
            expected=", ".join(cells),
            got=", ".join(keys),
        )
    _check_board(manifest)


def _check_env(played: PlayedEnv, cells: Mapping[str, Cell]) -> None:
    cell = cells.get(played.key)
    if cell is None or cell.env_id != played.env_id:
        hint = UnknownNameError("environment", f"{played.key} ({played.env_id})", cells)
        raise refused(
            "unknown_environment",
            str(hint),
            expected=cell.env_id if cell else "",
            got=played.env_id,
        )
    if played.digest != cell.digest:
        raise refused(
            "environment_digest",
            f"{played.key}: was played in another version of the world or of the suite.",
            expected=cell.digest,
            got=played.digest,
        )


def _check_board(manifest: Manifest) -> None:
    if manifest.track is None:
        if len(manifest.runs) != 1:
            raise refused(
                "board_rules",
                "the board of agents takes one run per entry.",
                expected="1",
                got=str(len(manifest.runs)),
            )
        return
    seeds = {run.seed for run in manifest.runs}
    if len(seeds) != len(manifest.runs) or len(seeds) < MIN_RUNS:
        raise refused(
            "board_rules",
            f"the board of algorithms takes at least {MIN_RUNS} runs, each of its own training "
            "seed.",
            expected=f"{MIN_RUNS} or more different seeds",
            got=", ".join(str(run.seed) for run in manifest.runs),
        )
    allowed = manifest.track.budget
    for run in manifest.runs:
        for name in ("sampled_tokens", "tool_calls"):
            most, used = getattr(allowed, name), getattr(run.used, name)
            if used > most * OVERSHOOT:
                raise refused(
                    "board_rules",
                    f"the run of seed {run.seed} cost more {name.replace('_', ' ')} than its track "
                    "allows.",
                    expected=f"at most {most}",
                    got=str(used),
                )


def check_coverage(episodes: Iterable[Episode], suite: Suite, runs: int) -> int:
    """Every slot of the suite must be played once by every run, with the suite's seed.

    Returns:
        Number of episodes.

    Raises:
        Refused: The first episode that does not belong, comes twice or is missing.
    """
    cells = suite.by_key()
    seen: set[tuple[int, Slot]] = set()
    for episode in episodes:
        slot = check_slot(episode, suite, cells, runs)
        if (episode.run, slot) in seen:
            raise refused_episode(
                "duplicate_episode",
                episode.name,
                "is in the entry twice.",
            )
        seen.add((episode.run, slot))
    for run in range(runs):
        for slot in suite.slots():
            if (run, slot) not in seen:
                name = f"{slot.env} task {slot.task} trial {slot.trial} run {run}"
                raise refused_episode("missing_episode", name, "is missing.")
    return len(seen)


def check_slot(episode: Episode, suite: Suite, cells: Mapping[str, Cell], runs: int) -> Slot:
    """The slot that an episode fills.

    Raises:
        Refused: There is no such slot, or its seed or task is another.
    """
    name = episode.name
    cell = cells.get(episode.env)
    if cell is None:
        hint = UnknownNameError("environment", episode.env, cells)
        raise refused_episode("unknown_environment", name, f"{hint}", got=episode.env)
    if episode.task not in cell.tasks or episode.trial >= cell.trials:
        raise refused_episode(
            "unknown_task",
            name,
            "is not in the suite.",
            expected=f"tasks {_ranges(cell.tasks)}, trials 0 to {cell.trials - 1}",
            got=f"task {episode.task}, trial {episode.trial}",
        )
    if episode.run >= runs:
        raise refused_episode(
            "unknown_run",
            name,
            "entry.json has no such run.",
            expected=f"0 to {runs - 1}",
            got=str(episode.run),
        )
    slot = Slot(episode.env, episode.task, episode.trial)
    wanted = cell.digest_of_task(episode.task), suite.seed_of(slot)
    if episode.task_digest != wanted[0]:
        raise refused_episode(
            "task_digest",
            name,
            "the task has another content.",
            expected=wanted[0],
            got=episode.task_digest,
        )
    if episode.seed != wanted[1]:
        raise refused_episode(
            "seed",
            name,
            "was played with another seed than the suite's.",
            expected=str(wanted[1]),
            got=str(episode.seed),
        )
    return slot


def _ranges(numbers: Sequence[int]) -> str:
    """``0, 1, 2, 5`` as ``0-2, 5``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
