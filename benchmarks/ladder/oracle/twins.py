"""Tabular twins of the ladder's environments, stepped for many episodes at once.

A twin keeps the rules of its environment and drops its texts: a state is a row of integers, and
the policy sees the number of a context. Letters are exchangeable, so letter 0 is the right one
wherever one is right; only the start has to be uniform.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Moves(NamedTuple):
    """What one action did in each of ``n`` episodes.

    Attributes:
        states: The states after it ``[n, k]``.
        reward: Rewards ``[n]``.
        done: Whether the episode ended ``[n]``.
        verdict: The judge's view of the turn, +1, 0 or -1 ``[n]``.
        spawned: Context in which a session that was asked for will open, -1 for none ``[n]``.
        closed: Whether the session ended with this action ``[n]``.
    """

    states: Ints
    reward: Doubles
    done: Bools
    verdict: Ints
    spawned: Ints
    closed: Bools

    @classmethod
    def plain(
        cls, states: Ints, reward: Doubles, done: Bools, verdict: Ints | None = None
    ) -> Moves:
        """Return moves in a twin without sessions."""
        n = len(states)
        judged = np.zeros(n, dtype=np.int64) if verdict is None else verdict
        return cls(states, reward, done, judged, np.full(n, -1), np.zeros(n, dtype=bool))


@dataclass(frozen=True, kw_only=True)
class Twin(ABC):
    """A tabular environment of many episodes.

    Attributes:
        horizon: Maximum turns of an episode.
        letters: Number of actions.
        contexts: Number of rows of the policy's table.
        fields: Integers of a state.
    """

    fields: ClassVar[int] = 1

    @property
    @abstractmethod
    def horizon(self) -> int: ...  # noqa: D102
    @property
    @abstractmethod
    def contexts(self) -> int: ...  # noqa: D102
    @property
    def letters(self) -> int:  # noqa: D102
        return 3

    def bias(self) -> Doubles:
        """Return the logits of the start ``[contexts, letters]``; uniform unless overridden."""
        return np.zeros((self.contexts, self.letters))

    def draw_tasks(self, rng: np.random.Generator, n: int) -> Doubles:
        """Draw what the episodes of one prompt share ``[n, m]``."""
        del rng
        return np.zeros((n, 1))

    def begin(self, tasks: Doubles) -> Ints:
        """Return the first states ``[n, fields]`` of episodes with these tasks ``[n, m]``."""
        return np.zeros((len(tasks), self.fields), dtype=np.int64)

    def context(self, states: Ints, tasks: Doubles) -> Ints:
        """Return the rows of the policy's table ``[n]``."""
        del tasks
        return states[:, 0]

    def observed(self, states: Ints, tasks: Doubles) -> Ints:
        """Return what the present observation alone tells ``[n]``, as rows of the table."""
        return self.context(states, tasks)

    @abstractmethod
    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Take one action in each of ``n`` episodes."""

    @abstractmethod
    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return the family's measure of ended episodes ``[n]``, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Doors(Twin):
    """Doors in a row behind free letters: Lottery, Noise, Judge and Rare.

    Attributes:
        doors: Letters with a right answer each.
        free: Letters before them that only decide the lottery.
        luck: Share of the reward that the lottery is.
        noise: Deviation of normal noise on the reward.
        all_or_nothing: Reward only when every door is right, in place of the share.
        judged: Whether a verdict is given at each door.
    """

    doors: int
    free: int = 0
    luck: float = 0.0
    noise: float = 0.0
    all_or_nothing: bool = False
    judged: bool = False
    fields: ClassVar[int] = 3  # turn, right letters, code of the free letters

    @property
    def horizon(self) -> int:
        """Return the number of letters."""
        return self.free + self.doors

    @property
    def contexts(self) -> int:
        """Return the number of letters: the position is the context."""
        return self.horizon

    def draw_tasks(self, rng: np.random.Generator, n: int) -> Doubles:
        """Draw the worth of every way to choose the free letters."""
        return rng.random((n, self.letters**self.free))

    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Write a letter."""
        after = states.copy()
        at_door = states[:, 0] >= self.free
        right = (actions == 0) & at_door
        after[:, 0] += 1
        after[:, 1] += right
        after[:, 2] = np.where(at_door, states[:, 2], states[:, 2] * self.letters + actions)
        done = after[:, 0] == self.horizon
        reward = np.zeros(len(states))
        if done.any():
            lottery = np.take_along_axis(tasks, after[:, 2:3], 1)[:, 0]
            share = self.measure(after, tasks)
            gained = (1 - self.luck) * share + self.luck * lottery
            if self.noise:
                gained = gained + self.noise * rng.standard_normal(len(states))
            reward = np.where(done, gained, 0.0)
        verdict = np.where(at_door & self.judged, np.where(right, 1, -1), 0)
        return Moves.plain(after, reward, done, verdict)

    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return the share of right letters, or whether all are right."""
        del tasks
        share = states[:, 1] / self.doors
        return np.floor(share + 1e-9) if self.all_or_nothing else share


@dataclass(frozen=True, kw_only=True)
class Corridor(Twin):
    """The first letter decides, by the sign shown; ``delay`` turns without effect follow.

    Attributes:
        delay: Turns between the choice and its reward.
        signs: Number of signs.
    """

    delay: int
    signs: int = 3
    fields: ClassVar[int] = 3  # turn, sign, right

    @property
    def horizon(self) -> int:
        """Return the number of turns."""
        return 1 + self.delay

    @property
    def contexts(self) -> int:
        """Return a context per sign, then one per turn of the corridor."""
        return self.signs + self.delay

    def draw_tasks(self, rng: np.random.Generator, n: int) -> Doubles:
        """Draw the signs."""
        return rng.integers(self.signs, size=(n, 1)).astype(np.float64)

    def begin(self, tasks: Doubles) -> Ints:
        """Stand before the sign."""
        states = super().begin(tasks)
        states[:, 1] = tasks[:, 0]
        return states

    def context(self, states: Ints, tasks: Doubles) -> Ints:
        """Return the sign, or the place in the corridor."""
        del tasks
        return np.where(states[:, 0] == 0, states[:, 1], self.signs + states[:, 0] - 1)

    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Choose, or walk on."""
        del tasks, rng
        after = states.copy()
        after[:, 2] = np.where(states[:, 0] == 0, actions == 0, states[:, 2])
        after[:, 0] += 1
        done = after[:, 0] == self.horizon
        return Moves.plain(after, np.where(done, after[:, 2], 0).astype(np.float64), done)

    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return whether the choice was right."""
        del tasks
        return states[:, 2].astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Rooms(Twin):
    """Rooms in a row: letter 0 leads on, 1 back, 2 nowhere or into a dead end.

    Attributes:
        rooms: Rooms to pass.
        dead_ends: Letter 2 leads into a dead end, from which any letter returns.
        fatal: A wrong letter ends the episode (the control without revisits).
        aliases: Neighbouring rooms that look the same.
    """

    rooms: int
    dead_ends: bool = True
    fatal: bool = False
    aliases: int = 1
    fields: ClassVar[int] = 3  # room, in the dead end, turns

    @property
    def horizon(self) -> int:
        """Return the turn limit."""
        return 3 * self.rooms

    @property
    def contexts(self) -> int:
        """Return a context per room and one per dead end."""
        return 2 * self.rooms

    def context(self, states: Ints, tasks: Doubles) -> Ints:
        """Return the true room, which the whole history tells."""
        del tasks
        return np.minimum(states[:, 0], self.rooms - 1) + self.rooms * states[:, 1]

    def observed(self, states: Ints, tasks: Doubles) -> Ints:
        """Return the first of the rooms that look like this one."""
        room = self.context(states, tasks)
        return room - (room % self.rooms) % self.aliases

    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Take a door."""
        del tasks, rng
        after = states.copy()
        lost = states[:, 1] == 1
        on = ~lost & (actions == 0)
        into = ~lost & (actions == 2) & self.dead_ends & (not self.fatal)
        back = ~lost & (actions == 1) & (not self.fatal)
        after[:, 0] = np.where(back, np.maximum(states[:, 0] - 1, 0), states[:, 0] + on)
        after[:, 1] = into
        after[:, 2] += 1
        reached = after[:, 0] == self.rooms
        done = reached | (after[:, 2] == self.horizon) | (~on & self.fatal)
        verdict = np.where(on, 1, np.where(lost, 0, -1))
        return Moves.plain(after, reached.astype(np.float64), done, verdict)

    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return whether the last room was reached."""
        del tasks
        return (states[:, 0] == self.rooms).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Fog(Twin):
    """A hidden letter, looks that may lie, and an answer that ends the episode.

    Attributes:
        fog: Probability that a look shows another letter.
        looks: Looks allowed; each costs 0.02.
    """

    fog: float
    looks: int = 3
    cost: float = 0.02
    fields: ClassVar[int] = 6  # counts of the three letters, looks, named, right

    @property
    def horizon(self) -> int:
        """Return the turn limit."""
        return self.looks + 1

    @property
    def letters(self) -> int:
        """Return the three letters and the look."""
        return 4

    @property
    def contexts(self) -> int:
        """Return a context per way to have seen letters."""
        return (self.looks + 1) ** 3

    def draw_tasks(self, rng: np.random.Generator, n: int) -> Doubles:
        """Draw the hidden letters."""
        return rng.integers(3, size=(n, 1)).astype(np.float64)

    def context(self, states: Ints, tasks: Doubles) -> Ints:
        """Return the counts as one number."""
        del tasks
        base = self.looks + 1
        return states[:, 0] + base * states[:, 1] + base * base * states[:, 2]

    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Look, or name a letter; a look too many ends the episode without an answer."""
        after = states.copy()
        n, hidden = len(states), tasks[:, 0].astype(np.int64)
        look = actions == 3
        lies = rng.random(n) < self.fog
        shown = np.where(lies, (hidden + rng.integers(1, 3, size=n)) % 3, hidden)
        allowed = look & (states[:, 3] < self.looks)
        after[np.flatnonzero(allowed), shown[allowed]] += 1
        after[:, 3] += look
        after[:, 4] = ~look
        after[:, 5] = ~look & (actions == hidden)
        done = ~look | (after[:, 3] > self.looks)
        return Moves.plain(after, after[:, 5] - self.cost * allowed, done)

    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return whether the right letter was named."""
        del tasks
        return states[:, 5].astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Boxes(Twin):
    """Sessions that ask for boxes, each opened in a session of its own, first come first served.

    Letters that lead to a coin are exchangeable, and so are the others; the actions are therefore
    0 ask for a wanted box, 1 ask for another, 2 take, 3 stop, and the start gives each the mass of
    its letters.

    Attributes:
        boxes: Letters of boxes.
        forced: Every box of the start is opened without being asked for.
        deep: The box with a coin inside one of them is, too (with ``forced`` the control).
        inner_share: Probability that one of the boxes holds a box with a coin.
    """

    boxes: int = 3
    forced: bool = False
    deep: bool = False
    cost: float = 0.02
    inner_share: float = 0.75
    queue: int = field(default=32)
    fields: ClassVar[int] = 40  # see _HERE
    _HERE: ClassVar[int] = 8
    """Fields: depth, coin, wanted, others asked, acted, taken, head, tail; then the queue, each
    entry ``depth * 100 + coin * 10 + wanted``."""

    @property
    def horizon(self) -> int:
        """Return the turn limit."""
        return 20 if self.boxes <= 3 else 40

    @property
    def letters(self) -> int:
        """Return the kinds of letters."""
        return 4

    @property
    def contexts(self) -> int:
        """Return a context per depth, coin and number of wanted boxes."""
        return 18

    def bias(self) -> Doubles:
        """Return logits that give every letter of the environment the same probability."""
        logits = np.zeros((3, 2, 3, 4))
        for wanted in range(3):
            logits[:, :, wanted, 0] = np.log(wanted) if wanted else -20.0
            others = self.boxes - wanted
            logits[:, :, wanted, 1] = np.log(others) if others > 0 else -20.0
        return logits.reshape(18, 4)

    def draw_tasks(self, rng: np.random.Generator, n: int) -> Doubles:
        """Draw the number of boxes with a coin, and whether one holds another."""
        outer = rng.integers(1, 3, size=n)
        return np.stack([outer, rng.random(n) < self.inner_share], 1).astype(np.float64)

    def begin(self, tasks: Doubles) -> Ints:
        """Return the start; with ``forced`` the boxes already wait."""
        states = super().begin(tasks)
        states[:, 2] = tasks[:, 0]
        if self.forced:
            rows = np.arange(len(tasks))
            for box in range(self.boxes):
                good = box < tasks[:, 0]
                inner = (box == 0) & (tasks[:, 1] > 0) & (not self.deep)
                states[rows, self._HERE + box] = 100 + 10 * good + inner
            states[:, 7] = self.boxes
            states[:, 2] = 0
            if self.deep:
                states[rows, self._HERE + self.boxes] = 210 * (tasks[:, 1] > 0)
                states[:, 7] += tasks[:, 1] > 0
        return states

    def context(self, states: Ints, tasks: Doubles) -> Ints:
        """Return depth, coin and wanted boxes as one number."""
        del tasks
        return _box_context(states[:, 0], states[:, 1], states[:, 2])

    def step(self, states: Ints, actions: Ints, tasks: Doubles, rng: np.random.Generator) -> Moves:
        """Ask, take or stop; the end of a session opens the next that waits."""
        del rng
        after, rows = states.copy(), np.arange(len(states))
        coins = tasks[:, 0] + tasks[:, 1]
        depth, wanted = states[:, 0], states[:, 2] > 0
        good = (actions == 0) & wanted
        bad = (actions <= 1) & ~good
        take = actions == 2
        gets = take & (states[:, 1] > 0)
        back = 0.0 if self.deep else self.cost  # nobody paid for boxes that open by themselves
        reward = np.where(gets, 1 / coins + back, 0.0) - self.cost * (good | bad | take & ~gets)
        fresh = bad & (states[:, 3] < self.boxes - states[:, 2])
        opened = (good | fresh) & (depth < 2) & (states[:, 7] < self.queue)
        inner = good & (depth == 0) & (states[:, 2] == tasks[:, 0]) & (tasks[:, 1] > 0)
        entry = 100 * (depth + 1) + 10 * good + inner
        place = np.minimum(self._HERE + states[:, 7], self.fields - 1)
        after[rows[opened], place[opened]] = entry[opened]
        after[:, 7] += opened
        after[:, 2] -= good
        after[:, 3] += bad
        after[:, 1] -= gets
        after[:, 5] += gets
        after[:, 4] += 1
        closed = (actions == 3) | (after[:, 4] >= self.boxes)
        more = closed & (after[:, 6] < after[:, 7])
        following = after[rows, np.minimum(self._HERE + after[:, 6], self.fields - 1)]
        for column, value in (
            (0, following // 100),
            (1, following // 10 % 10),
            (2, following % 10),
        ):
            after[:, column] = np.where(more, value, after[:, column])
        after[:, 3:5][more] = 0
        after[:, 6] += more
        useful = np.where(wanted | (states[:, 1] > 0), good | gets, actions == 3)
        spawned = np.where(opened, _box_context(depth + 1, 1 * good, 1 * inner), -1)
        done = closed & ~more
        return Moves(after, reward, done, np.where(useful, 1, -1), spawned, closed)

    def measure(self, states: Ints, tasks: Doubles) -> Doubles:
        """Return the share of the coins that were taken."""
        return states[:, 5] / (tasks[:, 0] + tasks[:, 1])


def _box_context(depth: Ints, coin: Ints, wanted: Ints) -> Ints:
    return depth * 6 + coin * 3 + wanted
