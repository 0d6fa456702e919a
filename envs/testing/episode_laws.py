"""Laws about episodes: rewards, status, limits, info, tasks, returns of scripted policies."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.digest import digest_of
from ..core.env import Policy, TextEnv
from ..core.episode import GoldAnswer, Info, Maybe
from ..core.errors import EnvFault
from ..core.tasks import Task
from .harness import GARBAGE, Lab, LawViolation, Play, check_texts, refuses_to_step

_TINY = 1e-6
_STATUSES = ("running", "solved", "failed", "truncated", "env_error")
_VERDICTS = ("solved", "failed")
_STACKED = (int, float, np.number, np.ndarray, dict)
"""Of these types gymnasium's vector environments make arrays of that very type, or dicts."""


def nothing_breaks(lab: Lab) -> None:
    """No episode of a whole installation ends with ``env_error``."""
    for _ in _play_sample(lab):  # playing raises
        pass


def rewards_are_named_finite_and_in_range(lab: Lab) -> None:
    """Every reward is a finite float, the sum of its terms; returns stay in the reward range.

    The term ``noise`` stays within the environment's ``reward_noise``.
    """
    low, high = lab.text_env.reward_range
    noise = lab.text_env.reward_noise
    for play in _play_sample(lab):
        for turn, step in enumerate(play.steps, start=1):
            terms = step.info.get("reward_terms")
            if type(step.reward) is not float or not math.isfinite(step.reward):
                raise LawViolation(
                    f"turn {turn}: reward is {step.reward!r}; expected a finite float"
                )
            if not isinstance(terms, dict) or not math.isclose(
                math.fsum(terms.values()), step.reward, abs_tol=1e-9
            ):
                raise LawViolation(f"turn {turn}: reward {step.reward} is not the sum of {terms}")
            if abs(terms.get("noise", 0.0)) > noise:
                raise LawViolation(
                    f"turn {turn}: noise {terms['noise']} is beyond {noise}, the bound"
                )
        if not low - _TINY <= play.total <= high + _TINY:
            raise LawViolation(f"return {play.total} is outside the reward range [{low}, {high}]")


def expert_reaches_the_top(lab: Lab) -> str | None:
    """The scripted expert solves every task of the sample with the highest return, noise aside.

    In an open-ended environment it earns more than silence in every task, and on average more than
    mixed play.
    """
    expert = lab.expert(lab.env, mistakes=0.0, seed=0)
    if expert is None:
        return "the environment has no scripted expert"
    if lab.text_env.open_ended:
        return _expert_earns_more(lab, expert)
    high = lab.text_env.reward_range[1] - lab.text_env.reward_noise
    for task in lab.tasks(lab.text_env):
        play = lab.play(lab.env, 1, expert, _reset_options(task))
        if play.status != "solved" or play.earned < high - _TINY:
            raise LawViolation(
                f"task {task.id!r}: status {play.status!r}, return {play.earned} after "
                f"{len(play.steps)} turns; expected solved with {high}. Where the best return "
                "differs from task to task, set open_ended = True, or divide by the task's best"
            )
    return None


def null_and_garbage_stay_at_the_floor(lab: Lab) -> None:
    """Empty and senseless actions never solve a task nor earn anything."""
    floor = max(0.0, lab.text_env.reward_range[0] + lab.text_env.reward_noise)
    for task, _ in zip(lab.tasks(lab.text_env), range(6), strict=False):
        for text in GARBAGE:
            play = lab.play(lab.env, 1, lambda *_, text=text: text, _reset_options(task))
            if play.status == "solved" or play.total > floor + _TINY:
                raise LawViolation(
                    f"task {task.id!r}: the action {text!r} alone gives {play.status!r} and "
                    f"return {play.total}; expected at most {floor}"
                )


def answer_is_hidden(lab: Lab) -> str | None:
    """No secret of the episode stands in its first prompt."""
    count = 0
    for task in lab.tasks(lab.text_env):
        observation, _ = lab.env.reset(seed=1, options=_reset_options(task))
        prompt = f"{lab.text_env.instructions}{observation}"
        secrets = lab.text_env.hidden_answers(lab.text_env.episode)
        for secret in check_texts("hidden_answers()", secrets):
            count += 1
            if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", prompt, re.IGNORECASE):
                raise LawViolation(
                    f"task {task.id!r}: the secret {secret!r} stands in the first prompt"
                )
    return None if count else "the environment names no secrets"


def accepted_answers_are_given(lab: Lab) -> None:
    """With ``has_gold`` every task has accepted answers, all behind the same opener."""
    if not lab.text_env.has_gold:
        return
    for task in lab.tasks(lab.text_env):
        lab.env.reset(seed=1, options=_reset_options(task))
        given = list(lab.text_env.gold_answers(lab.text_env.episode))
        odd = [answer for answer in given if not isinstance(answer, GoldAnswer)]
        if odd or len({answer.opener for answer in given}) != 1:
            raise LawViolation(
                f"task {task.id!r}: gold_answers returns {given!r:.200}; expected GoldAnswer, at "
                "least one, all with the same opener, as has_gold says"
            )


