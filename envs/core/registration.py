"""How environments are registered: a row each, by string entry points, with gymnasium."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from .errors import BadValueError, UnknownNameError
from .plugins import (
    OF_MODULE,
    discover,
    installed,
    load_inherited,
    load_plugin,
    warn_left_out,
)
from .tasks import SPLITS


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """How a small model learns an environment from its expert before reinforcement learning.

    Attributes:
        settings: Settings of the environment that it learns on; None for its smallest size.
        starter: Changes to the defaults of
            ``turngym.agents.warm_start.settings.StarterSettings``, by field.
    """

    settings: Mapping[str, Any] | None = None
    starter: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MatrixColumn:
    """The column of an environment in one suite of the benchmark matrix; the rest is the suite's.

    Attributes:
        calls: Actions taken for training in a cell.
        tokens: Tokens sampled for training in a cell; None for as many as the suite allows.
        max_tokens: Most tokens of an action; None for as many as the suite allows.
        settings: Settings of the environment beside the size that the suite plays.
        eval_tasks: Tasks of an evaluation; None for as many as the suite evaluates.
        limit_steps: False where the suite's guard against steps that cost nothing does not hold.
        own_starter: True where recipes start from the model of :class:`WarmStart` as it is, False
            where they start from the one that the suite makes with the column's settings.
    """

    calls: int
    tokens: int | None = None
    max_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    eval_tasks: int | None = None
    limit_steps: bool = True
    own_starter: bool = False


@dataclass(frozen=True, kw_only=True)
class LeaderboardCell:
    """How an environment takes part in the leaderboard's suites.

    Attributes:
        metric: Metric that is the score of an episode.
        every_kind: True where tasks are listed kind by kind, so that a suite takes the first task
            of every kind, then the second of every kind, instead of the first ones.
    """

    metric: str = "success"
    every_kind: bool = False


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """The registry's row of one environment: all that other parts of turngym know about it.

    Attributes:
        id: Gymnasium id, ``Name-vN``; changed behaviour means a new version.
        entry_point: A :class:`TextEnv`: the class, or ``"module:Class"``, which costs no import
            until somebody plays it. Afterwards it is the latter.
        expert: Its scripted expert, likewise, which is made with ``mistakes`` and ``seed``; empty
            where there is none, or where the environment makes it itself.
        summary: What it is about, one line.
        sizes: Values that its ``size`` setting takes, the default first.
        splits: Splits of its tasks.
        reward_range: Lowest and highest return of an episode with the default settings.
        hidden: True for diagnostic environments that lists leave out.
        kwargs: Settings that this id fixes.
        breakdown: Metrics that tell how hard a task is: evaluations are broken down by them where
            they are reported, by mixtures of this environment too.
        warm_start: How a small model learns it by imitation; None where training starts from a
            blank model, since there is nothing to imitate.
        matrix: Its columns in the suites of the benchmark matrix, by the suite's name.
        leaderboard: Its cell in the leaderboard's suites; None where it is not in them.

    Raises:
        BadValueError: An entry point that other processes could not find.
    """

    id: str
    entry_point: Any
    expert: Any = ""
    summary: str
    sizes: tuple[str, ...] = ("full", "micro")
    splits: tuple[str, ...] = SPLITS
    reward_range: tuple[float, float] = (0.0, 1.0)
    hidden: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    breakdown: tuple[str, ...] = ()
    warm_start: WarmStart | None = None
    matrix: Mapping[str, MatrixColumn] = field(default_factory=dict)
    leaderboard: LeaderboardCell | None = None

    def __post_init__(self) -> None:
        for name in ("entry_point", "expert"):
            object.__setattr__(self, name, self._path_of(name))

    def _path_of(self, name: str) -> str:
        """Return an entry point as ``"module:Class"``."""
        value = getattr(self, name)
        if isinstance(value, type):
            if "." in value.__qualname__:
                raise BadValueError(
                    f"{self.id}: {name} is the class {value.__qualname__}; expected one at the top "
                    "of its module, where other processes find it."
                )
            return f"{value.__module__}:{value.__qualname__}"
        bare = name == "expert" and value == ""
        if bare or (isinstance(value, str) and all(value.partition(":"))):
            return value
        raise BadValueError(
            f"{self.id}: {name} is {value!r}; expected a class, or a text 'module:Class'."
        )

    @property
    def builtin(self) -> bool:
        """True for the environments of this package, which alone are in its frozen suites."""
        return self.entry_point.startswith("turngym.")

    @property
    def smallest(self) -> dict[str, Any]:
        """Return the settings of its smallest size; none where it has no size ``micro``."""
        return {"size": "micro"} if "micro" in self.sizes else {}

    @property
    def warm_start_settings(self) -> Mapping[str, Any]:
        """Return the settings that the starting model is made on, blank or by imitation."""
        own = self.warm_start.settings if self.warm_start is not None else None
        return self.smallest if own is None else own


REMOTE = "turngym.envs.wrappers.season_env:remote_env"
"""What makes the environments of a sealed season."""
_ADVICE = (
    "One of your own is known once its module is imported: MODULE:Id-v0 in place of the id, or "
    "--plugin FILE on the command line."
)

_SPECS: dict[str, EnvironmentSpec] = {}
_INSTALLED = "installed"
"""Stands for a module in the entry points of environments whose package is not loaded yet."""


def register_environment(spec: EnvironmentSpec) -> None:
    """Make ``gym.make(spec.id)`` and ``gym.make_vec(spec.id)`` work.

    Gymnasium's wrappers stay out: :class:`TextEnv` enforces the order of calls and the turn limit
    itself, and ``check_text_env`` checks once, in the tests, more than the passive checker would
    check in every process. So ``gym.make`` returns the bare environment, which steps and forks
    faster.

    A script's or a notebook's own class may come again with other ``kwargs``, as after a cell is
    run again: the last row holds.

    Raises:
        BadValueError: The id is registered already, for something else.
    """
    known = gym.registry.get(spec.id)
    entry_point = f"{__name__}:{spec.entry_point.replace(':', '.')}"
    if known is not None and (
        known.entry_point == _not_loaded(spec.id)
        or (known.entry_point == entry_point and spec.entry_point.startswith("__main__:"))
    ):
        del gym.registry[spec.id]
        known = None
    if known is None:
        _register(spec.id, entry_point, spec.kwargs)
    elif (known.entry_point, known.kwargs) != (entry_point, dict(spec.kwargs)):
        raise BadValueError(
            f"register_environment: {spec.id!r} is registered already; changed behaviour needs a "
            "new version of the id."
        )
    _SPECS[spec.id] = spec


def register_installed() -> None:
    """Make ``gym.make`` work for what installed packages offer, without loading them yet.

    A name that gymnasium does not take as an id is left out with a warning.
    """
    for point in installed():
        if point.name not in gym.registry:
            try:
                _register(point.name, _not_loaded(point.name), {})
            except gym.error.Error as error:
                warn_left_out(point, error)


def _register(env_id: str, entry_point: str, kwargs: Mapping[str, Any]) -> None:
    gym.register(
        id=env_id,
        entry_point=entry_point,
        order_enforce=False,
        disable_env_checker=True,
        kwargs=dict(kwargs),
        vector_entry_point=f"turngym.envs.wrappers.vector:{env_id}",
    )


def _not_loaded(env_id: str) -> str:
    return f"{__name__}:{_INSTALLED}.{env_id}"


def _make_installed(env_id: str, **settings: Any) -> gym.Env[Any, Any]:
    """Make an environment of an installed package, which is loaded now."""
    row = find_environment(env_id)
    return make_env(row.entry_point, **{**row.kwargs, **settings})


def __getattr__(name: str) -> Callable[..., gym.Env[Any, Any]]:
    """Return the maker of ``module.Class``, which gymnasium's entry points name here."""
    module, _, env_class = name.rpartition(".")
    if not module:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if module == _INSTALLED:
        return partial(_make_installed, env_class)
    return partial(make_env, f"{module}:{env_class}")


