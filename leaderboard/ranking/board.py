"""Make boards from verdicts: ranks, and tests between neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from ...envs.utils.seed_tests import Edges
from ...envs.utils.statistics import Estimate, sign_flip_p, task_gaps
from ..schema.board import Board, BoardRow, PairedTest, RankedBy, RunTest
from ..schema.entry import BoardName, Budget, Manifest, ReferenceName, Track
from ..schema.result import Scores
from .index import Indexed
from .run_tests import Method, compare_halves, compare_neighbours, compare_reproduction
from .scoring import task_scores

REFERENCES: tuple[ReferenceName, ...] = ("expert", "random", "null")
_LAST, _DAY = "9999", len("2026-01-31")
_DIGITS = 9
Key = tuple[str, BoardName, Track | None]


def make_boards(index: Sequence[Indexed]) -> list[Board]:
    """Make every board that has entries: by suite version, agents first, then each track.

    The reference rows of a suite are on all its boards, refused entries on none. Reproductions have
    rows of their own. Ranks have the entries of sealed seasons and those that a maintainer's
    machine played; the others stand below, and copies of earlier entries are marked.
    """
    accepted = [one for one in index if one.verdict.scores is not None]
    copies = find_copies(accepted)
    found: dict[Key, list[Indexed]] = {}
    for one in accepted:
        manifest = one.manifest
        track = manifest.track
        found.setdefault((manifest.suite.id, manifest.board, track), []).append(one)
    return [
        _board(key, _add_references(key, entries, accepted), copies)
        for key, entries in sorted(found.items(), key=_order)
    ]


def reference_of(one: Indexed) -> ReferenceName | None:
    """Return which reference row an entry is; only the one at the reference's path counts."""
    manifest = one.manifest
    named = one.entry_id == f"{manifest.suite.id}/{manifest.reference}"
    return manifest.reference if named else None


def ranked_by(one: Indexed) -> RankedBy:
    """Return why an entry's score can be trusted to be the agent's; empty where nothing says so."""
    if one.record.rerun is not None:
        return "rerun"
    return "season" if one.record.season else ""


def find_copies(accepted: Sequence[Indexed]) -> dict[str, str]:
    """Return the entries with a run whose actions an earlier entry has, with that entry's id.

    Reference rows come first, then the others by the time of acceptance. A rerun is no copy of the
    entry that it repeats, nor that entry of it.
    """
    first: dict[tuple[str, str], Indexed] = {}
    copies: dict[str, str] = {}
    for one in sorted(accepted, key=_age):
        for actions in one.verdict.run_actions:
            other = first.setdefault((one.manifest.suite.id, actions), one)
            if other is not one and reference_of(one) is None and not _is_rerun(one, other):
                copies.setdefault(one.entry_id, other.entry_id)
    return copies


def _is_rerun(one: Indexed, other: Indexed) -> bool:
    pair = (one, other), (other, one)
    return any(a.record.rerun is not None and a.record.rerun.of == b.entry_id for a, b in pair)


def _age(one: Indexed) -> tuple[bool, str, str]:
    return reference_of(one) is None, one.record.accepted or _LAST, one.entry_id


def compare_tasks(above: Indexed, below: Indexed) -> PairedTest:
    """Compare two entries of the same suite over its tasks, with equal weights per environment."""
    ours, theirs = (task_scores(one.verdict.episodes) for one in (above, below))
    tasks = [key for key in ours if key in theirs]
    per_env: dict[str, int] = {}
    for env, _ in tasks:
        per_env[env] = per_env.get(env, 0) + 1
    differences = task_gaps([ours[key] for key in tasks], [theirs[key] for key in tasks])
    weights = [1.0 / (len(per_env) * per_env[env]) for env, _ in tasks]
    return PairedTest(
        other=below.entry_id,
        difference=sum(d * w for d, w in zip(differences, weights, strict=True)),
        p_value=sign_flip_p([d * w for d, w in zip(differences, weights, strict=True)]),
        tasks=len(tasks),
    )


def _order(item: tuple[Key, list[Indexed]]) -> tuple[str, str, str]:
    suite, board, track = item[0]
    return suite, board, track.model_dump_json() if track else ""


def _add_references(key: Key, entries: list[Indexed], accepted: Sequence[Indexed]) -> list[Indexed]:
    have = {one.entry_id for one in entries}
    further = [
        one
        for one in accepted
        if one.entry_id not in have
        and reference_of(one) is not None
        and one.manifest.suite.id == key[0]
    ]
    return [*entries, *further]


def _board(key: Key, entries: list[Indexed], copies: Mapping[str, str]) -> Board:
    suite, board, track = key
    competing = {one.entry_id for one in entries if ranked_by(one) and one.entry_id not in copies}
    ordered = sorted(entries, key=lambda one: _sort_key(one, competing))
    ranks = _ranks(ordered, competing)
    tests = _run_tests(ordered) if board == "algorithms" else _task_tests(ordered)
    rows = tuple(
        _row(one, board, rank, tested, copies.get(one.entry_id, ""))
        for one, rank, tested in zip(ordered, ranks, tests, strict=True)
    )
    there = {row.reference for row in rows}
    missing: tuple[ReferenceName, ...] = tuple(n for n in REFERENCES if n not in there)
    return Board(board=board, suite=suite, track=track, rows=rows, missing_references=missing)