def no_step_after_the_end(lab: Lab) -> None:
    """A step after the end, and one before the first reset, raise EpisodeError."""
    if not refuses_to_step(lab.make()):
        raise LawViolation("a step before the first reset was taken")
    lab.play(lab.env, 2, lab.mixed(2))
    if not refuses_to_step(lab.env):
        raise LawViolation("a step after the end of the episode was taken")


def no_episode_outlasts_the_limit(lab: Lab) -> None:
    """An episode lasts at most ``max_turns`` actions, and is truncated there if it still runs.

    It may be truncated before, at a limit of the environment's own
    (:meth:`turngym.envs.core.episode.Outcome.truncated`).
    """
    plays = [*_play_sample(lab), lab.play(lab.env, 0, lambda *_: "")]
    for play in plays:
        turns, limit = len(play.steps), play.limit
        if turns > limit or (turns == limit and play.status == "running"):
            raise LawViolation(f"an episode goes on after {limit} actions, the limit")


def status_follows_the_flags(lab: Lab) -> None:
    """``terminated`` is the task's verdict, ``truncated`` a limit's; never both, never early."""
    for play in _play_sample(lab):
        if play.info.get("status") != "running":
            raise LawViolation(
                f"reset gives status {play.info.get('status')!r}; expected 'running'"
            )
        for turn, step in enumerate(play.steps, start=1):
            flags, status = (step.terminated, step.truncated), step.info.get("status")
            want = (status in _VERDICTS, status in ("truncated", "env_error"))
            if flags != want or type(flags[0]) is not bool or type(flags[1]) is not bool:
                raise LawViolation(
                    f"turn {turn}: status {status!r} with terminated {flags[0]!r} and truncated "
                    f"{flags[1]!r}; expected {want[0]} and {want[1]}"
                )


def info_is_complete_and_typed(lab: Lab) -> None:
    """Every info has exactly the keys of :class:`Info` and of ``details``, of the right types.

    What ``details`` adds may have any type, but a number, an array or a dict keeps it: Gymnasium's
    vector environments make an array of the first type that they meet.
    """
    known: dict[str, Any] = {}
    for play in _play_sample(lab):
        own = lab.text_env.details(lab.text_env.episode)
        keys = {*Info.__annotations__, *own}
        _check_info("reset", play.info, keys, turn=0, ended=False)
        for turn, step in enumerate(play.steps, start=1):
            _check_info(f"turn {turn}", step.info, keys, turn, ended=turn == len(play.steps))
        for turn, info in enumerate([play.info, *(step.info for step in play.steps)]):
            for key in own:
                _check_one_type(f"turn {turn}: info", key, info[key], known)


def debug_info_is_json_data(lab: Lab) -> None:
    """What ``debug_info`` says of every action can be written as JSON."""
    if type(lab.text_env).debug_info is TextEnv.debug_info:
        return  # it says nothing

    def record(act: Callable[..., str]) -> Callable[..., str]:
        def acting(env: Any, observation: str, info: dict[str, Any]) -> str:
            if info["turn"]:
                _take_debug_info(lab, env)
            return act(env, observation, info)

        return acting

    for number, task in enumerate(lab.tasks(lab.text_env)):
        lab.play(lab.env, number, record(lab.mixed(number)), _reset_options(task))
        _take_debug_info(lab, lab.env)
        if number == lab.sample:
            break


def _take_debug_info(lab: Lab, env: Any) -> None:
    inner = lab.inner(env)
    try:
        inner.take_debug_info(inner.episode)
    except EnvFault as fault:
        raise LawViolation(f"turn {inner.episode.turn}: {fault}") from fault


def texts_are_in_the_space(lab: Lab) -> None:
    """Every observation lies in the observation space; instructions and stops are texts."""
    space, stop = lab.env.observation_space, lab.text_env.stop
    if not space.contains(lab.text_env.instructions):
        raise LawViolation(f"instructions {lab.text_env.instructions!r:.200} are not in {space}")
    if isinstance(stop, str) or not all(isinstance(text, str) and text for text in stop):
        raise LawViolation(f"stop is {stop!r:.200}; expected a tuple of texts that are not empty")
    for play in _play_sample(lab):
        for turn, text in enumerate([play.observation, *(s.observation for s in play.steps)]):
            if not space.contains(text):
                raise LawViolation(f"turn {turn}: observation {text!r:.200} is not in {space}")


