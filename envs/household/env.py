"""Household-v0: ALFWorld's text game, on its own games or in generated houses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..core.env import Policy, TextEnv
from ..core.episode import NO_TERMS, Episode, Outcome
from ..core.errors import BadValueError, UnknownNameError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_bool, check_integer, check_number
from ..core.tasks import Task
from .engine.game import TASK_TYPES, Game
from .engine.planner import TAKE, find_command, find_plan, see_all
from .engine.state import HouseState, start_game
from .engine.step import act, list_commands, write_opening
from .engine.wording import EDITIONS, RELEASE, SHORT, Wording

SIZES = ("full", "micro")
MAX_STEPS = {"full": 50, "micro": 25}
MAX_CHARS = 20_000
REPEATED_CHARS = 1_200
"""Of a command and its answer that observations repeat."""
TYPE_NAMES: Mapping[str, str] = dict(
    zip(("simple", "light", "clean", "heat", "cool", "two"), TASK_TYPES, strict=True)
)
"""Types of tasks by their short names."""
_SHORT_NAMES = {kind: name for name, kind in TYPE_NAMES.items()}
RULES = """\
You are in a room of a house and have a task to do. Write one command per turn, in one line, with
the names of things as they are shown, number included:
look: what is around you. inventory: what you carry.
go to PLACE: you see what is on it, or that it is closed. open PLACE, close PLACE.
take THING from PLACE: you carry one thing at a time. {put} THING{into}PLACE: lay it down.
examine THING or PLACE. use LAMP. slice THING with KNIFE.
clean THING with SINK, heat THING with MICROWAVE, cool THING with FRIDGE: you hold the thing.
Whatever else you write is answered by: Nothing happens.

