"""A study: some recipes, one policy and one environment under the microscope."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...agents.scripted import text_env
from ...algos.core.checks import check_minimum
from ...algos.core.forest import Forest
from ...algos.core.protocols import Rollout
from ...algos.core.recipe import Recipe
from ...algos.credit.group import GroupCredit, by_prompt, on_every_token
from ...algos.runs.progress import Bar, Reporter
from ...algos.runs.provenance import git_commit
from ...algos.training.config import model_digest
from ...algos.training.credit_step import Credited
from ...algos.training.rollout_dump import SUFFIX, first_groups, write_dump
from ...envs.core.errors import BadValueError
from .credits import TurnCredit, TurnIndex
from .crew import Bench, Crew
from .giving import OwnPartError, credit_by_batch, credit_of, give_credit
from .gradients import Vectors, group_gradients
from .intervals import FEW, differences_of, drawn_weights, values_of
from .metrics import (
    GradientTable,
    TurnTable,
    bias_variance,
    gradient_measures,
    gradient_table,
    group_sums,
    reference_measures,
    turn_measures,
)
from .playing import Playground, Sample, Subject, known_truth, make_subject
from .report import CreditReport, Row
from .truth import TruthSettings

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating[Any]]
Truths = tuple[Numbers, Numbers, Numbers]


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How a study is made.

    Attributes:
        groups: Groups of the first recipe; recipes with smaller groups get more of them, so that
            all have about as many paths.
        batches: Training batches of every recipe, in place of groups: the unit of all measures
            is then a batch. 0 counts groups, and a unit is a group.
        batch_tokens: Sampled tokens of a training batch.
        compared: Batches of every recipe whose gradients are compared with the reference; their
            turns are not measured, so they cost little.
        reference: Parts of the reference, of 8 batches' tokens each: play that no recipe has, for
            the gradient that all recipes are compared with; 0 for none.
        truth: How truth is measured.
        resample: M, how often the group around an anchor turn is sampled again, for bias and
            variance; 0 leaves both out.
        anchors: Anchor turns per recipe.
        samples: Samples of the bootstrap over units, of which there are ten and more.
        strict: Whether a recipe that cannot be measured is an error; else it is noted.
        keep: Groups per recipe that are written for `turngym view`.
    """

    groups: int = 40
    batches: int = 0
    batch_tokens: int = 0
    compared: int = 0
    reference: int = 0
    truth: TruthSettings = field(default_factory=TruthSettings)
    resample: int = 0
    anchors: int = 30
    samples: int = 1000
    strict: bool = True
    keep: int = 4

    def __post_init__(self) -> None:
        check_minimum(self, groups=2, resample=0, anchors=1, samples=100, keep=0)
        check_minimum(self, batches=0, batch_tokens=0, compared=0, reference=0)
        counts = self.batches, self.compared, self.reference
        if 1 in counts:
            raise BadValueError(f"StudySettings: {counts} batches; expected at least 2 each, or 0.")
        alone = bool(self.compared) != bool(self.reference) or (self.compared and not self.batches)
        if alone or bool(self.batches) != bool(self.batch_tokens):
            raise BadValueError(
                f"StudySettings: batches {self.batches}, batch_tokens {self.batch_tokens}, "
                f"compared {self.compared}, reference {self.reference}; batches need their tokens, "
                "and compared batches a reference."
            )
        if self.resample == 1:
            raise BadValueError(
                "StudySettings.resample is 1; expected 0, or at least 2: one has no variance."
            )
        if self.batches and self.resample:
            raise BadValueError("StudySettings.resample: groups are resampled, not batches; use 0.")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Truth:
    """The truth of a forest's turns, ``[turns]``; nan where there is none.

    ``units`` holds the unit of each group ``[groups]``.
    """

    index: TurnIndex
    units: npt.NDArray[np.int64]
    first: Doubles
    third: Doubles
    fourth: Doubles
    error: Doubles
    state: npt.NDArray[np.int64]

    @property
    def second(self) -> Doubles:
        """Mean over the second half of the continuations."""
        return (self.third + self.fourth) / 2

    @property
    def whole(self) -> Doubles:
        """Mean over all continuations."""
        return (self.first + self.second) / 2

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Turns that have a truth."""
        return np.isfinite(self.whole)

    def judge(self, credit: Doubles, *, half: bool = False) -> TurnTable:
        """Return the table of a credit, judged by all continuations or by the second half."""
        index, known = self.index, self.known
        size = np.sqrt(index.tokens.astype(np.float64)) * index.copies.astype(np.float64)
        truth = (self.second, self.third, self.fourth) if half else (self.whole, *self.halves)
        a, h1, h2 = (part[known] for part in truth)
        return TurnTable(
            group=self.units[[g for g, _, _ in index.places]][known],
            credit=credit[known],
            truth=a,
            first=h1,
            second=h2,
            error=self.error[known] * (np.sqrt(2.0) if half else 1.0),
            state=self.state[known],
            weight=size[known],
        )

    @property
    def halves(self) -> tuple[Doubles, Doubles]:
        """Means over the first and over the second half."""
        return self.first, self.second


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """A recipe with all that was computed of it."""

    subject: Subject
    sample: Sample
    credited: Credited
    truth: _Truth
    credit: TurnCredit
    played: int


class Study:
    """Judges the credit of recipes.

    Args:
        bench: Environment and policy.
        recipes: By name, in the order of the report; differences are taken to the first.
        settings: How.
        report: Shows progress.
        critics: Weights of the critics by the recipe's name; others are as at a first step.

    Attributes:
        refused: Recipes that cannot be measured, with the reason, where that is no error.
        failed: Recipes with a part that raised after all was measured, with the error; the report
            has what else was measured.

    Raises:
        BadValueError: A recipe whose credit cannot be judged.
    """

    def __init__(
        self,
        bench: Bench,
        recipes: Mapping[str, Recipe],
        settings: StudySettings,
        report: Reporter,
        critics: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.bench, self.settings, self.report = bench, settings, report
        self.refused: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.subjects: list[Subject] = []
        for name, recipe in recipes.items():
            try:
                critic = (critics or {}).get(name)
                self.subjects.append(make_subject(name, recipe, bench, critic))
            except BadValueError as fault:
                self._refuse(name, fault)
        self._seen: list[_Seen] = []

    def _refuse(self, name: str, fault: BadValueError) -> None:
        """Note that a recipe cannot be measured; with strict settings that is an error."""
        if self.settings.strict:
            raise fault
        self.refused[name] = str(fault)

    def run(self, crew: Crew) -> CreditReport:
        """Play, measure and judge.

        Raises:
            BadValueError: A recipe whose credit cannot be judged; or, where that is no error, none
                is left.
            OwnPartError: A part of a recipe raised on the first groups, of which nothing is
                measured yet; or, later, in all recipes.
        """
        began = time.monotonic()
        if not self.subjects:
            raise BadValueError(f"credit: no recipe can be measured: {self.refused}.")
        ground = Playground(
            crew=crew,
            truth=self.settings.truth,
            groups=self.settings.groups,
            paths=self.subjects[0].recipe.rollout.max_paths,
            batches=self.settings.batches,
            batch_tokens=self.settings.batch_tokens,
            resample=self.settings.resample,
            anchors=self.settings.anchors,
            refuse=self._refuse,
            chance=text_env(self.bench.env).chance,
        )
        self._try_out(ground)
        with self.report.bar("measuring turns") as bar:
            samples = ground.samples(self.subjects, bar.update)
        seconds = time.monotonic() - began
        self._seen = self._judge(samples)
        reference = self._reference(ground) if self._seen else None
        along = {} if reference is None else self._along(ground, reference)
        if not self._seen and self.failed:
            raise OwnPartError(" ".join(self.failed.values()))
        if not self._seen:
            raise BadValueError(f"credit: no recipe can be measured: {self.refused}.")
        with self.report.bar("differentiating") as bar:
            rows = self._rows(bar, along)
        config, work = self.bench.config, ground.work
        return CreditReport(
            env_id=config.env.id,
            env_settings={name: str(value) for name, value in config.env.settings.items()},
            model=config.model,
            model_digest=model_digest(config.model),
            split=config.split,
            seed=config.seed,
            groups=self.settings.groups if not self.settings.batches else 0,
            batches=self.settings.batches,
            batch_tokens=self.settings.batch_tokens,
            compared=self.settings.compared,
            reference=self.settings.reference,
            continuations=self.settings.truth.continuations,
            noise=self.settings.truth.noise,
            transitions="random" if ground.random else "fixed",
            work={
                "turns": float(known_truth(samples)),
                "continuations": float(work.continuations),
                "actions": float(work.actions),
                "seconds": seconds,
                "processes": float(crew.workers),
            },
            commit=git_commit() or "",
            rows=rows,
        )

    def _try_out(self, ground: Playground) -> None:
        """Give credit to some groups that are only played, so that faults come before the work."""
        with self.report.bar("trying the credit") as bar:
            for done, subject in enumerate(self.subjects, 1):
                with suppress(BadValueError):  # few groups may be too few: judged on all of them
                    if (forest := ground.some(subject)).paths:
                        credited = give_credit(subject, forest)
                        credit_of(subject, credited, TurnIndex.of(credited.forest))
                bar.update(done / len(self.subjects), subject.name)

    def write_dumps(self, folder: Path) -> dict[str, str]:
        """Write each recipe's first groups with credit and truth per token, for `turngym view`.

        Returns:
            The files by the recipe's name, relative to the folder.
        """
        files: dict[str, str] = {}
        if not self.settings.keep:
            return files
        folder.mkdir(parents=True, exist_ok=True)
        for seen in self._seen:
            name, (forest, annotations, credits) = seen.subject.name, seen.credited
            dump = first_groups(forest, annotations, credits, self.settings.keep)
            truth, n = seen.truth, len(dump.forest.paths)
            streams = {
                "credit": truth.index.spread(seen.credit.mean)[:n],
                "true_advantage": truth.index.spread(truth.whole)[:n],
                "true_error": truth.index.spread(truth.error)[:n],
            }
            about = {"recipe": name, "env": self.bench.config.env.id, "sampled": True}
            dump = type(dump)(
                step=0, about=about, forest=dump.forest, streams={**dump.streams, **streams}
            )
            files[name] = name + SUFFIX
            learner = seen.subject.learner
            write_dump(folder / files[name], dump, learner, self.bench.tokenizer)
        return files

    def _reference(self, ground: Playground) -> Vectors | None:
        """Return the gradient of the expected return in parts of play ``[parts, numbers]``.

        Without a continuation: returns less those of others give it without bias (Kool, van Hoof
        and Welling 2019), and the same time plays so much more that its direction is surer.
        """
        if not self.settings.reference:
            return None
        subject, seed = self.subjects[0], self.bench.config.seed
        with self.report.bar("playing the reference") as bar:
            sample = ground.play_reference(subject, seed, self.settings.reference, bar.update)
        kinds = {"return": compared_returns(sample.forest)}
        found = group_gradients(subject.learner, sample.forest, kinds, units=sample.units)
        return _padded(found["return"], len(sample.names))

    def _along(self, ground: Playground, reference: Vectors) -> dict[str, dict[str, Doubles]]:
        """Return how each recipe's batches point along the reference, by the recipe's name."""
        count = self.settings.compared
        drawn = drawn_weights(count, self.settings.samples)
        weights = np.concatenate([np.ones((1, count)), drawn])
        out = {}
        for done, seen in enumerate(self._seen):
            subject = seen.subject
            with self.report.bar(f"playing {subject.name}") as bar:
                sample = ground.play_only(subject, count, bar.update)
                if not sample.groups:
                    continue
                try:
                    credit = credit_by_batch(subject, sample, TurnIndex.of(sample.forest))
                except OwnPartError as fault:
                    self.failed[subject.name] = str(fault)
                    continue
                kinds = {"own": credit.coefficients}
                given = subject.learner, sample.forest, kinds
                own = _padded(group_gradients(*given, units=sample.units)["own"], count)
                bar.update((done + 1) / len(self._seen), subject.name)
            tokens = np.full(count, sample.tokens)
            out[subject.name] = reference_measures(own, reference, tokens, weights)
        self._seen = [seen for seen in self._seen if seen.subject.name not in self.failed]
        return out

    def _judge(self, samples: Mapping[str, Sample]) -> list[_Seen]:
        seen: list[_Seen] = []
        played: dict[tuple[int, ...], int] = {}
        for subject in self.subjects:
            if subject.name not in samples:
                continue
            sample = samples[subject.name]
            same = tuple(id(measured) for measured in sample.groups)
            try:
                credited = give_credit(subject, sample.forest)
                index = TurnIndex.of(credited.forest)
                if self.settings.batches:
                    credit = credit_by_batch(subject, sample, index)
                else:
                    credit = credit_of(subject, credited, index)
            except OwnPartError as fault:
                self.failed[subject.name] = str(fault)
                continue
            except BadValueError as fault:
                self._refuse(subject.name, fault)
                continue
            number = played.setdefault(same, len(played))
            seen.append(
                _Seen(
                    subject=subject,
                    sample=sample,
                    credited=credited,
                    truth=_truth_of(sample, index),
                    credit=credit,
                    played=number,
                )
            )
        return seen

    def _rows(self, bar: Bar, along: Mapping[str, dict[str, Doubles]]) -> list[Row]:
        draws = _Draws(self._seen, self.settings.samples)
        numbers = sorted({seen.played for seen in self._seen})
        rows: dict[str, tuple[Row, dict[str, Doubles]]] = {}
        extra: list[Row] = []
        for done, number in enumerate(numbers):
            members = [seen for seen in self._seen if seen.played == number]
            first = members[0]
            truth, index = first.truth, first.truth.index
            noise = np.random.default_rng([self.bench.config.seed, number])
            chance = noise.standard_normal(len(index.places))
            kinds: dict[str, Any] = {
                "h1": index.spread(np.nan_to_num(truth.first)),
                "h3": index.spread(np.nan_to_num(truth.third)),
                "h4": index.spread(np.nan_to_num(truth.fourth)),
                "random": index.spread(chance),
            }
            kinds |= {f"recipe {s.subject.name}": s.credit.coefficients for s in members}

            def tick(part: float, done: int = done) -> None:
                bar.update((done + part) / len(numbers))

            learner, sample = first.subject.learner, first.sample
            found = group_gradients(learner, sample.forest, kinds, tick, sample.units)
            found = {name: _padded(rows, len(sample.names)) for name, rows in found.items()}
            h1, h2 = found["h1"], (found["h3"] + found["h4"]) / 2
            whole = (h1 + h2) / 2, h1, h2
            half = h2, found["h3"], found["h4"]
            tokens = np.full(len(sample.names), sample.tokens)
            weights = draws.weights(first.sample)
            for seen in members:
                name = seen.subject.name
                own = found[f"recipe {name}"]
                pair = truth.judge(seen.credit.mean), gradient_table(own, whole, tokens)
                measures = _measures(*pair, weights)
                measures |= along.get(name, {})
                try:
                    self._add_bias(seen, measures)
                except OwnPartError as fault:
                    self.failed[name] = str(fault)
                rows[name] = _row(name, "recipe", seen, measures, seen.credit.within), measures
            noise_only = found["random"]
            sides: tuple[tuple[Literal["truth", "random"], TurnTable, Numbers, Truths], ...] = (
                ("truth", truth.judge(truth.first, half=True), h1, half),
                ("random", truth.judge(chance), noise_only, whole),
            )
            several = f" ({first.subject.name})" if len(numbers) > 1 else ""
            for role, turns, own, judge in sides:
                measures = _measures(turns, gradient_table(own, judge, tokens), weights)
                extra.append(_row(role + several, role, first, measures, 0.0))
        base = rows[self._seen[0].subject.name][1]
        compared = [
            row.model_copy(update={"differences": differences_of(measures, base) if place else {}})
            for place, (row, measures) in enumerate(rows[s.subject.name] for s in self._seen)
        ]
        return [*compared, *extra]

    def _add_bias(self, seen: _Seen, measures: dict[str, Doubles]) -> None:
        """Add bias and variance of the credit at the anchor turns, where groups were resampled."""
        credits, worth, errors = [], [], []
        groups = [measured.group for measured in seen.sample.groups]
        number = {place: n for n, place in enumerate(seen.truth.index.places)}
        for g, measured in enumerate(seen.sample.groups):
            for (tree, turn), again in measured.resampled:
                at = number[g, tree, turn]
                if not seen.truth.known[at]:
                    continue
                found = []
                for group in again:
                    forest = Forest.of([*groups[:g], group, *groups[g + 1 :]])
                    credited = give_credit(seen.subject, forest)
                    index = TurnIndex.of(credited.forest)
                    if (g, tree, turn) in index.places:
                        mean = credit_of(seen.subject, credited, index).mean
                        found.append(mean[index.places.index((g, tree, turn))])
                if len(found) > 1:
                    credits.append(np.array(found))
                    worth.append(seen.truth.whole[at])
                    errors.append(seen.truth.error[at])
        if not credits:
            return
        known = seen.truth.known
        error = seen.truth.error[known]
        spread = max(float(seen.truth.whole[known].var() - np.mean(error**2)), 1e-12)
        scale = float(measures["scale"][0])
        bias, variance = bias_variance(credits, np.array(worth), np.array(errors), scale, spread)
        measures["bias"], measures["variance"] = np.array([bias]), np.array([variance])


class _Draws:
    """Weights of the units, the same for all recipes that saw a unit.

    A recipe of few units has weights of its own: drawn among the many of another, most samples
    would hold one or two of them, and none of them in some.
    """

    def __init__(self, seen: Sequence[_Seen], samples: int) -> None:
        names = sorted({name for one in seen for name in one.sample.names})
        self._names = names
        self._samples = samples
        self._drawn = drawn_weights(len(names), samples)

    def weights(self, sample: Sample) -> Doubles:
        """Return ``[1 + samples, units]``: first every unit once, then the samples."""
        few = len(sample.names) < FEW
        names = sorted(sample.names) if few else self._names
        drawn = drawn_weights(len(names), self._samples) if few else self._drawn
        at = {name: i for i, name in enumerate(names)}
        drawn = drawn[:, [at[name] for name in sample.names]]
        return np.concatenate([np.ones((1, drawn.shape[1])), drawn])


def name_rollout(rollout: Rollout) -> str:
    """Return a rollout's name with the settings that are not its defaults."""
    kind = type(rollout)
    if not is_dataclass(rollout):
        return kind.__name__
    given = [
        f"{f.name}={getattr(rollout, f.name)}"
        for f in fields(rollout)
        if getattr(rollout, f.name) != f.default or f.name == "n"
    ]
    return f"{kind.__name__}({', '.join(given)})"


