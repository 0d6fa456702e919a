"""Spawn-v0: a session asks for boxes, and each box becomes a session of its own.

What it asks for: credit across sessions. Asking for a box costs at once; what it holds is taken in
its own session, with a context of its own. Boxes wait in a queue, first come, first served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from ..core.env import Episode, Opening, Outcome, Policy, SessionSwitch
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_bool, check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

Inside = tuple[tuple[str, str], ...]
"""Letters of the boxes with a coin, each with the letter of the box in it that has one, or ""."""
BOXES, TAKE, STOP = "abcdefgh", "t", "s"
COST = 0.02


@dataclass(slots=True)
class Boxes:
    """The episode's state; a box is named by the letters that lead to it, the start is ``""``."""

    inside: dict[str, str]  # the start and the boxes with a coin: letters of such boxes in them
    here: str = ""
    acted: int = 0  # actions in this session
    waiting: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    asked: list[str] = field(default_factory=list)
    asked_now: str | None = None
    taken: list[str] = field(default_factory=list)

    def wanted(self, key: str) -> str:
        """Return the letters that are worth writing in a session."""
        boxes = "".join(b for b in self.inside.get(key, "") if key + b not in self.asked)
        coin = key and key in self.inside and key not in self.taken
        return (TAKE if coin else "") + boxes

    def label(self, key: str) -> str:
        """Return the first observation of a session."""
        return f"{' '.join(self.wanted(key)) or '-'}:"


