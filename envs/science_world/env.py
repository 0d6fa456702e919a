"""ScienceWorld-v0: elementary-school science in a simulated house, in text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..core.env import Policy, TextEnv
from ..core.episode import Episode, Outcome
from ..core.errors import UnknownNameError
from ..core.randomness import EpisodeRandom
from ..core.tasks import Task
from .backends import HOUSES, Backend, find_backend
from .house.java_random import JavaRandom
from .house.state import HouseState
from .tasks.build import parse_simplifications
from .tasks.catalogue import WHERE
from .tasks.source import Variation, choose_tasks, make_variations

MAX_TURNS = {"full": 100, "micro": 40}
MAX_CHARS = 20_000
FULL = 100
"""Points of a solved task; a failed one has minus as many."""
PROMPTS: Mapping[str, str] = {
    "full": (
        "You are in a house with a laboratory's worth of things, and have a task to do. Write one "
        "action per turn, in one line. OBJ stands for the name of a thing; where several things "
        "have that name you are asked which one you mean, and answer with its number.\n"
        "look around: what is in this place. look at OBJ, look in OBJ, read OBJ: one thing.\n"
        "inventory: what you carry. task: the task again.\n"
        "open OBJ, close OBJ: doors and containers. go OBJ: to a place next door.\n"
        "teleport OBJ: to any place, where that is allowed.\n"
        "pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix OBJ.\n"
        "activate OBJ, deactivate OBJ, use OBJ on OBJ, connect OBJ to OBJ, disconnect OBJ, "
        "flush OBJ, eat OBJ.\n"
        "wait: ten ticks and one. wait1: two ticks.\n"
        "focus on OBJ: tell that this is the thing that the task asks for. The wrong thing ends "
        "the episode.\n\n"
    ),
    "micro": "",
}
PROMPT_MARK = "\n> "
"""Ends every observation; the action follows."""


def _write_first_observation(description: str, room: str) -> str:
    """Write the task and the place that the episode starts in."""
    return f"{description}\n\n{room.strip()}\n{PROMPT_MARK}"


def _write_observation(text: str) -> str:
    """Write an answer of the house, below the action."""
    return f"\n{text.strip()}\n{PROMPT_MARK}"


@dataclass(slots=True)
class ScienceState:
    """The state of an episode.

    Attributes:
        backend: What simulates the house.
        house: The house, with the task's goals in it.
        description: Text of the task.
        start: Points that the task gives before the first action.
        paid: Points that rewards have paid.
        reached: The last points that were not negative.
    """

    backend: Backend
    house: HouseState
    description: str
    start: int
    paid: int = 0
    reached: int = 0

    def digest(self) -> str:
        """Return a hash that is the same wherever the state is the same."""
        return f"{self.backend.digest(self.house)}:{self.start}:{self.paid}:{self.reached}"

    @property
    def points(self) -> int:
        """The score now: 0 to 100, or -100 after a failure."""
        goals = self.house.goals
        return 0 if goals is None else goals.points


class ScienceWorld(TextEnv[ScienceState, Variation]):
    """Do an elementary-school science task in a simulated house (ScienceWorld, engine 1.3.0).

    Description:
        A house of ten places with some two hundred things that heat, melt, burn, conduct, mix,
        grow and die. The first observation is the task and the place; an action is one line
        (``open door to kitchen``, ``use thermometer on lead``). A name that several things have
        is answered by a question; the number of a choice, or anything else to cancel, comes next.
        Thirty tasks with 7,207 variations in the original's splits; task ids are ``boil/14``.

    Rewards:
        ``outcome``: what the score rose or fell by, over 100. Points that a task gives before the
        first action are paid with the first change, so that the return of a solved episode is 1
        and of a failed one -1. An episode fails when the focus is set on a wrong thing.

    Args:
        size: ``"full"``, or ``"micro"``: three places and the tasks 6-1 (in the kitchen) and 7-x.
        tasks: Ids (``"1-1"``), names (``"boil"``) or topics (``"Electricity"``), or one; all.
        simplifications: Names as the original has them, comma-separated or a sequence; ``"easy"``
            stands for teleport, open doors, self-watering pots and no electrical actions (where
            the task is not about electricity). ``""`` for none.
        max_turns: Actions per episode (100 as in published results; 40 in the micro house).
            Waiting counts as one.
        backend: ``"python"``, or ``"jvm"``: the original engine in a Java machine of its own (extra
            ``science-jvm``), for comparison. It has no expert, forks by replaying the episode, and
            its list of legal actions is the original's.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown size, task, simplification or backend.
        BadValueError: ``max_turns`` out of range; no Java for the Java engine.
        MissingExtraError: The Java engine's package is not installed.

    References:
        ScienceWorld: Is your Agent Smarter than a 5th Grader? arXiv 2203.07540.

    Version history:
        v0: first.
    """

    stop = ("\n",)

    def __init__(
        self,
        *,
        size: str = "full",
        tasks: str | Iterable[str] | None = None,
        simplifications: str | Iterable[str] = "easy",
        max_turns: int | None = None,
        backend: str = "python",
        render_mode: str | None = None,
    ) -> None:
        if size not in HOUSES:
            raise UnknownNameError("size", size, HOUSES, WHERE)
        self.size, self.backend = size, backend
        self._sim = find_backend(backend, size)
        named = simplifications if isinstance(simplifications, str) else ",".join(simplifications)
        self.simplifications = named
        ids = choose_tasks(tasks, size)
        source = make_variations(ids, size)
        self._simple = {task: _simple(task, named) for task in ids}
        super().__init__(
            source=source,
            max_turns=MAX_TURNS[size] if max_turns is None else max_turns,
            max_chars=MAX_CHARS,
            reward_range=(-1.0, 1.0),
            render_mode=render_mode,
        )
        self.instructions = PROMPTS[size]

    def begin(
        self,
        task: Task[Variation],
        random: EpisodeRandom,  # noqa: ARG002 - a variation is one house, as in the original
    ) -> tuple[ScienceState, str]:
        """Build the house with the task's things; the first look counts towards the goals."""
        kind, number = task.payload.kind, task.payload.number
        house, room = self._sim.start(kind, number, self._simple[kind.id])
        state = ScienceState(self._sim, house, kind.text(number), 0)
        state.start = state.reached = state.points
        return state, _write_first_observation(state.description, room)

    def play(self, episode: Episode[ScienceState], action: str) -> Outcome:
        """Give one input to the house; the score's change is the reward."""
        state = episode.state
        reply = self._sim.step(state.house, action.removesuffix("\n"), state.description)
        terms = self._pay(state)
        goals = state.house.goals
        text = _write_observation(reply.text)
        if goals is not None and goals.failed:
            return Outcome.failed(text, terms, verdict=-1)
        if goals is not None and goals.completed:
            return Outcome.solved(text, terms, verdict=1)
        if not reply.understood:
            return Outcome.unreadable(text, terms, verdict=-1)
        return Outcome.move(text, terms, verdict=1 if terms["outcome"] > 0 else 0)

    @staticmethod
    def _pay(state: ScienceState) -> Mapping[str, float]:
        points = state.points
        if points >= 0:
            state.reached = points
        if state.paid == 0 and points == state.start:
            return {"outcome": 0.0}
        change, state.paid = points - state.paid, points
        return {"outcome": change / FULL}

    def fork_state(self, state: ScienceState) -> ScienceState:
        """Return an independent copy."""
        return replace(state, house=state.house.fork())

    def random_position(self) -> Any:
        """Return where the episode's and the house's random numbers stand."""
        house = self.episode.state.house
        own = house.random.state if isinstance(house, HouseState) else None
        return super().random_position(), own

    def redraw(self, key: int) -> None:
        """Give the episode and its house other random streams."""
        super().redraw(key)
        house = self.episode.state.house
        if isinstance(house, HouseState):  # the original engine keeps its own
            house.random = JavaRandom(key)

    def identify_state(self, episode: Episode[ScienceState]) -> tuple[str, int]:
        """Return the house with the task's progress, and the points that were paid.

        Every tick warms and ages something, so that exact states never come again. Therefore the
        clock, the random stream and the order of deeds are left out, temperatures count in steps of
        ten degrees, and plants and animals by their stages: equal states may go on differently, by
        what has nearly warmed through or grown up. The Java engine shows no state: there it is the
        inputs, which never come again.
        """
        state = episode.state
        return self._sim.state_digest(state.house), state.paid

    def hidden_answers(self, episode: Episode[ScienceState]) -> Sequence[str]:
        """Return what the task's solver would do first."""
        first = self._sim.plan(episode.state.house)
        return (first,) if " " in first else ()

    def metrics(self, episode: Episode[ScienceState]) -> Mapping[str, float]:
        """Return the score (0 to 100, or -100), the last one not negative, and the ticks."""
        state = episode.state
        score, reached = float(state.points), float(state.reached)
        return {"score": score, "reached": reached, "moves": float(state.house.ticks)}

    def legal_actions(self) -> list[str]:
        """Return actions that make sense now and are understood; one form and one name each."""
        return self._sim.legal(self.episode.state.house)

    def valid_actions(self) -> list[str]:
        """Return the original's list of valid actions, not all of which its parser understands."""
        return self._sim.valid(self.episode.state.house)

    def look(self) -> str:
        """Describe the agent's place, without an action."""
        return self._sim.look(self.episode.state.house)

    def inventory(self) -> str:
        """Describe what the agent carries."""
        return self._sim.inventory(self.episode.state.house)

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Return ``looker``: the expert, but it looks around before it names a thing.

        It reads hidden state as the expert does, and is there to be imitated: what it does can be
        told from what is shown and generally known.
        """
        from .expert import Looker

        return {"looker": partial(Looker, 0.0)} if self.backend == "python" else {}

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that follows the task's solver.

        Args:
            mistakes: Probability of another legal action, none that ends the episode.
            seed: Seed of the mistakes.
        """
        from .expert import ScienceExpert

        if self.backend != "python":
            raise NotImplementedError(f"{self.name}: the {self.backend} backend hides its state.")
        return ScienceExpert(mistakes=mistakes, seed=seed)


def _simple(task: str, named: str) -> frozenset[str]:
    return parse_simplifications(named, Variation(task, 0).kind)
