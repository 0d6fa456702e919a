"""The schema of submissions: a description and action sequences, never a score.

An entry is a folder::

    entry.json              :class:`Manifest`
    episodes/*.jsonl        one :class:`Episode` per line
    signature.json          optional, see :mod:`turngym.leaderboard.entries_io.signing`
    *.md                    optional notes (a model card)
"""

from __future__ import annotations

import datetime
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from .base import Form
from .suite import Digest, Key, Slug

MANIFEST, EPISODES, SIGNATURE = "entry.json", "episodes", "signature.json"

Line = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]
Optional = Annotated[str, Field(max_length=400, pattern=r"^[^\x00-\x1f\x7f]*$")]
Prose = Annotated[str, Field(max_length=8000)]
Amount = Annotated[int, Field(ge=0, le=10**15)]
Chain = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
BoardName = Literal["agents", "algorithms"]
ReferenceName = Literal["expert", "random", "null"]
Package = Literal["turngym", "gymnasium", "numpy"]
"""Whose versions an entry names; other keys could carry any text onto its page."""
ErrorKind = Literal["agent_error", "env_error", "context_full"]


NAMING = ("name", "organisation", "licence")
"""Fields of a manifest that name the entry on its board."""
RESERVED = "turngym"
"""Organisation of the reference rows, which no other entry may name."""


def is_reserved(organisation: str) -> bool:
    """Return whether an organisation reads as that of the reference rows."""
    folded = unicodedata.normalize("NFKC", organisation).casefold()
    return "".join(sign for sign in folded if sign.isalnum() and _is_seen(sign)) == RESERVED


_EMPTY = "\u115f\u1160\u2800\u3164\uffa0"
"""Fillers of Korean and the empty Braille cell: letters and signs by their kind, but not seen."""


def _is_seen(sign: str) -> bool:
    """Return whether a character shows something by itself: no blank, control or accent does."""
    return unicodedata.category(sign)[0] in "LNPS" and sign not in _EMPTY


def find_blank(entry: Form) -> str:
    """Return the first field of :data:`NAMING` that cannot be read; empty for none.

    Entries with one are refused. It is no rule of the form, so that old indices can be read.
    """
    return next((name for name in NAMING if not any(map(_is_seen, getattr(entry, name)))), "")


def _a_date(text: str) -> str:
    datetime.date.fromisoformat(text)
    return text


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_a_date)]


class SuiteRef(Form):
    """The suite that was played."""

    name: Slug
    version: int = Field(ge=1)
    digest: Digest

    @property
    def id(self) -> str:
        """Name and version, as in ``micro-v3``."""
        return f"{self.name}-v{self.version}"


class PlayedEnv(Form):
    """An environment as it was played: ``digest`` is that of the suite's cell."""

    key: Key
    env_id: str = Field(max_length=100)
    digest: Digest


class ModelCard(Form):
    """Description of the agent; everything is declared by the author, nothing is checked.

    Attributes:
        model: Name of the model, or of the scripted policy.
        parameters: Number of weights; 0 for none.
        base: The model that it was made from.
        recipe: How it was trained or prompted.
        data: What it was trained on.
        limitations: Known weaknesses.
        sampling: Temperature and the like.
        links: Addresses of weights, code and papers.
    """

    model: Optional = ""
    parameters: Amount = 0
    base: Optional = ""
    recipe: Optional = ""
    data: Prose = ""
    limitations: Prose = ""
    sampling: Optional = ""
    links: tuple[Annotated[str, Field(max_length=300, pattern=r"^https?://[^\s<>\"']+$")], ...] = (
        Field(default=(), max_length=10)
    )


class Budget(Form):
    """Declared training cost of one run. On the board of algorithms it is also a limit."""

    sampled_tokens: Amount = 0
    tool_calls: Amount = 0


class Track(Form):
    """The terms that entries of the board of algorithms share.

    Attributes:
        start: Name of the starting model.
        start_digest: Hash of its weights, as ``sha256:…``; for a hub name ``name:…``.
        budget: Limit per run. Training ends after the step that reaches it, so it may be
            exceeded by 5 %.
    """

    start: Line
    start_digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|name:[\w./-]{1,200})$")]
    budget: Budget


class Run(Form):
    """One training run, or the only one of an agent that was not trained for the board.

    Attributes:
        seed: Training seed.
        used: Cost of the run.
    """

    seed: int = Field(default=0, ge=0, lt=2**53)
    used: Budget = Budget()


class Manifest(Form):
    """``entry.json``.

    Attributes:
        format: Version of this layout.
        name: Name of the entry on the board.
        organisation: Submitting organisation.
        board: ``agents`` (any model) or ``algorithms`` (a common start and budget).
        description: Description of the agent.
        card: The model card.
        hardware: Hardware that it ran on.
        licence: Licence of the model or method.
        date: Creation date, as 2026-01-31.
        suite: The suite that was played.
        environments: Each environment of the suite, in the suite's order.
        versions: Versions of turngym, gymnasium and numpy that played.
        runs: Training runs; each plays the whole suite.
        track: Terms of the board of algorithms; None on the board of agents.
        reference: Which reference row it is; None for ordinary entries.
        reproduces: Name or id of the entry that this one reproduces, under the same suite; both
            stay.
    """

    format: Literal[1] = 1
    name: Line
    organisation: Line
    board: BoardName
    description: Prose
    card: ModelCard = ModelCard()
    hardware: Optional = ""
    licence: Line
    date: Day
    suite: SuiteRef
    environments: tuple[PlayedEnv, ...] = Field(min_length=1)
    versions: dict[Package, Annotated[str, Field(pattern=r"^[0-9A-Za-z.+!_-]{1,60}$")]]
    runs: tuple[Run, ...] = Field(default=(Run(),), min_length=1, max_length=100)
    track: Track | None = None
    reference: ReferenceName | None = None
    reproduces: Optional = ""

    @model_validator(mode="after")
    def _of_its_board(self) -> Manifest:
        if (self.track is not None) != (self.board == "algorithms"):
            raise ValueError("the board of algorithms needs a track, that of agents has none")
        return self


class Episode(Form):
    """One line of ``episodes/*.jsonl``.

    Attributes:
        env: Key of the suite's cell.
        task: Index of the task.
        task_id: The environment's id of the task.
        task_digest: The suite's digest of the task.
        run: Place in the manifest's runs.
        trial: Which of the cell's trials.
        seed: Seed of the episode; must be the suite's.
        actions: The agent's actions, in order.
        chain: Hash of the rules and the first observation, then one per action: each over all
            texts so far (:func:`turngym.envs.wrappers.record.extend_chain`).
        error: Error that stopped the agent before the episode's end; the episode counts as 0.
        why: Error message.
    """

    env: Key
    task: int = Field(ge=0)
    task_id: str = Field(max_length=200)
    task_digest: Digest
    run: int = Field(default=0, ge=0)
    trial: int = Field(ge=0)
    seed: int = Field(ge=0, lt=2**128)
    actions: tuple[str, ...]
    chain: tuple[Chain, ...] = Field(min_length=1)
    error: ErrorKind | None = None
    why: Optional = ""

    @property
    def name(self) -> str:
        """Identify the episode in one line, for messages."""
        return f"{self.env} task {self.task} trial {self.trial} run {self.run}"
