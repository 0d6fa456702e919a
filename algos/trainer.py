"""The training loop: play, give credit, update, hand the weights over, measure, save.

Every step is a function of the seed, its number and the weights. So a run that was killed and is
taken up again from its checkpoint ends in the same numbers as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from ..agents.render import Renderer, make_renderer
from ..agents.scripted import text_env
from ..envs.errors import EngineFault
from ..envs.tasks import split_blocks, split_size
from .ahead import Ahead
from .ahead_files import load_ahead, save_ahead
from .checkpoint import Progress, load_checkpoint, load_memory, newest_whole, save_checkpoint
from .clock import Clock
from .config import TrainConfig, config_digest, model_digest
from .contracts import Floats
from .curve import draw_curve
from .distributed import Team, join_ranks
from .distributed.run_files import open_run_dir
from .distributed.shaping import shaped_by_first
from .distributed.stopping import agreed_stops
from .engines import EngineMaker, check_overlap, make_engine, make_player
from .evaluate import EvalSet, Evaluation, evaluate_model
from .forest import Forest
from .heap import settled_heap
from .importance import weighed
from .interrupts import held_interrupts
from .kept import Kept, first_groups
from .learner import Learner
from .metrics import OF_SAMPLING, checked
from .playing import Played, play_first, play_groups, play_step
from .policy import load_policy
from .precheck import check_all_prompts
from .progress import Bar, Reporter, Silent
from .result import RunResult
from .rollout_files import write_rollouts
from .rollout_stats import (
    lag_metrics,
    rollout_metrics,
    shaped_metrics,
    tokens_sampled,
    told_faults,
    turns_taken,
)
from .rollouts import Demonstrations, Player
from .run_dir import add_version, read_metrics
from .stage import InTurn, Rollouts, Stage
from .summary import result_of
from .task_order import step_starts
from .tensorboard import Board
from .transcripts import write_evaluation
from .versions import versions


def train(
    config: TrainConfig,
    run_dir: Path | str,
    report: Reporter | None = None,
    engine: EngineMaker = make_engine,
) -> RunResult:
    """Train, or go on with an interrupted run, and return the scores before and after.

    Args:
        config: The run.
        run_dir: Its folder.
        report: Where progress is told; see :func:`turngym.algos.progress.reporter`.
        engine: Makes what samples; :class:`turngym.algos.cluster.RayRollouts` is another maker.

    Raises:
        TurngymError: Something does not fit; nothing was changed.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    with Trainer(config, run_dir, report, engine) as trainer, settled_heap():
        return trainer.run()