def compared_returns(forest: Forest) -> list[npt.NDArray[np.float32]]:
    """Return for each path its episode's return less the mean of the group's others, per token.

    An episode without another has 0. All is divided by the number of paths.
    """
    apart = GroupCredit(baseline="leave-one-out", scale="none")
    gains = apart.within(forest, by_prompt(forest))
    return on_every_token(forest, gains / max(len(gains), 1))


def _padded(rows: Vectors, count: int) -> Vectors:
    """Return one gradient per unit; those of units behind the last group are 0."""
    return np.pad(rows, ((0, count - len(rows)), (0, 0)))


def _truth_of(sample: Sample, index: TurnIndex) -> _Truth:
    means = np.array(
        [sample.groups[g].truths[tree, turn].means() for g, tree, turn in index.places]
    ).reshape(-1, 4)
    states: dict[str, int] = {"": -1}
    numbers = []
    for g, tree, turn in index.places:
        state = sample.groups[g].group.trees[tree].turns[turn].state
        numbers.append(states.setdefault(state, len(states)))
    return _Truth(
        index=index,
        units=np.array(sample.units, dtype=np.int64),
        first=means[:, 0],
        third=means[:, 1],
        fourth=means[:, 2],
        error=means[:, 3],
        state=np.array(numbers, dtype=np.int64),
    )


def _measures(turns: TurnTable, gradients: GradientTable, weights: Doubles) -> dict[str, Doubles]:
    sums = group_sums(turns, weights.shape[1])
    return turn_measures(sums, weights) | gradient_measures(gradients, weights)


def _row(
    name: str,
    role: Literal["recipe", "truth", "random"],
    seen: _Seen,
    measures: Mapping[str, Doubles],
    within: float,
) -> Row:
    truth, forest = seen.truth, seen.sample.forest
    solved = [forest.turns(path)[-1].status == "solved" for path in forest.paths]
    return Row(
        name=name,
        role=role,
        rollout=name_rollout(seen.subject.recipe.rollout),
        played=seen.played,
        groups=len(seen.sample.groups),
        turns=int(truth.known.sum()),
        left_out=int((~truth.known).sum()),
        tokens=float(seen.sample.tokens),
        success=float(np.mean(solved)) if solved else 0.0,
        deviation=float(truth.whole[truth.known].std()),
        within=float(within),
        measures=values_of(measures),
        differences={},
    )
