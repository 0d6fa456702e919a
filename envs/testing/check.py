"""The conformance kit: every law of the contract; stricter than gymnasium's check.

An environment is in when ``check_text_env(id)`` passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym

from ..core.errors import BadValueError, TurngymError, UnknownNameError
from ..core.settings import check_integer
from . import cost_laws as cost
from . import digest_laws as digests
from . import episode_laws as episode
from . import state_laws as state
from .harness import ConformanceError, Lab, LawViolation

__all__ = ["LAWS", "ConformanceError", "Report", "check_text_env"]

LAWS: Mapping[str, Callable[[Lab], str | None]] = {
    "gymnasium's own check": state.gymnasium_check,
    "tasks are stable, splits disjoint": episode.tasks_are_stable_and_splits_disjoint,
    "nothing breaks": episode.nothing_breaks,
    "no episode outlasts the limit": episode.no_episode_outlasts_the_limit,
    "status follows the flags": episode.status_follows_the_flags,
    "info is complete and typed": episode.info_is_complete_and_typed,
    "debug info is JSON data": episode.debug_info_is_json_data,
    "no step after the end": episode.no_step_after_the_end,
    "texts are in the space": episode.texts_are_in_the_space,
    "rewards are named, finite and in range": episode.rewards_are_named_finite_and_in_range,
    "same seed, same episode": state.same_seed_same_episode,
    "other seed, other episode": state.other_seed_other_episode,
    "an episode is its task and its seed": state.episode_is_task_and_seed,
    "copies do not touch": state.copies_do_not_touch,
    "fork then act equals act": state.fork_then_act_equals_act,
    "the state digest leaves history out": digests.state_digest_leaves_history_out,
    "equal state digests go on alike": digests.equal_state_digests_go_on_alike,
    "luck is declared": state.luck_is_declared,
    "fork through wrappers": state.fork_through_wrappers,
    "pickles mid-episode": state.pickles_mid_episode,
    "the caller's random state is untouched": state.random_state_untouched,
    "the same in another process": state.same_in_another_process,
    "the answer is hidden": episode.answer_is_hidden,
    "accepted answers are given": episode.accepted_answers_are_given,
    "legal actions are valid": episode.legal_actions_are_valid,
    "null and garbage stay at the floor": episode.null_and_garbage_stay_at_the_floor,
    "long actions take little time": cost.long_actions_take_little_time,
    "the expert reaches the top": episode.expert_reaches_the_top,
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """An environment that keeps every law.

    Attributes:
        env: Its id or class.
        passed: The laws that were checked.
        skipped: Laws that say nothing about this environment, with the reason.
    """

    env: str
    passed: tuple[str, ...]
    skipped: Mapping[str, str]


def check_text_env(
    env: str | Callable[..., gym.Env[Any, Any]],
    /,
    *,
    tasks_checked: int = 30,
    exempt: Mapping[str, str] | None = None,
    **settings: Any,
) -> Report:
    """Check an environment against every law of the contract.

    Args:
        env: A registered id (``module:id`` imports the module first), or a class or
            function that makes the environment.
        tasks_checked: How many tasks the thorough laws look at.
        exempt: Laws that are not checked, with the reason: for engines of others behind an
            environment.
        **settings: Settings of the environment, as for ``gym.make``.

    Raises:
        ConformanceError: The first law that is broken, by name, and what was seen.
        BadValueError: ``env`` is neither, or does not make a text environment.
        UnknownNameError: No such law to exempt.
    """
    for law in exempt or ():
        if law not in LAWS:
            raise UnknownNameError("law", law, LAWS, "check_text_env")
    make = _choose_maker(env, settings)
    check_integer("tasks_checked", tasks_checked, "check_text_env", min=2)
    lab = Lab(make, tasks_checked)
    name = lab.text_env.name
    skipped: dict[str, str] = dict(exempt or {})
    for law, check in LAWS.items():
        if law in skipped:
            continue
        try:
            reason = check(lab)
        except LawViolation as broken:
            raise ConformanceError(name, law, str(broken)) from broken
        except TurngymError as error:
            notes = getattr(error, "__notes__", ())
            detail = "; ".join([f"{type(error).__name__}: {error}", *notes])
            raise ConformanceError(name, law, detail) from error
        if reason is not None:
            skipped[law] = reason
    passed = tuple(law for law in LAWS if law not in skipped)
    return Report(env=name, passed=passed, skipped=skipped)


def _choose_maker(
    env: str | Callable[..., gym.Env[Any, Any]], settings: Mapping[str, Any]
) -> Callable[[], gym.Env[Any, Any]]:
    if isinstance(env, str):
        module, _, env = env.rpartition(":")
        if module:
            import_module(module)
        return partial(gym.make, gym.spec(env), **settings)
    if callable(env):
        return partial(env, **settings)
    raise BadValueError(
        f"check_text_env: got a {type(env).__name__}; expected an id or a function that "
        "makes the environment (the kit needs several copies)."
    )
