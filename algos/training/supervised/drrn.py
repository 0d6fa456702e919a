"""DRRN: Q-learning over legal actions with a softmax policy and a replay memory.

He et al. 2016, "Deep Reinforcement Learning with a Natural Language Action Space" (arXiv
1511.04636), in the form of the baselines of Jericho and ScienceWorld: replay memory with a share
for rewarded transitions, Huber loss on the temporal difference, no second network for targets.

Differs from those baselines: a state is the first observation, the latest one and the latest
actions, so that any environment will do; words are hashed; the softmax cools down; an episode that
the turn limit ends is no end for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch

from ....agents.drrn.features import StateActions, TextTable
from ....agents.drrn.memory import ReplayMemory, Transition
from ....agents.drrn.network import DrrnNetwork
from ....agents.drrn.policy import EpisodeReader, choose
from ....agents.drrn.settings import DrrnSettings, DrrnTraining
from ....agents.models.usual_torch import usual_torch
from ....agents.scripted import text_env
from ....envs import fork


class DrrnProgress(NamedTuple):
    """The progress of training.

    Attributes:
        steps: Actions taken.
        episodes: Episodes that ended.
        recent: Mean return of the latest 100 of them.
    """

    steps: int
    episodes: int
    recent: float


OnProgress = Callable[[DrrnProgress], None]


class _Slot:
    """One environment with its current episode."""

    def __init__(
        self, env: gym.Env[Any, Any], reading: EpisodeReader, seed: int, options: Mapping[str, Any]
    ) -> None:
        self.env, self.reading = env, reading
        self._options = dict(options)
        self.situation = self._begin(seed)

    def _begin(self, seed: int | None) -> StateActions:
        self.total = 0.0
        first, _ = self.env.reset(seed=seed, options=self._options)
        self.reading.begin(first)
        return self.reading.look(text_env(self.env), first)

    def take(self, place: int) -> tuple[Transition, float | None]:
        """Take an action: what happened, and the return where the episode is over."""
        texts, actions = self.situation
        taken = StateActions(texts, actions[place : place + 1])
        observation, reward, terminated, truncated, _ = self.env.step(self.reading.take(place))
        self.total += float(reward)
        after = None
        if not terminated:
            after = self.situation = self.reading.look(text_env(self.env), observation)
        transition = Transition(taken, float(reward), after)
        if not (terminated or truncated):
            return transition, None
        total = self.total
        self.situation = self._begin(None)
        return transition, total


@usual_torch()
def train_drrn(
    env: gym.Env[Any, Any],
    settings: DrrnSettings,
    training: DrrnTraining,
    split: str = "train",
    on_progress: OnProgress = lambda _: None,
) -> DrrnNetwork:
    """Train a network on the tasks of a split.

    Args:
        env: The environment; copies of it are played.
        settings: The network's shape.
        training: How it is trained.
        split: Where tasks are drawn from.
        on_progress: Called after each round of actions.

    Raises:
        BadValueError: The environment cannot list legal actions.
    """
    seeds, draws, choices = np.random.SeedSequence(training.seed).spawn(3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        network = DrrnNetwork(settings)
    book, memory = network.book(), ReplayMemory(training.memory, training.priority)
    slots = [
        _Slot(fork(env), EpisodeReader(book, settings.history), int(seed), {"split": split})
        for seed in seeds.generate_state(training.envs)
    ]
    rng, pick = np.random.default_rng(draws), np.random.default_rng(choices)
    optimizer = torch.optim.Adam(network.parameters(), lr=training.lr)
    returns: list[float] = []
    taken = 0
    while taken < training.steps:
        warmth = _temperature(training, taken / training.steps)
        places = choose(network, book, [slot.situation for slot in slots], warmth, pick)
        for slot, place in zip(slots, places, strict=True):
            transition, total = slot.take(place)
            memory.add(transition)
            returns += [] if total is None else [total]
        taken += len(slots)
        if len(memory) >= training.batch:
            _learn(network, book, memory.draw(training.batch, rng), optimizer, training)
        recent = returns[-100:]
        on_progress(DrrnProgress(taken, len(returns), sum(recent) / max(1, len(recent))))
    return network.eval()


def _temperature(training: DrrnTraining, share: float) -> float:
    ratio = training.final_temperature / training.temperature
    return training.temperature * ratio**share


def _learn(
    network: DrrnNetwork,
    book: TextTable,
    batch: list[Transition],
    optimizer: torch.optim.Optimizer,
    training: DrrnTraining,
) -> float:
    """Take one update; return the loss."""
    targets = torch.tensor([t.reward for t in batch])
    open_ones = [at for at, t in enumerate(batch) if t.after is not None]
    if open_ones and training.gamma:
        with torch.no_grad():
            following = network(book, [t.after for t in batch if t.after is not None])
        best = torch.stack([values.max() for values in following])
        targets[open_ones] += training.gamma * best
    values = torch.cat(network(book, [t.before for t in batch]))
    loss = torch.nn.functional.smooth_l1_loss(values, targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), training.max_norm)
    optimizer.step()
    return loss.item()
