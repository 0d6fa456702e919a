"""The training loop: roll out, assign credit, update, sync weights, evaluate, save.

Every step is a function of the seed, its number and the weights, so a run that was killed and
resumed from its checkpoint gives the same numbers as an uninterrupted one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from weakref import WeakSet

from ...agents.engines.http.engine import HttpEngine
from ...agents.models.loading import resolve_dtype
from ...agents.models.size import is_large
from ...agents.models.usual_torch import usual_torch
from ...agents.rendering.factory import Renderer, make_renderer
from ...agents.scripted import text_env
from ...envs.core.errors import EngineFault
from ...envs.core.settings import check_declared
from ...envs.core.tasks import get_split_blocks, get_split_size
from ...envs.utils.disk_errors import disk_errors
from ...envs.utils.garbage_collection import settled_heap, uncollected
from ..core.forest import Forest
from ..core.protocols import Credits
from ..evaluation.evaluate import EvalSet, Evaluation, evaluate_model
from ..evaluation.prompt_lengths import check_all_prompts
from ..evaluation.result import RunResult, scores_at
from ..learner.importance_weights import (
    Alarm,
    Difference,
    protection,
    rejected,
    weighed,
    without_paths,
)
from ..learner.learner import Learner
from ..learner.parallel.team import Team
from ..rollouts import EpisodeRunner
from ..rollouts.collect import play_first, play_step, step_warning
from ..rollouts.pipeline import AsyncPipeline, Pipeline, Rollouts, SyncPipeline, load_pending
from ..rollouts.stats import (
    lag_metrics,
    rollout_metrics,
    shaped_metrics,
    tokens_read_again,
    tokens_sampled,
    turns_taken,
)
from ..rollouts.step_limits import Played, StepLimits, check_going_on
from ..rollouts.streams import streams_for
from ..rollouts.task_order import OrderedTasks
from ..runs.interrupts import AgreedInterrupt, agreed_stops, held_interrupts, uninterrupted
from ..runs.loggers import Logger
from ..runs.metrics import OF_SAMPLING
from ..runs.process_group import join_ranks, shared_faults
from ..runs.progress import Bar, Reporter, Silent, check_reporter
from ..runs.run_dir import Closing
from ..runs.timer import Clock
from .checkpoint import (
    AHEAD,
    Carried,
    RunCounters,
    load_checkpoint,
    load_memory,
    newest_whole,
    save_checkpoint,
    set_damaged_aside,
    settle_checkpoint,
)
from .config import TrainConfig, config_digest, model_digest
from .credit_step import Credited, assign_credit
from .engines import (
    EngineMaker,
    check_overlap,
    engine_of,
    make_engine,
    make_partial,
    make_runner,
    settle,
    usual_cap,
)
from .policy import check_teacher, load_policy, own_device
from .rollout_dump import RolloutDump, first_groups
from .run_writer import RunWriter, read_finished

APART_METRIC = "update/logprob_diff_mean_nats"
APART = 0.005
"""Nats between engine and learner, mean per token, from which a run's progress line says so."""

_EARLIER: WeakSet[Trainer] = WeakSet()  # those of train() that are still in memory


