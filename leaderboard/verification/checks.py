"""Check that an entry covers the suite: the right version, and every episode exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...envs.core.errors import UnknownNameError
from ..schema.entry import Episode, Manifest, PlayedEnv, find_blank, is_reserved
from ..schema.result import refused, refused_episode
from ..schema.suite import Cell, Slot, Suite

MIN_RUNS = 3
"""Minimum number of training runs of an entry on the board of algorithms."""
OVERSHOOT = 1.05
"""Tolerated overshoot of the budget, since training ends after the step that reaches it."""


def find_suite(manifest: Manifest, suites: Mapping[str, Suite]) -> Suite:
    """Find the suite that an entry played.

    Raises:
        Refused: The suite or version does not exist, or its content differs.
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
        advice = "A suite that is not the package's is known where its file is: --suite-file FILE."
        hint = UnknownNameError("suite", wanted.name, sorted(suites), advice=advice)
        raise refused("unknown_suite", str(hint), got=wanted.name)
    if wanted.digest != suite.digest:
        raise refused(
            "suite_digest",
            f"the entry was played on different content under the id {suite.id}.",
            expected=suite.digest,
            got=wanted.digest,
        )
    return suite


def check_manifest(manifest: Manifest, suite: Suite) -> None:
    """Check that the environments are the suite's and that the runs fit the board.

    Raises:
        Refused: The first violation.
    """
    if blank := find_blank(manifest):
        raise refused(
            "format",
            f"entry.json: {blank}: is blank; expected something that can be read.",
            got=repr(getattr(manifest, blank)),
        )
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
    if manifest.reference is None and is_reserved(manifest.organisation):
        raise refused(
            "reserved",
            "the organisation is that of the reference rows; name your own.",
            got=manifest.organisation,
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
            f"{played.key}: was played in a different version of the environment or of the suite.",
            expected=cell.digest,
            got=played.digest,
        )


def _check_board(manifest: Manifest) -> None:
    if manifest.track is None:
        if len(manifest.runs) != 1:
            raise refused(
                "board_rules",
                "the board of agents accepts exactly one run per entry.",
                expected="1",
                got=str(len(manifest.runs)),
            )
        return
    seeds = {run.seed for run in manifest.runs}
    if len(seeds) != len(manifest.runs) or len(seeds) < MIN_RUNS:
        raise refused(
            "board_rules",
            f"the board of algorithms needs at least {MIN_RUNS} runs with different seeds.",
            expected=f"{MIN_RUNS} or more different seeds",
            got=", ".join(str(run.seed) for run in manifest.runs),
        )
    allowed = manifest.track.budget
    for run in manifest.runs:
        if not run.used.sampled_tokens:
            raise refused(
                "board_rules",
                f"the run of seed {run.seed} declares no cost; training samples tokens.",
                expected="sampled tokens above 0",
                got="0",
            )
        for name in ("sampled_tokens", "tool_calls"):
            limit, used = getattr(allowed, name), getattr(run.used, name)
            if used > limit * OVERSHOOT:
                raise refused(
                    "board_rules",
                    f"the run of seed {run.seed} used more {name.replace('_', ' ')} than its track "
                    "allows.",
                    expected=f"at most {limit}",
                    got=str(used),
                )


def check_runs(manifest: Manifest, run_actions: Sequence[str]) -> None:
    """Check that no two training runs act alike everywhere: one run is no sample of several.

    Raises:
        Refused: Two do.
    """
    first: dict[str, int] = {}
    for run, actions in zip(manifest.runs, run_actions, strict=True):
        if actions in first:
            raise refused(
                "board_rules",
                f"the runs of seeds {first[actions]} and {run.seed} have the same actions in every "
                "episode; submit runs that were trained apart.",
                expected="runs with actions of their own",
                got="copies of one run",
            )
        first[actions] = run.seed


def check_coverage(episodes: Iterable[Episode], suite: Suite, runs: int) -> int:
    """Check that every run played every slot of the suite once, with the suite's seed.

    Returns:
        Number of episodes.

    Raises:
        Refused: The first episode that is not part of the suite, is duplicated or is missing.
    """
    cells = suite.by_key()
    seen: set[tuple[int, Slot]] = set()
    for episode in episodes:
        slot = check_slot(episode, suite, cells, runs)
        if (episode.run, slot) in seen:
            raise refused_episode("duplicate_episode", episode.name, "occurs twice in the entry.")
        seen.add((episode.run, slot))
    for run in range(runs):
        for slot in suite.slots():
            if (run, slot) not in seen:
                name = f"{slot.env} task {slot.task} trial {slot.trial} run {run}"
                raise refused_episode("missing_episode", name, "is missing.")
    return len(seen)


def check_slot(episode: Episode, suite: Suite, cells: Mapping[str, Cell], runs: int) -> Slot:
    """Return the slot that an episode fills.

    Raises:
        Refused: There is no such slot, or the seed or task differs.
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
            "the content of the task differs from the suite's.",
            expected=wanted[0],
            got=episode.task_digest,
        )
    if episode.seed != wanted[1]:
        raise refused_episode(
            "seed",
            name,
            "was not played with the suite's seed.",
            expected=str(wanted[1]),
            got=str(episode.seed),
        )
    return slot


def _ranges(numbers: Sequence[int]) -> str:
    """Format ``0, 1, 2, 5`` as ``0-2, 5``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
