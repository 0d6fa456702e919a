"""A stand-in for ALFWorld's text engine, as textworld shows it: our own house, asked in its way."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

from turngym.envs.household.engine.state import start_game
from turngym.envs.household.engine.step import act, list_commands, write_opening
from turngym.envs.household.engine.wording import EDITIONS
from turngym.envs.household.original.problem import compile_problem

MARK = "@@TASK@@"
SHARED = {
    "pddl_domain": "domain of the files",
    "grammar": f'You put the | "{MARK}"',
    "grammar_placeholder": MARK,
    "pddl_domain_v042": "domain of 0.4.2",
    "grammar_v042": f'You move the | "{MARK}"',
}
"""Domains and grammars: what the stand-in tells the editions apart by."""


class State(dict[str, Any]):
    """What textworld calls a game state: a mapping whose feedback is an attribute too."""

    @property
    def feedback(self) -> str:
        return self["feedback"]


class StandIn:
    """Plays the part of ``textworld.envs.pddl.PddlEnv``."""

    flaw = ""
    """A word that every answer of this engine leaves out."""

    def __init__(self, infos: Any) -> None:
        assert infos.admissible_commands

    def load(self, data: dict[str, str]) -> None:
        edition = "0.4.2" if "You move the" in data["grammar"] else "file"
        assert data["pddl_domain"] == SHARED["pddl_domain" + "_v042" * (edition == "0.4.2")]
        found = re.search(r"\| (\"[^\"]*\")", data["grammar"])
        assert found is not None
        self.words = EDITIONS[edition]
        self.game = compile_problem(data["pddl_problem"], json.loads(found[1]), "stand-in")

        found_ids = set(re.findall(r"[a-z]\w*_bar_\w+", data["pddl_problem"].lower()))
        self._entity_infos = {one: SimpleNamespace(name=one) for one in found_ids}

    def _tell(self, text: str) -> State:
        commands = list_commands(self.house, self.words)
        text = text.replace(self.flaw, "") if self.flaw else text
        return State(feedback=text, admissible_commands=commands, won=self.house.is_won())

    def reset(self) -> State:
        shown = {entity.name for entity in self._entity_infos.values()}
        assert shown >= set(
            self.game.room.names
        )  # the original answers with the names it was given
        self.house = start_game(self.game)
        return self._tell(write_opening(self.game, self.words))

    def step(self, command: str) -> tuple[State, int, bool]:
        answer = act(self.house, command, self.words)
        state = self._tell(self.words.nothing if answer is None else answer)
        return state, int(state["won"]), state["won"]


def modules() -> dict[str, Any]:
    """Return the modules of textworld that are imported, with the stand-in."""
    return {
        "textworld": SimpleNamespace(EnvInfos=SimpleNamespace),
        "textworld.envs": SimpleNamespace(),
        "textworld.envs.pddl": SimpleNamespace(PddlEnv=StandIn),
    }