class Spawn(LetterEnv[Boxes, Inside]):
    """Ask for boxes by letter, take coins with t, end a session with s.

    A label says what is worth doing: the letters of the boxes that hold something, and t where a
    coin lies. Every ask, and every t for nothing, costs 0.02; a coin gives back the ask that led
    to it, so that a perfect episode returns 1.

    The difficulty is ``boxes``. Control: ``forced=True`` and ``deep=True``, where every box of the
    start, and what is inside it, is opened without asking, and costs nothing: what is asked for
    decides nothing any more, and equality is the right answer. With ``forced`` alone the boxes
    inside boxes are still to be asked for.

    Args:
        size: ``"micro"``, or ``"full"``, which has more boxes and states the rules.
        boxes: Number of boxes, of the start and in every box: 3 in the micro size, 5 in the full.
        forced: Whether all boxes of the start are opened without asking.
        deep: Whether those that are in them and hold a coin are, too; goes with ``forced``.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``boxes`` is out of range, or ``deep`` stands without ``forced``.
    """

    sessions = True

    def __init__(
        self,
        *,
        size: str = "micro",
        boxes: int | None = None,
        forced: bool = False,
        deep: bool = False,
        render_mode: str | None = None,
    ) -> None:
        micro = check_size(size, "Spawn")
        count = (3 if micro else 5) if boxes is None else boxes
        self.boxes = BOXES[: check_integer("boxes", count, "Spawn", min=2, max=len(BOXES))]
        self.forced = check_bool("forced", forced, "Spawn")
        self.deep = check_bool("deep", deep, "Spawn")
        if deep and not forced:
            raise BadValueError(
                "Spawn: deep=True opens what is inside boxes that are opened without asking; set "
                "forced=True with it."
            )
        self.letters = self.boxes + TAKE + STOP
        self.stop = tuple(self.letters)
        if not micro:
            self.instructions = (
                "The label names the boxes that hold a coin; t means that a coin lies here. Write "
                f"the letter of a box ({', '.join(self.boxes)}) to have it opened later, t to take "
                "the coin, s to stop here. Asking costs. "
            )
            if forced:
                which = "boxes, and those inside them," if deep else "boxes"
                self.instructions += f"Here at the start all {which} are opened without asking. "
            self.instructions += "Write one letter and nothing else.\n"
        max_turns = 20 if count <= 3 else 40
        low = -COST * max_turns
        source = ListedTasks(_list_tasks(self.boxes))
        super().__init__(
            source=source, max_turns=max_turns, reward_range=(low, 1.0), render_mode=render_mode
        )

    def begin(self, task: Task[Inside], random: EpisodeRandom) -> tuple[Boxes, str]:  # noqa: ARG002
        """Return the label of the start."""
        inside = {"": "".join(letter for letter, _ in task.payload)}
        for letter, inner in task.payload:
            inside |= {letter: inner, **({letter + inner: ""} if inner else {})}
        state = Boxes(inside)
        if self.forced:
            inner = [letter + box for letter, box in task.payload if box and self.deep]
            state.asked, state.waiting = [*self.boxes, *inner], [*self.boxes, *inner]
        return state, state.label("")

    def play(self, episode: Episode[Boxes], action: str) -> Outcome:
        """Ask, take or stop; the end of a session opens the next one that waits."""
        state, letter = episode.state, read_letter(action, self.letters)
        state.acted += 1
        state.asked_now = None
        wanted = state.wanted(state.here) or STOP
        terms: dict[str, float] = {}
        if letter == TAKE and TAKE in wanted:
            state.taken.append(state.here)
            free = self.forced and (self.deep or len(state.here) == 1)  # nobody paid for these
            back = 0.0 if free else COST
            terms = {"coin": 1 / (len(state.inside) - 1) + back}
        elif letter is not None and letter != STOP:
            terms = {"cost": -COST}
            self._ask(state, state.here + letter)
        if letter == STOP or state.acted >= len(self.boxes):
            after = self._next(state)
        else:
            after = Outcome.move("\n:" if letter else ask_for_letter(self.letters))
        verdict = 1 if letter and letter in wanted else -1
        return after._replace(terms=terms, verdict=verdict, valid=letter is not None)

    def _ask(self, state: Boxes, key: str) -> None:
        if key[-1] != TAKE and key not in state.asked and len(key) <= 2:
            state.asked.append(key)
            state.waiting.append(key)
            state.asked_now = key

    def _next(self, state: Boxes) -> Outcome:
        if state.waiting:
            text, switch = self._go(state, state.waiting.pop(0))
            return Outcome.move(text, session=switch)
        all_taken = len(state.taken) == len(state.inside) - 1
        return (Outcome.solved if all_taken else Outcome.failed)("\n", {})

    def _go(self, state: Boxes, key: str) -> tuple[str, SessionSwitch]:
        state.here, state.acted = key, 0
        number = state.numbers.setdefault(key, len(state.numbers))
        return state.label(key), SessionSwitch(number, state.numbers[key[:-1]])

    def asked(self) -> Sequence[Opening]:
        """Return the box that the last action asked for."""
        state = self.episode.state
        over = state.asked_now is None or self.episode.status != "running"
        return () if over else self._openings([state.asked_now or ""])

    def waiting(self) -> Sequence[Opening]:
        """Return the boxes that nobody has acted in, the present one first."""
        state = self.episode.state
        fresh = [state.here] if state.here and not state.acted else []
        return self._openings(fresh + state.waiting)

    def _openings(self, keys: Sequence[str]) -> list[Opening]:
        state = self.episode.state
        return [Opening(k, state.label(k), float(k in state.inside), len(k)) for k in keys]

    def session_key(self) -> str:
        """Return the present box."""
        return self.episode.state.here

    def enter(self, episode: Episode[Boxes], key: str) -> tuple[str, SessionSwitch]:
        """Open a waiting box; the present one waits again if untouched, else it is closed."""
        state = episode.state
        if state.here and not state.acted:
            state.waiting.insert(0, state.here)
        state.waiting.remove(key)
        return self._go(state, key)

    def identify_state(self, episode: Episode[Boxes]) -> tuple[object, ...]:
        """Return the box, what was done in it, the queue, and what was asked for and taken.

        Numbers of sessions and the order of what is done with are left out.
        """
        state = episode.state
        done = frozenset(state.asked), frozenset(state.taken)
        return state.here, state.acted, state.waiting, *done

    def metrics(self, episode: Episode[Boxes]) -> Mapping[str, float]:
        """Return the share of coins taken and the number of boxes asked for."""
        state = episode.state
        coins = len(state.taken) / (len(state.inside) - 1)
        return {"coins": coins, "asked": float(len(state.asked))}

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that follows the labels, then stops."""

        def best(env: Spawn) -> str:
            return (env.episode.state.wanted(env.episode.state.here) or STOP)[0]

        return LetterExpert(best, self.letters, mistakes, seed)


def _list_tasks(boxes: str) -> list[Inside]:
    """Return all tasks: one or two boxes with a coin, at most one with a box inside."""
    few = [c for size in (1, 2) for c in combinations(boxes, size)]
    return [
        tuple(zip(outer, inner, strict=True))
        for outer in few
        for inner in product(("", *boxes), repeat=len(outer))
        if sum(map(bool, inner)) <= 1
    ]