def make_env(entry_point: str, **settings: Any) -> gym.Env[Any, Any]:
    """Make an environment of the class that ``entry_point`` names.

    With the setting ``server`` it is one of a sealed season, which that server steps
    (:class:`turngym.envs.wrappers.season_env.RemoteEnv`).

    Raises:
        UnknownNameError: A setting that the environment does not take.
    """
    load_inherited()  # in another process than the one that loaded a plugin
    env_class: Any = load_env_creator(entry_point)
    if settings.get("server") is None:
        return env_class(**settings)
    remote_env: Any = load_env_creator(REMOTE)
    env_id = next(name for name, row in _SPECS.items() if row.entry_point == entry_point)
    return remote_env(env_id, env_class, settings)


def load_expert(env_class: type) -> Callable[..., Any] | None:
    """Return the class of the scripted expert of an environment class, or None.

    A class that is not registered has the expert of the nearest registered class it derives from.
    """
    experts = {row.entry_point: row.expert for row in _SPECS.values()}
    for base in env_class.__mro__:
        if expert := experts.get(f"{base.__module__}:{base.__qualname__}"):
            return load_env_creator(expert)
    return None


def registered_environments() -> list[EnvironmentSpec]:
    """Return every row, hidden ones too, in the order of registration."""
    return list(_SPECS.values())