class Trainer:
    """A run in its directory; a context manager that holds the directory's lock.

    Making one checks everything that can be checked (environments, splits, model, tokenizer,
    prompt lengths, the directory) and takes up the newest whole checkpoint where there is one.

    Args:
        config: The run.
        run_dir: Its folder.
        report: Where progress is told.
        engine: Makes what samples.

    Raises:
        TurngymError: Something does not fit; nothing was changed.
    """

    def __init__(
        self,
        config: TrainConfig,
        run_dir: Path | str,
        report: Reporter | None = None,
        engine: EngineMaker = make_engine,
    ) -> None:
        self.config = config
        self.ranks = join_ranks(config.device)
        self.report = report if report and self.ranks.first else Silent()
        self.env = config.env.make()
        world = text_env(self.env)
        self.size = split_size(world.source, config.split, world.name)
        blocks = split_blocks(world.source, config.split)
        self.order = self.size if blocks is None else blocks
        self.sets = [e.make() for e in config.evals]
        policy, self.tokenizer = load_policy(config, self.report)
        self.renderer: Renderer = make_renderer(self.tokenizer, tools=world.tools)
        self.engine = engine(config, policy, self.tokenizer)
        check_overlap(self.engine, config.max_lag)
        room = self.engine.max_context - config.max_tokens
        check_all_prompts(self.env, config.split, self.sets, self.renderer, room)
        if isinstance(config.recipe.rollout, Demonstrations):
            config.recipe.rollout.check(world)
        self.learner = Learner(
            policy,
            config.recipe,
            pad_id=self.renderer.pad_id,
            settings=config.learner,
            seed=config.seed,
            team=Team(self.ranks.learner),
        )
        tracker = config.recipe.tracker
        self.memory = (
            None
            if tracker is None
            else tracker.start(config.seed, config.split, self.size, world.reward_range)
        )
        resolved = config.resolved(model_digest(config.model))
        self.digests = (config_digest(resolved), str(resolved["model_digest"]))
        self.dir = open_run_dir(run_dir, resolved, self.ranks)
        try:
            self.done = self._take_up()
            self.stage = self._make_stage()
        except BaseException:
            self.dir.close()
            raise
        self.board = Board(self.dir.root / "tensorboard", first_step=self.done.step)
        self._began = time.monotonic() - self.done.seconds

    def run(self) -> RunResult:
        """Train until the budget is used, evaluate, and write the result.

        Ctrl-C abandons a rollout or evaluation, or finishes an update, then saves a checkpoint;
        the same call goes on from there.

        Raises:
            KeyboardInterrupt: After the checkpoint was saved.
            EngineFault: The engine broke; after the checkpoint was saved.
            LossNotFiniteError: The loss is nan or infinite; the last checkpoint stays.
        """
        try:
            with agreed_stops(self.ranks) as check, self.report.bar("training") as bar:
                self._remember_first()
                self._until_done(bar, check)
        except (KeyboardInterrupt, EngineFault) as fault:
            if isinstance(fault, EngineFault) and not self.ranks.alone:
                raise  # the other processes are not there to save with
            self._save(wait=False)
            self._draw()
            why = "interrupted" if isinstance(fault, KeyboardInterrupt) else "the engine broke"
            self.report.note(
                f"{why}; step {self.done.step} is saved in {self.dir.root}: the same call goes on "
                "from there"
            )
            raise
        self.done.seconds = self._elapsed()
        rows = read_metrics(self.dir.metrics_path)
        result = result_of(self.config, self.digests, self.done, rows, self.sets)
        result.write(self.dir.root / "result.json")
        return result

    def close(self) -> None:
        """Free the run directory."""
        self.stage.close()
        self.board.close()
        self.dir.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ the loop

    def _until_done(self, bar: Bar, check_stop: Callable[[], None]) -> None:
        saved = self.done.step
        while True:
            check_stop()
            over = self._spent() >= 1.0
            if self._evaluation_due(over):
                self._evaluate()
            if over or self.done.step >= saved + self.config.checkpoint_every:
                with held_interrupts():
                    saved = self._save()
            if over:
                self._draw()
                return
            row = self.train_step()
            bar.update(
                self._spent(),
                f"step {self.done.step}, return {row.get('rollout/return_mean', 0.0):.3f}, "
                f"success {row.get('rollout/success_frac', 0.0):.0%}",
            )

    def train_step(self) -> dict[str, float]:
        """One step; returns its metrics. An interrupt leaves it done or not begun."""
        step = self.done.step + 1
        clock = Clock()
        taken = self.stage.take(step, self.config.budget.steps)
        played = taken.played
        with held_interrupts():
            clock.lap("wait")
            if taken.told:
                self.report.note(taken.told)
            row = rollout_metrics(played.all) | lag_metrics(played.all, self.done.step)
            row |= played.metrics() | {"engine/prefix_hit_frac": taken.stats.prefix_hit_frac}
            learned, kept = self._learn(played.kept, clock)
            row |= learned
            if not self.config.recipe.rollout.samples:
                row = {key: value for key, value in row.items() if key not in OF_SAMPLING}
            laps = {**taken.seconds, **clock.laps}
            row["time/rollout_tokens_per_s"] = tokens_sampled(played.all) / laps["rollout"]
            self.done.step = step
            self.done.optimizer_steps = self.learner.optimizer_steps
            self.done.tokens += tokens_sampled(played.all)
            self.done.turns += turns_taken(played.all)
            self.done.paths += len(played.kept.paths)
            row |= {
                "budget/tokens": float(self.done.tokens),
                "budget/turns": float(self.done.turns),
                "budget/paths": float(self.done.paths),
            }
            row |= {f"time/{name}_s": seconds for name, seconds in laps.items()}
            row["time/step_s"] = clock.total()
            self._log(row)
            if step == 1 or step % self.config.checkpoint_every == 0:
                folder, now = self.dir.root / "trajectories", replace(kept, step=step)
                how = self.learner, self.renderer, self.tokenizer
                write_rollouts(folder, self.config, played.all, now, *how)
        return row

    async def _play(self, step: int) -> Rollouts:
        before = self.engine.stats
        recipe = self.config.recipe
        player = self._player()
        if self.memory is not None:
            starts = self.memory.starts(step, recipe.groups_per_step)
            played = Played.whole(await play_groups(recipe.rollout, player, starts))
        else:
            seed, at = self.config.seed, (recipe.groups_per_step, self.config.split, self.order)
            played = await play_step(
                recipe, player, lambda extra: step_starts(seed, step, *at, extra)
            )
        told = told_faults(step, played.all, player.fault)
        return Rollouts(played=played, told=told, stats=self.engine.stats - before)

    def _learn(self, forest: Forest, clock: Clock) -> tuple[dict[str, float], Kept]:
        recipe = self.config.recipe
        shaped = shaped_by_first(recipe.shapers, forest, self.ranks.learner)
        notes: dict[str, list[Floats]] = {}
        for annotate in recipe.used_annotators:
            notes |= annotate(shaped, self.learner)
        if self.memory is not None:
            notes |= self.memory.notes(shaped)
        credits = recipe.credit(shaped, notes)
        row = {f"credit/{name}": float(value) for name, value in credits.metrics.items()}
        if (cap := self.config.importance_cap) is not None:
            if "old_logprobs" not in notes:
                notes["old_logprobs"] = self.learner.logprobs(shaped)
            credits, weights = weighed(credits, shaped, notes["old_logprobs"], cap)
            row |= weights
        clock.lap("credit")
        if recipe.shapers:
            row |= shaped_metrics(shaped)
        row |= self.learner.update(shaped, notes, credits)
        if self.memory is not None:
            learned = self.memory.learn(shaped, self.learner)
            row |= {f"tracker/{name}": value for name, value in learned.items()}
        clock.lap("update")
        self.stage.hand_over(self.done.step + 1, self.learner.whole_policy())
        return row, first_groups(shaped, notes, credits, self.config.keep_rollouts)

    def _remember_first(self) -> None:
        """Play what the recipe's tracker wants to know before the first step."""
        if self.memory is None or self.done.tokens or not self.memory.first_episodes:
            return
        player = self._player()
        with self.report.bar("playing first episodes") as bar:
            memory = self.memory
            paid = self.stage.call(lambda: play_first(player, memory, bar.update))
        # Paid at the end and at once: what was interrupted before is played again.
        self.done.tokens, self.done.turns = paid

    def _player(self, what: EvalSet | None = None) -> Player:
        return make_player(self.config, self.engine, self.renderer, self.env, what, self.ranks)

    # ------------------------------------------------------------------ evaluation

    def _evaluation_due(self, over: bool) -> bool:
        if not self.sets or self.done.evaluated_step == self.done.step:
            return False
        every = self.config.eval_every
        return over or self.done.step == 0 or (every > 0 and self.done.step % every == 0)

    def _evaluate(self) -> None:
        clock = Clock()
        row: dict[str, float] = {}
        evaluations = [self._evaluate_one(what) for what in self.sets]
        with held_interrupts():
            clock.lap("eval")
            for evaluation in evaluations:
                row |= evaluation.rows()
                stem = f"step-{self.done.step:06d}-{evaluation.name}.txt"
                path = self.dir.root / "trajectories" / stem
                write_evaluation(path, evaluation, self.renderer, self.config.transcripts)
                self.report.note(evaluation.told(self.done.step))
            row |= {"budget/tokens": self.done.tokens, "budget/turns": self.done.turns}
            row["time/eval_s"] = clock.laps["eval"]
            self.done.evaluated_step = self.done.step
            self._log(row)

    def _evaluate_one(self, what: EvalSet) -> Evaluation:
        player = self._player(what)
        with self.report.bar(f"evaluating {what.name}") as bar:

            def tell(n: int) -> None:
                bar.update(n / len(what.tasks), f"{n} of {len(what.tasks)}")

            return self.stage.call(lambda: evaluate_model(player, what, tell))

    # ------------------------------------------------------------------ the run directory

    def _take_up(self) -> Progress:
        newest = newest_whole(self.dir.checkpoints)
        if newest is None:
            done = Progress()
        else:
            done = load_checkpoint(newest, self.learner)
            if self.memory is not None:
                self.memory.load(load_memory(newest))
            self.engine.sync(self.learner.whole_policy(), done.step)
            self.report.note(f"going on from step {done.step} in {self.dir.root}")
        self.dir.rewind_metrics(done.metrics_bytes)
        ids = sorted({self.config.env.id, *(e.env.id for e in self.config.evals)})
        add_version(self.dir.root, versions(ids, done.step))
        return done

    def _make_stage(self) -> Stage:
        """Takes up what was played ahead."""
        if self.config.max_lag is None:
            return InTurn(self._play, self.engine)
        ready = load_ahead(self.dir.root / "ahead", self.done.step)
        return Ahead(self._play, self.engine, self.config.max_lag, ready)

    def _save(self, *, wait: bool = True) -> int:
        ahead = self.stage.ahead(wait=wait)
        with held_interrupts():
            save_ahead(self.dir.root / "ahead", ahead)
            self.done.seconds = self._elapsed()
            self.done.metrics_bytes = self.dir.metrics_size()
            memory = None if self.memory is None else self.memory.state()
            what = self.learner, self.tokenizer, self.done, self.config.keep, memory
            save_checkpoint(self.dir.checkpoints, *what)
        return self.done.step

    def _log(self, row: dict[str, float]) -> None:
        row = checked({**row, "time/elapsed_s": self._elapsed()})
        self.dir.append(self.done.step, row)
        self.board.add(self.done.step, row)

    def _draw(self) -> None:
        title = f"{self.config.recipe.name} on {self.config.env.id}"
        draw_curve(read_metrics(self.dir.metrics_path), self.dir.root / "curve.png", title)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _spent(self) -> float:
        used = self.done.step, self.done.tokens, self.done.turns, self._elapsed()
        return self.ranks.learner.from_first(self.config.budget.spent(*used))