class _Tests(NamedTuple):
    """The tests of one row."""

    versus_next: PairedTest | RunTest | None = None
    versus_itself: RunTest | None = None
    versus_reproduced: RunTest | None = None


def _task_tests(ordered: Sequence[Indexed]) -> list[_Tests]:
    """Return the tests of agents: one policy each, so that tasks are all there is to draw."""
    tests = [_Tests(compare_tasks(a, b)) for a, b in itertools.pairwise(ordered)]
    return [*tests, _Tests()]


def _run_tests(ordered: Sequence[Indexed]) -> list[_Tests]:
    """Return the tests of algorithms, over training runs, and each method against itself."""
    methods = [_method(one) for one in ordered]
    guesses = [one.scores.score.mean for one in ordered if reference_of(one) in ("random", "null")]
    edges = Edges(floor=max(guesses, default=0.0))
    by_id = {method.entry_id: method for method in methods}
    return [
        _Tests(
            versus_next=test,
            versus_itself=compare_halves(method, edges),
            versus_reproduced=None
            if (original := _find_original(one, ordered)) is None
            else compare_reproduction(method, by_id[original.entry_id], edges),
        )
        for one, method, test in zip(
            ordered, methods, compare_neighbours(methods, edges), strict=True
        )
    ]


def _find_original(one: Indexed, entries: Sequence[Indexed]) -> Indexed | None:
    """Return the entry that ``one`` reproduces; None where it names none that was there before.

    The one with the named id, else the earliest accepted one with the name, which reproductions
    and reruns share with their original. An entry without a time of acceptance may have been there.
    """
    wanted = one.manifest.reproduces
    earlier = [other for other in entries if other is not one and not _is_later(other, one)]
    if named := next((other for other in earlier if other.entry_id == wanted), None):
        return named
    return min(
        (
            other
            for other in earlier
            if other.manifest.name == wanted
            and not other.manifest.reproduces
            and other.record.rerun is None
        ),
        key=_age,
        default=None,
    )


def _is_later(one: Indexed, other: Indexed) -> bool:
    """Return whether an entry is known not to have been accepted before the other."""
    times = one.record.accepted, other.record.accepted
    return all(times) and times[0] >= times[1]


def _method(one: Indexed) -> Method:
    seeds = [run.seed for run in one.manifest.runs]
    runs = dict(zip(seeds, one.scores.runs, strict=True))
    return Method(one.entry_id, runs, trained=reference_of(one) is None)


def _sort_key(one: Indexed, competing: Set[str]) -> tuple[bool, float, float, str, str]:
    """Return the sort key: ranked and reference rows first, the best first, ties by acceptance."""
    below = one.entry_id not in competing and reference_of(one) is None
    age = one.record.accepted or _LAST
    score, success = _placed_by(one)
    return below, -score, -success, age, one.entry_id


def _placed_by(one: Indexed) -> tuple[float, float]:
    """Return score and success without their last digits, by which means of equal sums differ."""
    scores = one.scores
    return round(scores.score.mean, _DIGITS), round(scores.success.mean, _DIGITS)


def _ranks(ordered: Sequence[Indexed], competing: Set[str]) -> list[int | None]:
    """Return the ranks; equal scores that were accepted on the same day share one."""
    ranks: list[int | None] = []
    place, last, last_key = 0, 0, None
    for one in ordered:
        if one.entry_id not in competing or reference_of(one) is not None:
            ranks.append(None)
            continue
        place += 1
        key = _placed_by(one)[0], one.record.accepted[:_DAY]
        if key != last_key:
            last, last_key = place, key
        ranks.append(last)
    return ranks


def _row(one: Indexed, board: BoardName, rank: int | None, tests: _Tests, copy_of: str) -> BoardRow:
    manifest, scores = one.manifest, one.scores
    return BoardRow(
        rank=rank,
        ranked_by=ranked_by(one),
        copy_of=copy_of,
        account=one.record.account,
        accepted=one.record.accepted[:_DAY],
        entry_id=one.entry_id,
        name=manifest.name,
        organisation=manifest.organisation,
        date=manifest.date,
        board=board,
        suite=manifest.suite.id,
        reference=reference_of(one),
        reproduces=manifest.reproduces,
        track=manifest.track,
        model=manifest.card.model,
        parameters=manifest.card.parameters,
        sampling=manifest.card.sampling,
        licence=manifest.licence,
        signed_by=one.verdict.signed_by,
        score=_ranking_estimate(scores),
        success=scores.success,
        pass_at=scores.pass_at,
        pass_all=scores.pass_all,
        turns=scores.turns,
        tool_calls=scores.tool_calls,
        errors=scores.errors,
        episodes=scores.episodes,
        runs=scores.runs,
        used=_mean_cost(manifest),
        envs={env.env: env.score for env in scores.envs},
        **tests._asdict(),
    )


def _ranking_estimate(scores: Scores) -> Estimate:
    return scores.score if scores.between_runs is None else scores.between_runs


def _mean_cost(manifest: Manifest) -> Budget:
    used = [run.used for run in manifest.runs]
    return Budget(
        sampled_tokens=round(sum(u.sampled_tokens for u in used) / len(used)),
        tool_calls=round(sum(u.tool_calls for u in used) / len(used)),
    )