"""
PROMPT_MARK = "\n> "
"""Ends every observation; the command follows."""
_HOPELESS = 1000
"""Commands to the goal where no plan leads to it."""
_IDLE = ("look", "inventory", "help", "examine")
"""Verbs that change nothing."""


@dataclass(slots=True)
class HouseholdState:
    """The state of an episode.

    Attributes:
        house: The game.
        remaining: Commands of the shortest plan.
        needed: The same at first.
        recent: The last commands and their answers, as many as observations repeat.
    """

    house: HouseState
    remaining: int
    needed: int
    recent: tuple[tuple[str, str], ...] = ()

    def fork(self) -> HouseholdState:
        """Return an independent copy."""
        return HouseholdState(self.house.fork(), self.remaining, self.needed, self.recent)

    def digest(self) -> str:
        """Return text that names the state."""
        return f"{self.house.digest()}:{self.remaining}:{self.needed}:{self.recent}"


class Household(TextEnv[HouseholdState, Game]):
    """Find, change and place things in a room, by text (ALFWorld's game).

    Description:
        The first observation lists the receptacles of a room and names the task; a command goes
        somewhere, opens, takes, puts, cleans, heats, cools, slices, turns on or looks. Commands
        that are not admissible are answered by ``Nothing happens.`` and cost a step. Rules and
        texts are those of ALFWorld's text engine, which ``turngym fidelity household`` replays; an
        observation adds a line break before and ``> `` after them.

        Tasks are generated (rooms of four kinds by the original's statistics; train and dev share
        rooms, test has its own), or the original's own games (``games``).

        Verdicts: +1 for a command that shortens the way to the goal, -1 for one that lengthens it
        or is not admissible, else 0.

    Rewards:
        ``outcome``: 1 when the task is done, which ends the episode.
        ``step``: ``step_reward`` for every command, where it is not 0.

    Args:
        size: ``"full"``, or ``"micro"``: a handful of receptacles and short words.
        tasks: Types of tasks, one or several: ``"simple"``, ``"light"``, ``"clean"``, ``"heat"``,
            ``"cool"``, ``"two"``, or the original's long names; all.
        games: A folder of the original's games (``game.tw-pddl`` as downloaded, or packed files),
            in the original's splits; those that it does not play are in ``source.left_out``.
        edition: Wording: ``"0.4.2"`` (that of the package, with ``move O to R`` and ``help``) or
            ``"file"`` (that of the game files, with ``put O in/on R``). Micro rooms have their own.
        max_steps: Commands per episode (50 as the original's; 25 in micro rooms).
        admissible: List the admissible commands in every observation.
        history: Newest commands that every observation repeats with their answers, after the task,
            for agents that see the present observation alone; 0 for none.
        step_reward: Reward of every command, from -1 to 0.
        world_seed: Seed of the generated rooms and tasks.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown size, type of tasks or edition.
        BadValueError: A value out of range, settings that exclude each other, no games.
        DataError: A file that is no game.

    References:
        ALFWorld: Aligning Text and Embodied Environments for Interactive Learning, arXiv
        2010.03768; package alfworld 0.4.2.

    Version history:
        v0: first.
    """

    stop = ("\n",)

    def __init__(  # noqa: PLR0913 - the settings are what gym.make takes
        self,
        *,
        size: str | None = None,
        tasks: str | Iterable[str] | None = None,
        games: str | os.PathLike[str] | None = None,
        edition: str | None = None,
        max_steps: int | None = None,
        admissible: bool = False,
        history: int = 0,
        step_reward: float = 0.0,
        world_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.kinds = choose_types(tasks)
        source, self.size = _load_source(size, self.kinds, games, world_seed)
        self.words = _choose_words(self.size, edition)
        self.admissible = check_bool("admissible", admissible, "Household")
        self.history = check_integer("history", history, "Household", min=0, max=100)
        self.step_reward = check_number("step_reward", step_reward, "Household", min=-1, max=0)
        steps = MAX_STEPS[self.size] if max_steps is None else max_steps
        check_integer("max_steps", steps, "Household", min=1)
        super().__init__(
            source=source,
            max_turns=steps,
            max_chars=MAX_CHARS + REPEATED_CHARS * self.history,
            reward_range=(self.step_reward * steps, 1.0),
            render_mode=render_mode,
        )
        self.instructions = (
            "" if self.size == "micro" else RULES.format(put=self.words.put, into=self.words.into)
        )

    def begin(
        self,
        task: Task[Game],
        random: EpisodeRandom,  # noqa: ARG002 - nothing happens by chance
    ) -> tuple[HouseholdState, str]:
        """Close everything and put the agent into the middle of the room."""
        house = start_game(task.payload)
        needed = _count_remaining(house)
        opening = write_opening(task.payload, self.words)
        return HouseholdState(house, needed, needed), self._finish(house, opening)

    def play(self, episode: Episode[HouseholdState], action: str) -> Outcome:
        """Do a command."""
        state = episode.state
        house, command = state.house, action.strip()
        answer = act(house, command, self.words)
        text = self.words.nothing if answer is None else answer
        terms: Mapping[str, float] = {"step": self.step_reward} if self.step_reward else NO_TERMS
        if answer is None:
            return Outcome.unreadable(self._write(state, command, text), terms, verdict=-1)
        if command.startswith(_IDLE):
            return Outcome.move(self._write(state, command, text), terms, verdict=0)
        if house.is_won():
            state.remaining = 0
            terms = {**terms, "outcome": 1.0}
            return Outcome.solved(self._write(state, command, text), terms, verdict=1)
        before, state.remaining = state.remaining, _count_remaining(house)
        change = before - state.remaining
        return Outcome.move(
            self._write(state, command, text),
            terms,
            verdict=1 if change > 0 else -1 if change < 0 else 0,
        )

    def _write(self, state: HouseholdState, command: str, text: str) -> str:
        """Return the observation after a command."""
        if self.history:
            state.recent = (*state.recent, (command[:200], text))[-self.history :]
            recent = "\n".join(f"> {done}\n{answer}" for done, answer in state.recent)
            text = f"{state.house.game.text}\n{recent}"
        return "\n" + self._finish(state.house, text)

    def _finish(self, house: HouseState, text: str) -> str:
        if not self.admissible:
            return f"{text}\n{PROMPT_MARK}"
        commands = ", ".join(list_commands(house, self.words))
        return f"{text}\n\nAdmissible commands: {commands}\n{PROMPT_MARK}"

    def fork_state(self, state: HouseholdState) -> HouseholdState:
        """Return an independent copy; its fields are immutable."""
        return state.fork()

    def identify_state(self, episode: Episode[HouseholdState]) -> Any:
        """Return where everything is, as far as anything can depend on it.

        So walking in a circle leads back to the state, and so does taking something and putting it
        back; which receptacles have been seen is left out.
        """
        return episode.state.house.identify()

    def hidden_answers(self, episode: Episode[HouseholdState]) -> Sequence[str]:
        """Return the command that takes the wanted object."""
        house = episode.state.house
        found = find_plan(house, view := see_all(house))
        takes = [deed for deed in found[0] if deed.verb == TAKE] if found else []
        if not takes:
            return ()
        twin = house.fork()
        twin.at = house.game.room.location[takes[0].place]
        opened = view._replace(closed=0)
        return (find_command(twin, takes[0], opened, self.words),)

    def metrics(self, episode: Episode[HouseholdState]) -> Mapping[str, float]:
        """Return the score, the type of task, the commands that were needed, and what was seen.

        ``kind`` is the number of the task's type from 1, in the order of
        :data:`~.engine.game.TASK_TYPES`; ``seen`` the share of receptacles whose contents were
        shown. Where tasks are of several types, ``score_heat`` and the like have the score of each.
        """
        state = episode.state
        house = state.house
        kind, score = house.game.goal.kind, float(episode.status == "solved")
        found = {
            "score": score,
            "kind": float(1 + TASK_TYPES.index(kind)),
            "needed": float(state.needed),
            "seen": house.seen.bit_count() / len(house.game.room.names),
        }
        if len(self.kinds) > 1:
            found[f"score_{_SHORT_NAMES[kind]}"] = score
        return found

    def legal_actions(self) -> list[str]:
        """Return all admissible commands, as the original lists them."""
        return list_commands(self.episode.state.house, self.words)

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Return ``searcher``, which knows only what was shown (``expert.py``)."""
        from .expert import Searcher

        return {"searcher": partial(Searcher, 0.0)}


def choose_types(tasks: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return types of tasks by their short or long names, in the order of all types.

    Raises:
        UnknownNameError: No such type.
        BadValueError: None is named.
    """
    if tasks is None:
        return TASK_TYPES
    named = [tasks] if isinstance(tasks, str) else list(tasks)
    for name in named:
        if name not in TYPE_NAMES and name not in TASK_TYPES:
            raise UnknownNameError("type of tasks", name, (*TYPE_NAMES, *TASK_TYPES), "Household")
    if not named:
        raise BadValueError("Household: tasks is empty; name a type of tasks, or leave it out.")
    wanted = {TYPE_NAMES.get(name, name) for name in named}
    return tuple(kind for kind in TASK_TYPES if kind in wanted)


def _load_source(
    size: str | None, kinds: tuple[str, ...], games: Any, world_seed: int | None
) -> tuple[Any, str]:
    """Return the tasks and the size of texts."""
    if games is not None:
        for name, value in (("size", size), ("world_seed", world_seed)):
            if value is not None:
                raise BadValueError(
                    f"Household: {name} is set, and games too; {name} is about generated rooms. "
                    "Give one of them."
                )
        from .original.files import load_game_files

        return load_game_files(str(Path(games).expanduser().resolve()), kinds), "full"
    size = "full" if size is None else size
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "Household")
    seed = 0 if world_seed is None else check_integer("world_seed", world_seed, "Household", min=0)
    from .houses.source import load_house_tasks

    return load_house_tasks(size, seed, kinds), size


def _choose_words(size: str, edition: str | None) -> Wording:
    if edition is not None and edition not in EDITIONS:
        raise UnknownNameError("edition", edition, EDITIONS, "Household")
    if size == "micro":
        if edition is not None:
            raise BadValueError(
                f"Household: edition is {edition!r} and size 'micro'; micro rooms have short words "
                "of their own. Leave one of them out."
            )
        return SHORT
    return RELEASE if edition is None else EDITIONS[edition]


def _count_remaining(house: HouseState) -> int:
    """Return the number of commands of the shortest plan."""
    found = find_plan(house, see_all(house))
    return _HOPELESS if found is None else found[1]