def all_ids(*, hidden: bool = False) -> list[str]:
    """Return the ids of the registered environments, sorted; diagnostic ones only on request."""
    discover()
    return sorted(name for name, spec in _SPECS.items() if hidden or not spec.hidden)


def breakdown_metrics(env_id: str, env_class: type) -> tuple[str, ...]:
    """Return the ``breakdown`` of an environment's row.

    Without a row of its own it has that of the nearest registered class it derives from.
    """
    if env_id in _SPECS:
        return _SPECS[env_id].breakdown
    rows = {row.entry_point: row.breakdown for row in _SPECS.values()}
    paths = (f"{base.__module__}:{base.__qualname__}" for base in env_class.__mro__)
    return next((rows[path] for path in paths if path in rows), ())


def environment_class(env_id: str) -> type:
    """Return the class of a registered environment, whose module is imported now.

    Raises:
        UnknownNameError: There is no such id; names the nearest.
    """
    loaded: Any = load_env_creator(find_environment(env_id).entry_point)
    return loaded


def default_settings(env_id: str) -> dict[str, Any]:
    """Return the values of an environment's settings where they are not given.

    Those of its constructor and of its row; a size that is left out is the row's first. A class
    that takes any setting has those that it names.

    Raises:
        UnknownNameError: There is no such id; names the nearest.
    """
    row = find_environment(env_id)
    given = inspect.signature(environment_class(env_id).__init__).parameters.values()
    found = {one.name: one.default for one in given if one.default is not inspect.Parameter.empty}
    if row.sizes and found.get("size", "") is None:
        found["size"] = row.sizes[0]
    return {**found, **row.kwargs}


def resolve_id(name: str) -> str:
    """Return the id of ``MODULE:Id-v0``, whose module is imported first; any other name as it is.

    Raises:
        DataError: There is no such module, or it does not run.
        UnknownNameError: It registers no such environment.
    """
    match = OF_MODULE.fullmatch(name)
    if match is None:
        return name
    load_plugin(match["module"])
    return find_environment(match["id"]).id


def find_environment(env_id: str) -> EnvironmentSpec:
    """Return the row of a registered id.

    Raises:
        UnknownNameError: There is none; names the nearest.
    """
    if env_id not in _SPECS:
        discover()
    if env_id not in _SPECS:
        every = all_ids(hidden=True)
        raise UnknownNameError("environment", env_id, all_ids(), hidden=every, advice=_ADVICE)
    return _SPECS[env_id]
