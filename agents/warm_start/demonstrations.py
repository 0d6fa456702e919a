"""Demonstrations: dialogues of an environment's scripted expert, as text and as token ids."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import BadValueError, EnvFault
from ...envs.core.registration import load_expert
from ..rendering.factory import Renderer
from ..scripted import closed, scripted

EXPERT = "expert"
ORACLE = 0.2
"""An expert of whose dialogues no model could reproduce this share is no teacher."""
NO_HABITS: Mapping[str, Any] = MappingProxyType({})


class Exchange(NamedTuple):
    """One turn of a demonstration: what was shown, and the action that answered it."""

    observation: str
    action: str


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One context's dialogue, rendered.

    Attributes:
        ids: Token ids ``[n]``.
        acted: True at the tokens of actions ``[n]``: what is learned.
    """

    ids: list[int]
    acted: list[bool]


class Demonstrator:
    """An endless, reproducible source of an environment's demonstrations.

    Args:
        env: The environment; it must have a scripted expert.
        split: Split of the tasks.
        seed: Of the tasks drawn and of the expert's mistakes.
        mistakes: Share of mistakes, as :meth:`TextEnv.expert` understands it.
        policy: ``"expert"``, or a baseline of the environment, which makes no mistakes.
        habits: Further arguments of the class that the environment's registry row names as its
            expert, such as ``haste`` in SearchQA.

    Raises:
        UnknownNameError: The environment has no such baseline.
        BadValueError: The expert has no such habit.
    """

    def __init__(
        self,
        env: TextEnv[Any, Any],
        split: str,
        seed: int,
        mistakes: float = 0.0,
        policy: str = EXPERT,
        habits: Mapping[str, Any] = NO_HABITS,
    ) -> None:
        self._env = env
        self._split = split
        self._seed = seed
        self._shown = 0
        if policy != EXPERT:
            self._player = scripted(policy, seed, env)
        elif habits:
            self._player = _expert_with(env, habits, mistakes, seed)
        else:
            self._player = env.expert(mistakes, seed)

    def dialogues(self) -> list[list[Exchange]]:
        """Play the next episode; one dialogue per session of it, the first session first.

        Raises:
            BadValueError: The environment broke while the expert played.
        """
        sequence = np.random.SeedSequence([self._seed, self._shown])
        self._shown += 1
        seed = int(sequence.generate_state(1)[0])
        options = {"split": self._split}
        try:
            observation, info = self._env.reset(seed=seed, options=options)
        except EnvFault as fault:
            raise BadValueError(
                f"{self._env.name}: the environment broke at reset({seed=}, {options=}) while it "
                f"was shown: {fault}"
            ) from fault
        sessions: dict[int, list[Exchange]] = {}
        over = False
        while not over:
            try:
                action = closed(self._player(self._env, observation, info), self._env.stop)
                sessions.setdefault(info["session"], []).append(Exchange(observation, action))
                observation, _, terminated, truncated, info = self._env.step(action)
            except Exception as error:  # of its own code: nobody could find it again
                error.add_note(
                    f"{self._env.name}, task {info['task_id']}, episode seed {seed}, turn "
                    f"{info['turn'] + 1}, while its expert played"
                )
                raise
            over = terminated or truncated
        if info["status"] == "env_error":
            raise BadValueError(
                f"{self._env.name}: the environment broke in task {info['task_id']} while it was "
                f"shown: {observation}"
            )
        return [sessions[number] for number in sorted(sessions)]

    def texts(self, n: int) -> list[str]:
        """``n`` whole dialogues as text, instructions included."""
        return self.written(self.take(n))

    def written(self, talks: Sequence[Sequence[Exchange]]) -> list[str]:
        """Dialogues as text, instructions included."""
        return [self._env.instructions + "".join(o + a for o, a in talk) for talk in talks]

    def demonstrations(self, n: int, renderer: Renderer) -> list[Demonstration]:
        """``n`` dialogues, tokenised exactly as a rollout would."""
        rules, stop = self._env.instructions, tuple(self._env.stop)
        return [render(talk, rules, stop, renderer) for talk in self.take(n)]

    def take(self, n: int) -> list[list[Exchange]]:
        """The next ``n`` dialogues."""
        talks: list[list[Exchange]] = []
        while len(talks) < n:
            talks += self.dialogues()
        return talks[:n]


def refuse_oracle(talks: Sequence[Sequence[Exchange]], least: float, name: str) -> None:
    """Refuse demonstrations that nobody could imitate, since they follow from what is not shown.

    Where the same transcript is continued by different actions, a model reproduces at most the most
    frequent one. That bounds the share of dialogues that any model could reproduce.

    Args:
        talks: Demonstrations.
        least: The bound below which they are refused; never below :data:`ORACLE`.
        name: The environment, for the message.

    Raises:
        BadValueError: At most a smaller share can be reproduced.
    """
    actions: dict[int, Counter[str]] = {}
    places: list[list[tuple[int, str]]] = []
    for talk in talks:
        shown, at = 0, []
        for observation, action in talk:
            shown = hash((shown, observation))
            actions.setdefault(shown, Counter())[action] += 1
            at.append((shown, action))
            shown = hash((shown, action))
        places.append(at)
    usual = {shown: counts.most_common(1)[0][0] for shown, counts in actions.items()}
    lost = [next((n for n, (s, a) in enumerate(at) if a != usual[s]), None) for at in places]
    share = sum(turn is None for turn in lost) / max(1, len(talks))
    if share >= max(least, ORACLE):
        return
    one, turn = next((at, turn) for at, turn in zip(places, lost, strict=True) if turn is not None)
    shown, action = one[turn]
    raise BadValueError(
        f"{name}: its expert cannot be imitated. It acts on what nobody is shown: in "
        f"{len(talks)} episodes the same transcript is continued in different ways, as with "
        f"{usual[shown].strip()!r} and {action.strip()!r} in turn {turn + 1}, so that a model "
        f"reproduces at most {share:.0%} of them. Write an expert that decides by the transcript, "
        "or name a baseline that does, as WarmStart(starter={'reader': ...}); or start from "
        "random weights: --starter blank."
    )


def _expert_with(
    env: TextEnv[Any, Any], habits: Mapping[str, Any], mistakes: float, seed: int
) -> Policy:
    make = load_expert(type(env))
    known = set() if make is None else set(inspect.signature(make).parameters)
    if unknown := sorted(habits.keys() - (known - {"mistakes", "seed"})):
        known_words = ", ".join(sorted(known - {"mistakes", "seed"})) or "none"
        raise BadValueError(
            f"starter: the expert of {env.name} has no habit {unknown[0]!r}; expected one of: "
            f"{known_words}."
        )
    assert make is not None  # it would have no habits
    return make(mistakes=mistakes, seed=seed, **habits)


def render(
    talk: Sequence[Exchange], instructions: str, stop: tuple[str, ...], renderer: Renderer
) -> Demonstration:
    """Token ids of a dialogue; an action that no stop string ends is followed by end of text."""
    ids: list[int] = []
    acted: list[bool] = []
    wrote: list[int] = []
    for observation, action in talk:
        if ids:
            seen = renderer.observe(observation, wrote)
        else:
            seen = renderer.open(instructions, observation)
        wrote = renderer.write_ended(action, stop)
        ids += seen + wrote
        acted += [False] * len(seen) + [True] * len(wrote)
    return Demonstration(ids, acted)