def train(
    config: TrainConfig,
    run_dir: Path | str,
    report: Reporter | None = None,
    engine: EngineMaker = make_engine,
    *,
    loggers: Sequence[str | Logger] = (),
) -> RunResult:
    """Train, or resume an interrupted run, and return the scores before and after.

    A finished run with ``records="metrics"``, which has no checkpoint, gives its result again.

    Args:
        config: Configuration of the run.
        run_dir: The run directory.
        report: Shows progress; see :func:`turngym.algos.runs.progress.reporter`.
        engine: Builds the engine; :class:`turngym.algos.ray.RayRollouts` is an alternative.
        loggers: Where the metrics go besides the run directory; see
            :mod:`turngym.algos.runs.loggers`.

    Raises:
        TurngymError: The configuration is invalid; nothing was changed.
        DataError: The disk is full or cannot be written; the last checkpoint stays.
        PeerEndedError: Another process of the run ended; the last checkpoint stays.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    check_declared(train, "train", {"run_dir": run_dir})
    if (done := read_finished(config, run_dir)) is not None:
        check_reporter(report).note(f"{run_dir} is finished; its result is given again")
        return done
    if _EARLIER:
        with uninterrupted():  # what is raised in a finalizer is lost
            gc.collect()  # learner, optimiser and engine of an earlier run, which form cycles
    with shared_faults(), disk_errors(run_dir):
        with uncollected():
            trainer = Trainer(config, run_dir, report, engine, loggers=loggers)
            _EARLIER.add(trainer)
        with trainer, settled_heap():
            return trainer.run()


class Trainer(Closing):
    """Trains in a run directory; a context manager that holds the directory's lock.

    The constructor checks everything that can be checked (environments, splits, model, tokenizer,
    prompt lengths, the directory) and resumes from the latest complete checkpoint.

    Args:
        config: Configuration of the run.
        run_dir: The run directory.
        report: Shows progress.
        engine: Builds the engine.
        loggers: Where the metrics go besides the run directory.

    Raises:
        TurngymError: The configuration is invalid; nothing was changed.
    """

    @usual_torch()
    def __init__(
        self,
        config: TrainConfig,
        run_dir: Path | str,
        report: Reporter | None = None,
        engine: EngineMaker = make_engine,
        *,
        loggers: Sequence[str | Logger] = (),
    ) -> None:
        self.config = config
        self.ranks = join_ranks(config.device)
        self.report = check_reporter(report) if self.ranks.first else Silent()
        self.env = config.env.prototype
        base_env = text_env(self.env)
        self.sets = [e.make() for e in config.evals]
        policy, self.tokenizer = load_policy(config, self.report, waits=not self.ranks.alone)
        device = own_device(config.device)
        dtype = None if config.lora else resolve_dtype(config.weights, device)
        self.renderer: Renderer = make_renderer(self.tokenizer, tools=base_env.tools)
        self.engine = engine_of(engine, config, policy, self.tokenizer)
        check_overlap(self.engine, config.max_lag)
        room = self.engine.max_context - config.max_tokens
        check_all_prompts(self.env, config.split, self.sets, self.renderer, room)
        config.recipe.check(base_env)
        check_teacher(config.recipe.teacher, self.tokenizer)
        self.learner = Learner(
            policy,
            config.recipe,
            pad_id=self.renderer.pad_id,
            settings=config.learner,
            seed=config.seed,
            team=Team(self.ranks.learner, device, dtype),
        )
        settle(self.engine, self.learner)
        self.partial = make_partial(config, self.engine, self.ranks)
        asked = usual_cap(config), config.reject_above
        self.guard = protection(config.recipe, self._difference(policy), *asked)
        self._alarm = Alarm()
        split, size = config.split, get_split_size(base_env.source, config.split, base_env.name)
        if (tracker := config.recipe.tracker) is None:
            blocks = get_split_blocks(base_env.source, split)
            self.tasks = OrderedTasks(config.seed, split, size if blocks is None else blocks)
        else:
            self.tasks = tracker.start(config.seed, split, size, base_env.reward_range)
        resolved = config.resolved(model_digest(config.model))
        self.digests = (config_digest(resolved), str(resolved["model_digest"]))
        self.writer = RunWriter(config, run_dir, resolved, self.ranks, loggers)
        self._settled = True  # no update, row of an evaluation or checkpoint is half done
        self._start: Path | None = None
        try:
            self.counters = self._resume()
            self._played = {self.counters.step: self.counters.played}  # by step; may be ahead
            self.pipeline = self._make_pipeline()
        except BaseException:
            self.writer.close()
            raise
        self._began = time.monotonic() - self.counters.seconds

    @usual_torch()
    def run(self) -> RunResult:
        """Train until the budget is used, evaluate, and write the result.

        Ctrl-C abandons a rollout or evaluation, or finishes an update, then saves a checkpoint;
        the same call resumes from there. Rollouts that ``max_lag`` has begun with earlier weights
        are finished first, as no checkpoint has these weights; a second Ctrl-C, or the end of the
        process, leaves the checkpoint before, from which the run goes on to the same numbers.

        Raises:
            KeyboardInterrupt: After the checkpoint was saved, but for a second one as above.
            EngineFault: The engine failed; after the checkpoint was saved.
            LossNotFiniteError: The loss is nan or infinite; the last checkpoint stays.
            DataError: It was closed, or its folder is another one now.
        """
        self.writer.dir.check_held()
        try:
            with agreed_stops(self.ranks) as check, self.report.bar("training") as bar:
                self._play_first()
                self._until_done(bar, check)
        except (KeyboardInterrupt, EngineFault) as fault:
            if isinstance(fault, EngineFault) and not self.ranks.alone:
                raise  # the other processes do not take part in saving
            self._stop(fault)
            raise
        self.counters.seconds = self._elapsed()
        (result := self._result()).write(self.writer.root / "result.json")
        self.ranks.learner.everyone("result written")  # the next call may ask for it, in all
        return result

    def _stop(self, fault: BaseException) -> None:
        """Save what is done, unless an update is half done or other processes do not save."""
        done, root = self.counters.step, self.writer.root
        if interrupted := isinstance(fault, KeyboardInterrupt):
            all_save = self.ranks.alone or isinstance(fault, AgreedInterrupt)
            if not (self._settled and all_save):
                self.report.note(
                    f"stopped at once; the same call resumes {root} from its last checkpoint"
                )
                return
            if left := self.pipeline.unfinished(done):
                self.report.note(
                    f"interrupted; first step {left[0]} is played to its end, by weights that no "
                    "checkpoint has (a second Ctrl-C stops at once; the same call then resumes "
                    "from the last checkpoint)"
                )
        self._save()
        settle_checkpoint(self.learner)
        self.writer.draw()
        why = "interrupted" if interrupted else "the engine failed"
        self.report.note(f"{why}; step {done} is saved in {root}: the same call resumes from there")

    def close(self) -> None:
        """Release the run directory."""
        with closing(self.writer):
            self.pipeline.close()

    def _until_done(self, bar: Bar, check_stop: Callable[[], None]) -> None:
        saved = self.counters.step
        while True:
            check_stop()
            over = self._spent() >= 1.0
            if self._evaluation_due(over):
                self._evaluate(greedy=self._greedy_due(over))
            due = self._records_due() and self.counters.step != saved
            if (over or due) and self.config.records == "all":
                with held_interrupts():
                    saved = self._save()
            if over:
                settle_checkpoint(self.learner)
                self.writer.draw()
                return
            row = self.train_step()
            bar.update(
                self._spent(),
                f"step {self.counters.step}, return {row.get('rollout/return_mean', 0.0):.3f}, "
                f"success {row.get('rollout/success_frac', 0.0):.0%}{_apart(row)}",
            )

    @usual_torch()
    def train_step(self) -> dict[str, float]:
        """Run one step and return its metrics; an interrupt leaves it done or not begun."""
        self.writer.dir.check_held()
        step, clock = self.counters.step + 1, Clock()
        rollouts = self.pipeline.take(step, self.config.budget.steps)
        played = rollouts.played
        with held_interrupts():
            self._settled = False
            clock.lap("wait")
            if rollouts.warning:
                self.report.note(rollouts.warning)
            lag = lag_metrics(played.all, self.counters.step, of_tokens=self.partial is not None)
            row = rollout_metrics(played.all) | lag
            row |= played.metrics() | {"engine/prefix_hit_frac": rollouts.stats.prefix_hit_frac}
            if self.partial is None:
                read = rollouts.stats.read_tokens - turns_taken(played.all)
                row |= tokens_read_again(played.all, read)
            learned, dump = self._learn(played.trained, played.share, clock)
            row |= learned
            if not self.config.recipe.rollout.samples:
                row = {key: value for key, value in row.items() if key not in OF_SAMPLING}
            apart = row.get(APART_METRIC, 0.0)
            if said := self._alarm(step, apart, row.get("rollout/lag_mean", 0.0), self.guard):
                self.report.note(said)
            laps = {**rollouts.seconds, **clock.laps}
            row["time/rollout_tokens_per_s"] = tokens_sampled(played.all) / laps["rollout"]
            self.counters.count(self._played[step])
            self._played.pop(step - 1)
            self.counters.optimizer_steps = self.learner.optimizer_steps
            self.counters.paths += len(played.trained.paths)
            row |= {
                "budget/tokens": float(self.counters.tokens),
                "budget/turns": float(self.counters.turns),
                "budget/paths": float(self.counters.paths),
                "budget/optimizer_steps": float(self.counters.optimizer_steps),
            }
            row |= {f"time/{name}_s": seconds for name, seconds in laps.items()}
            row["time/step_s"] = clock.total()
            self._log(row)
            self._settled = True
            if step == 1 or self._records_due():
                dump = replace(dump, step=step)
                self.writer.rollouts(played.all, dump, self.learner, self.renderer, self.tokenizer)
        return row

    def _records_due(self) -> bool:
        """Whether this step's checkpoint and rollouts are written: also after an interrupt."""
        return self.counters.step % self.config.checkpoint_every == 0

    def _difference(self, policy: Any) -> Difference:
        """Return how the engine differs from the learner."""
        tokens, config = self.learner.models.tokens, self.config
        kind, sampled = config.engine, resolve_dtype(config.engine_dtype, tokens.device)
        if isinstance(self.engine, HttpEngine):
            kind, sampled = self.engine.form
        return Difference(
            formats=not (tokens.exact and sampled == tokens.dtype),
            kinds=kind != "transformers",
            large=is_large(policy),
            on_cpu=tokens.device.type == "cpu",
        )

    async def _play(self, step: int) -> Rollouts:
        recipe, before = self.config.recipe, self.engine.stats
        so_far, runner = self._played[step - 1], self._runner()
        if self.partial is None:
            played = await play_step(recipe, runner, self.tasks, so_far, self._left(so_far))
        else:
            played = await self.partial.play(recipe, runner, self.tasks, so_far)
        self._played[step] = after = so_far.after(played.all.groups)
        check_going_on(recipe.rollout, after, played.all.groups, runner.fault)
        warning = step_warning(step, recipe, played, runner.fault)
        if self.partial is not None and self.partial.warning:
            warning, self.partial.warning = f"{warning} {self.partial.warning}".strip(), ""
        return Rollouts(played=played, warning=warning, stats=self.engine.stats - before)

    def _left(self, played: Played) -> StepLimits:
        """Return what is left of the budget after these steps and the first episodes."""
        first = self.counters
        return self.config.budget.left(
            first.first_tokens + played.total.tokens, first.first_turns + played.total.turns
        )

    def _learn(
        self, forest: Forest, share: float, clock: Clock
    ) -> tuple[dict[str, float], RolloutDump]:
        recipe, ranks = self.config.recipe, self.ranks.learner
        credited = assign_credit(recipe, forest, self.learner, self.tasks, ranks)
        shaped, annotations, credits = credited
        row = {f"credit/{name}": float(value) for name, value in credits.metrics.items()}
        if recipe.shapers:
            row |= shaped_metrics(shaped)
        updated, credits = self._update(credited, share, clock)
        row |= updated | self._replay(credited, share)
        learned = self.tasks.learn(shaped, self.learner)
        row |= {f"tracker/{name}": value for name, value in learned.items()}
        clock.lap("update")
        policy = self.learner.policy_for_engine(in_turn=self.config.max_lag is None)
        self.pipeline.hand_over(self.counters.step + 1, policy)
        self.learner.rest()
        return row, first_groups(shaped, annotations, credits, self.config.keep_rollouts)

    def _update(
        self, credited: Credited, share: float, clock: Clock
    ) -> tuple[dict[str, float], Credits]:
        """Take the optimiser steps; return their metrics and the credits after all weights.

        ``annotations`` of what is credited get the log-probabilities before the update.
        """
        shaped, annotations, credits = credited
        guard, learner = self.guard, self.learner
        clock.lap("credit")
        if not guard.on:
            return learner.update(*credited, share), credits
        if (done := learner.update_scoring(*credited, share, guard)) is not None:
            row, now = done
            if now is not None:
                annotations["old_logprobs"] = now
                if guard.cap is not None:
                    credits, _ = weighed(credits, shaped, now, guard.cap)
            return row, credits
        if "old_logprobs" not in annotations:
            annotations["old_logprobs"] = learner.logprobs(shaped)
        now = annotations["old_logprobs"]
        row, off, out = {}, {}, None
        if guard.reject_above is not None:
            silent = learner.silent(credits.advantages)
            out, off = rejected(shaped, now, guard.reject_above, silent)
        if guard.cap is not None:
            credits, row = weighed(credits, shaped, now, guard.cap, out)
        update = shaped, annotations, credits
        update = update if out is None or not out.any() else without_paths(*update, out)
        clock.lap("credit")
        return row | learner.update(*update, share) | off, credits

    def _replay(self, credited: Credited, share: float) -> dict[str, float]:
        """Train on earlier paths again, where the task source has some."""
        again = self.tasks.replay(*credited, self.learner)
        if again is None:
            return {}
        part = min(1.0, share * len(again.forest.paths) / max(1, len(credited.forest.paths)))
        row = self.learner.update(again.forest, again.annotations, again.credits, part)
        logged = "loss", "grad_norm", "optimizer_steps", "skipped_steps"
        return {f"replay/{name}": row.get(f"update/{name}", 0.0) for name in logged} | {
            "replay/paths": float(len(again.forest.paths))
        }

    def _play_first(self) -> None:
        """Play what the task source needs before the first step."""
        tasks = self.tasks
        if self.counters.tokens or not tasks.first_episodes:
            return
        runner = self._runner()
        with self.report.bar("playing first episodes") as bar:
            paid = self.pipeline.call(lambda: play_first(runner, tasks, bar.update))
        # Counted at the end and at once: after an interrupt they are played again.
        self.counters.tokens, self.counters.turns = paid
        self.counters.first_tokens, self.counters.first_turns = paid

    def _runner(self, what: EvalSet | None = None) -> EpisodeRunner:
        return make_runner(self.config, self.engine, self.renderer, self.env, what, self.ranks)

    def _evaluation_due(self, over: bool) -> bool:
        if not self.sets or self.counters.evaluated_step == self.counters.step:
            return False
        every = self.config.eval_every
        return over or self.counters.step == 0 or (every > 0 and self.counters.step % every == 0)

    def _greedy_due(self, over: bool) -> bool:
        step, every = self.counters.step, self.config.eval_every * self.config.greedy_every
        return over or step == 0 or (every > 0 and step % every == 0)

    def _evaluate(self, *, greedy: bool) -> None:
        clock = Clock()
        evaluations = [self._evaluate_one(what, greedy) for what in self.sets]
        with held_interrupts():
            self._settled = False
            row: dict[str, float] = {"time/eval_s": clock.lap("eval")}
            for evaluation in evaluations:
                row |= evaluation.rows()
                self.writer.evaluation(self.counters.step, evaluation, self.renderer)
                self.report.note(evaluation.summary_line(self.counters.step))
            row |= {"budget/tokens": self.counters.tokens, "budget/turns": self.counters.turns}
            self.counters.evaluated_step = self.counters.step
            self._log(row)
            self._settled = True

    def _evaluate_one(self, what: EvalSet, greedy: bool) -> Evaluation:
        runner = self._runner(what)
        with self.report.bar(f"evaluating {what.name}") as bar:

            def on_progress(n: int) -> None:
                bar.update(n / len(what.tasks), f"{n} of {len(what.tasks)}")

            return self.pipeline.call(
                lambda: evaluate_model(runner, what, on_progress, greedy=greedy)
            )

    def _resume(self) -> RunCounters:
        folder = self.writer.checkpoints
        newest = self._start = newest_whole(folder, self.report.note)
        if newest is None:
            if (aside := self.writer.resume(0, None)) is not None:
                self.report.note(
                    f"{self.writer.root} has no checkpoint, so training begins anew; the metrics "
                    f"of before are in {aside}"
                )
            return RunCounters()
        counters = load_checkpoint(newest, self.learner, self.report.note)
        if self.tasks.state():  # a source without state has no file
            self.tasks.load(load_memory(newest))
        if self.partial is not None:
            self.partial.load(counters.step, load_memory(newest))
        policy = self.learner.policy_for_engine(in_turn=self.config.max_lag is None)
        self.engine.sync(policy, counters.step)
        self.ranks.learner.everyone("loaded")
        if self.ranks.first:
            for path in set_damaged_aside(folder, newest):
                self.report.note(f"the damaged one is {path} now; delete it if nobody needs it")
        self.report.note(f"resuming from step {counters.step} in {self.writer.root}")
        self.writer.resume(counters.step, counters.metrics_bytes)
        if said := self.writer.changed:
            self.report.note(f"{said}; what is there stays as it is: another run_dir begins anew")
        return counters

    def _make_pipeline(self) -> Pipeline:
        """Create the pipeline, resuming with what was played ahead; a tracker begins its steps."""
        device = self.learner.models.tokens.device
        streams = streams_for(device, beside=bool(self.config.max_lag))
        if self.config.max_lag is None:
            samples = self.config.recipe.rollout.samples
            return SyncPipeline(self._play, self.engine, streams, samples=samples)
        here = None if self._start is None else self._start / AHEAD
        if here is None or not here.is_dir():
            here = self.writer.pending
        ready = load_pending(here, self.counters.step) if self.config.recipe.tracker is None else {}
        for step, rollouts in ready.items():
            self._played[step] = self._played[step - 1].after(rollouts.played.all.groups)
        return AsyncPipeline(self._play, self.engine, self.config.max_lag, ready, streams)

    def _save(self) -> int:
        self._settled = False
        pending = self.pipeline.pending(self.counters.step)
        # a step behind the end of the budget has no groups, and is none
        pending = {step: one for step, one in pending.items() if one.played.all.groups}
        with held_interrupts():
            self.counters.seconds = self._elapsed()
            self.counters.metrics_bytes = self.writer.dir.metrics_size()
            what = self.learner, self.tokenizer, self.counters, self.config.keep
            memory = self.tasks.state()
            if self.partial is not None:
                memory = self.partial.state(self.counters.step)
            ahead = None if self.config.max_lag is None else pending
            carried = Carried(memory=memory or {}, rollouts=ahead)
            save_checkpoint(self.writer.checkpoints, *what, carried)
            self._settled = True
        return self.counters.step

    def _log(self, row: dict[str, float]) -> None:
        if (start := self.config.warm_start) is not None:
            row["budget/imitated_tokens"] = float(start.action_tokens)
        self.writer.log(self.counters.step, {**row, "time/elapsed_s": self._elapsed()})

    def _result(self) -> RunResult:
        """Return the scores before and after, read back from the metrics, with the counters."""
        rows, counters, start = self.writer.rows(), self.counters, self.config.warm_start
        where = {s.name: (s.base_env.name, s.split) for s in self.sets}
        heat = self.config.eval_temperature
        mean_of = {
            key: fmean(found)
            for key in (APART_METRIC, "rollout/overflow_frac", "rollout/cut_actions_frac")
            if (found := [row[key] for row in rows if key in row])
        }
        return RunResult(
            recipe=self.config.recipe.name,
            env_id=self.config.env.id,
            seed=self.config.seed,
            config_digest=self.digests[0],
            model_digest=self.digests[1],
            steps=counters.step,
            optimizer_steps=counters.optimizer_steps,
            sampled_tokens=counters.tokens,
            imitated_tokens=None if start is None else start.action_tokens,
            env_turns=counters.turns,
            seconds=counters.seconds,
            engine_apart_nats=mean_of.get(APART_METRIC),
            context_full_frac=mean_of.get("rollout/overflow_frac") or None,
            cut_actions_frac=mean_of.get("rollout/cut_actions_frac") or None,
            before=scores_at(rows, 0, where, heat),
            after=scores_at(rows, counters.step, where, heat),
        )

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _spent(self) -> float:
        used = self.counters.step, self.counters.tokens, self.counters.turns, self._elapsed()
        return self.ranks.learner.from_first(self.config.budget.spent(*used))


def _apart(row: Mapping[str, float]) -> str:
    """Say how far the engine's log-probabilities are from the learner's, where it can matter."""
    off = row.get(APART_METRIC, 0.0)
    return f", engine {off:.3f} nats off" if off >= APART else ""