def tasks_are_stable_and_splits_disjoint(lab: Lab) -> None:
    """Ids are unique and findable, digests equal in two copies, no content in two splits."""
    other = lab.inner(lab.make())
    ids: set[str] = set()
    home: dict[str, str] = {}
    for task in lab.tasks(lab.text_env):
        _check_task(lab, task, ids)
        if other.source.task(task.split, task.index).digest != task.digest:
            raise LawViolation(f"task {task.id!r} has another digest in another copy")
        content = digest_of(task.payload)
        if home.setdefault(content, task.split) != task.split:
            raise LawViolation(f"task {task.id!r} has the same content as one of {home[content]!r}")


def legal_actions_are_valid(lab: Lab) -> str | None:
    """Every listed action can be read, at every turn of an episode."""
    env = lab.make()
    env.reset(seed=4)
    if lab.legal_actions(env) is None:
        return "the environment does not list its actions"
    for move in lab.mixed_moves(4):
        for action in (lab.legal_actions(env) or [])[:50]:
            if not lab.inner(env).fork().step(action)[4]["valid_action"]:
                raise LawViolation(f"the listed action {action!r} cannot be read")
        env.step(move)
    return None


def _play_sample(lab: Lab) -> Iterator[Play]:
    """Yield mixed episodes over the splits, an expert's and an idle one."""
    for number, task in enumerate(lab.tasks(lab.text_env)):
        yield lab.play(lab.env, number, lab.mixed(number), _reset_options(task))
        if number == lab.sample:
            break
    if (expert := lab.expert(lab.env, mistakes=0.0, seed=0)) is not None:
        yield lab.play(lab.env, 0, expert)
    yield lab.play(lab.env, 0, lambda *_: "")


def _expert_earns_more(lab: Lab, expert: Policy) -> None:
    expert_mean = mixed_mean = 0.0
    for number, task in enumerate(lab.tasks(lab.text_env)):
        play = lab.play(lab.env, number, expert, _reset_options(task))
        silent = lab.play(lab.env, number, lambda *_: "", _reset_options(task))
        if play.total <= silent.total:
            raise LawViolation(
                f"task {task.id!r}: return {play.total}, and {silent.total} by silence"
            )
        expert_mean += play.total
        mixed_mean += lab.play(lab.env, number, lab.mixed(number), _reset_options(task)).total
    if expert_mean <= mixed_mean:
        raise LawViolation(f"returns sum to {expert_mean}, and to {mixed_mean} in mixed play")


def _reset_options(task: Task[Any]) -> dict[str, Any]:
    return {"split": task.split, "task": task.id}


def _check_task(lab: Lab, task: Task[Any], ids: set[str]) -> None:
    if task.id in ids:
        raise LawViolation(f"two tasks have the id {task.id!r}")
    ids.add(task.id)
    if lab.text_env.source.index_of(task.split, task.id) != task.index:
        raise LawViolation(f"task {task.id!r} is not found at its index {task.index}")
    _, info = lab.env.reset(seed=0, options={"split": task.split, "task": task.index})
    if (info["task_id"], info["split"]) != (task.id, task.split):
        raise LawViolation(
            f"task {task.index} of {task.split!r} was asked for, {info['task_id']!r} came"
        )


def _check_info(where: str, info: dict[str, Any], keys: set[str], turn: int, ended: bool) -> None:
    if set(info) != keys:
        odd = sorted(set(info) ^ keys)
        raise LawViolation(f"{where}: info misses or adds the keys {odd}")
    checks = {
        "task_id": isinstance(info["task_id"], str),
        "split": isinstance(info["split"], str),
        "turn": type(info["turn"]) is int and info["turn"] == turn,
        "status": info["status"] in _STATUSES,
        "valid_action": type(info["valid_action"]) is bool,
        "reward_terms": _is_numbers(info["reward_terms"]),
        "metrics": _is_numbers(info["metrics"]) and ("success" in info["metrics"]) == ended,
        "session": isinstance(info["session"], int),
        "parent_session": info["parent_session"] is None or isinstance(info["parent_session"], int),
        "verdict": info["verdict"] in (None, -1, 0, 1),
    }
    for key, good in checks.items():
        if not good:
            raise LawViolation(f"{where}: info[{key!r}] is {info[key]!r}")


def _check_one_type(where: str, key: str, value: Any, known: dict[str, Any]) -> None:
    """Check that ``value`` stacks with the first one of its place, which is noted in ``known``."""
    where = f"{where}[{key!r}]"
    before = known.setdefault(where.partition(": ")[2], value)
    kinds = {type(before), type(value)}
    if len(kinds) > 1 and any(issubclass(k, _STACKED) and k is not Maybe for k in kinds):
        raise LawViolation(
            f"{where} is {value!r:.100}, and was {before!r:.100} before; expected one type, or "
            "vector environments fail: they make an array of the first that they meet. An int "
            "that may be None is a turngym.envs.core.episode.Maybe"
        )
    if isinstance(value, dict):
        for inner, item in value.items():
            _check_one_type(where, inner, item, known)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and type(number) is float and math.isfinite(number)
        for key, number in value.items()
    )
