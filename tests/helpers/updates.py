"""What one whole update of a recipe does to a small model, on fixed forests."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import text_env
from turngym.algos.core.filters import DynamicSampling
from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.core.protocols import Floats, Rollout, Tracker
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts.task_order import step_starts
from turngym.algos.rollouts.value_tracker import BetaTracker
from turngym.algos.runs.process_group import Ranks
from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.engines import make_engine, make_runner
from turngym.algos.training.policy import load_policy

LITTLE = BlankSettings(hidden=16, layers=1, inner=16, episodes=10)
NOISE = 0.05
GROUPS = 16
AFTER_WARM_UP: Mapping[str, Any] = {
    # a rate at which a blank model moves about as far as the starter does at the recipes' own
    "optim.lr": 2e-3,
    "optim.warmup_steps": 0,
    "optim.critic_only_steps": 0,
}


@dataclass
class UpdateLab:
    """A policy that has left its reference, and forests that it has played.

    Attributes:
        config: The set-up.
        start: The reference: the policy as it was.
        policy: As it is now.
        forests: By rollout; groups with something to compare alone.
    """

    config: TrainConfig
    start: Any
    policy: Any
    tokenizer: Any
    forests: dict[str, Forest] = field(default_factory=dict)

    @classmethod
    def on(cls, env_id: str, folder: Path) -> UpdateLab:
        """Make the model and let it drift from where it was."""
        env = EnvConfig(id=env_id, settings={"size": "micro"})
        blank_model(env.make(), folder, LITTLE)
        config = TrainConfig(
            env=env,
            model=str(folder),
            recipe=make_recipe("grpo", small=True),
            budget=Budget(steps=1),
            max_tokens=3,
            engine_dtype="float32",
            device="cpu",
            learner=LearnerSettings(precision="float32"),
        )
        start, tokenizer = load_policy(config, Silent())
        policy = copy.deepcopy(start)
        _drift(policy)
        return cls(config, start, policy, tokenizer)

    def forest(self, rollout: Rollout) -> Forest:
        """Return the rollout's forest, played once."""
        key = repr(rollout)
        if key not in self.forests:
            engine = make_engine(self.config, self.policy, self.tokenizer)
            env = self.config.env.prototype
            renderer = make_renderer(self.tokenizer, tools=text_env(env).tools)
            runner = make_runner(self.config, engine, renderer, env, None, Ranks())
            runner.record_states = True
            starts = step_starts(0, 1, 2 * GROUPS, "train", 100)
            groups = asyncio.run(runner.groups(rollout, starts))
            keeps = DynamicSampling().keeps
            told = [g for g in groups if keeps(Forest.of([g]).returns())]
            self.forests[key] = Forest.of([_judged(group) for group in told[:GROUPS]])
        return self.forests[key]

    def change(self, recipe: Recipe, forest: Forest) -> Tensor:
        """Return the change of all weights by one whole update, in one row."""
        learner = Learner(copy.deepcopy(self.start), recipe, pad_id=0, settings=self.config.learner)
        learner.policy.load_state_dict(self.policy.state_dict())
        if learner.critic is not None:  # a new one says 0, which is no critic
            _drift(learner.critic)
        for shape in recipe.shapers:
            forest = shape(forest)
        annotations: dict[str, list[Floats]] = {}
        for annotate in recipe.used_annotators:
            annotations |= annotate(forest, learner)
        if recipe.tracker is not None:
            annotations |= _tracked(recipe.tracker, forest)
        before = _flat(learner.policy)
        learner.update(forest, annotations, recipe.credit(forest, annotations))
        return _flat(learner.policy) - before


@torch.no_grad()
def _drift(model: Any) -> None:
    noise = torch.Generator().manual_seed(0)
    for p in model.parameters():
        p += NOISE * torch.randn(p.shape, generator=noise)


def _judged(group: Group) -> Group:
    """Return the group with verdicts, answers and demonstrations that say more than outcomes."""
    trees = []
    for number, tree in enumerate(group.trees):
        made = Tree()
        for place, turn in enumerate(tree.turns):
            verdict = (1, 0, -1, 1, 0)[(3 * number + place) % 5]
            first = tree.turns[tree.chain(place)[0]].obs_ids
            hinted = np.concatenate([turn.act_ids[:1] % 5 + 4, first])
            gold = (turn.act_ids[:1] % 7 + 4,)
            made.add(dataclasses.replace(turn, verdict=verdict, gold=gold, hinted_prompt=hinted))
        trees.append(made)
    return dataclasses.replace(group, trees=trees)


def _tracked(tracker: Tracker, forest: Forest) -> dict[str, list[Floats]]:
    """Return what a tracker expects that has seen other episodes of the tasks."""
    memory: Any = tracker.start(0, "train", 100, (0.0, 1.0))
    if isinstance(tracker, BetaTracker):
        memory.beliefs = {task: (1.0 + task % 4, 4.0) for task in range(100)}
    elif "earlier_returns" in tracker.provides:
        memory.returns = {group.task_id: [0.0, 1.0, 1.0] for group in forest.groups}
    return memory.annotations(forest)


def _flat(model: Any) -> Tensor:
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def cosine(one: Tensor, two: Tensor) -> float:
    return float(one @ two / (one.norm() * two.norm()))
