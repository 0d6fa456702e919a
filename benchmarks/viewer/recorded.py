"""Recorded episodes as a forest: one tree per episode, whole texts instead of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np

from ...agents.scripted import text_env
from ...algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn
from ...algos.training.rollout_dump import Pieces, RolloutDump
from ...envs.core.env import Status, TextEnv
from ...envs.core.errors import DataError, TurngymError, UnknownNameError
from ...envs.core.registration import environment_class
from ...envs.wrappers.record import Transcript, read_transcripts

_ONE = np.zeros(1, np.int64)
_NONE = np.zeros(1, np.float32)


def recorded_episodes(path: Path) -> tuple[RolloutDump, list[str]]:
    """Read the episodes of a file, one group per task, and notes for the page.

    Tasks of one id and other content, as of other settings, are other tasks.

    Raises:
        DataError: A line is not an episode, or there is none; names file and line.
    """
    groups: dict[tuple[str, str, str], Group] = {}
    pieces: dict[tuple[str, str, str], list[list[Pieces]]] = {}
    notes: list[str] = []
    env_ids: list[str] = []
    bare = 0
    for episode in read_transcripts(path):
        if not episode.steps:  # nothing was done in it, so there is no turn to show
            bare += 1
            continue
        key = episode.env_id, episode.task_id, episode.task_digest
        group = groups.setdefault(key, Group(f"{episode.env_id} {episode.task_id}", key[1]))
        infos, why = _replay_infos(episode)
        tree, texts = _tree(episode, infos)
        group.trees.append(tree)
        pieces.setdefault(key, []).append(texts)
        env_ids.append(episode.env_id)
        if why and why not in notes:
            notes.append(why)
    if not groups:
        raise DataError(f"{path}: contains no episode with a turn; was the recording interrupted?")
    if bare:
        notes.append(f"{bare} episode{'s' * (bare > 1)} without a turn left out.")
    about = {"env": ", ".join(dict.fromkeys(env_ids)), "sampled": False, "tokens": False}
    forest = Forest.of(list(groups.values()))
    return RolloutDump(step=0, about=about, forest=forest, pieces=list(pieces.values())), notes


def _tree(episode: Transcript, infos: list[dict[str, Any]]) -> tuple[Tree, list[Pieces]]:
    tree, texts = Tree(), []
    newest: dict[int, int] = {}  # last turn by session
    found: dict[str, int] = {}  # turn that found a paper
    for i, step in enumerate(episode.steps):
        debug_info = infos[i] if infos else {}
        parent = newest.get(step.session)
        crawl = debug_info.get("crawl", {})
        asker = found.get(crawl.get("paper", ""), i - 1)
        edge = Edge.CONTINUE if parent is not None or i == 0 else Edge.SPAWN
        last = i == len(episode.steps) - 1
        metrics = tuple((k, float(v)) for k, v in episode.metrics.items()) if last else ()
        at = ROOT if i == 0 else (asker if parent is None else parent)
        tree.add(
            Turn(
                parent=at,
                edge=edge,
                obs_ids=_ONE,
                act_ids=_ONE,
                logprobs=_NONE,
                entropies=_NONE,
                rewards=np.array([step.reward], np.float32),
                status=cast("Status", step.status),
                action=step.action,
                valid=step.valid,
                reward_terms=tuple((k, float(v)) for k, v in step.terms.items()),
                metrics=metrics,
                previous=None if at == i - 1 else i - 1,
                debug_info=debug_info,
            )
        )
        newest[step.session] = i
        for deed in crawl.get("actions", ()):
            for paper in deed["found"]:
                found.setdefault(paper["id"], i)
        seen = episode.instructions + step.observation if i == 0 else step.observation
        texts.append(([seen], [step.action]))
    return tree, texts


def _has_debug_info(env_id: str) -> bool:
    """Return whether an environment reports what an action did, so that a replay is of use."""
    try:
        env_class: Any = environment_class(env_id)
    except UnknownNameError:
        return False
    return env_class.debug_info is not TextEnv.debug_info


def _replay_infos(episode: Transcript) -> tuple[list[dict[str, Any]], str]:
    """Replay an episode for the debug info of its actions; empty with the reason on failure."""
    if not _has_debug_info(episode.env_id):
        return [], ""
    infos = []
    try:
        env: gym.Env[Any, Any] = gym.make(episode.env_id, **episode.kwargs)
        options = {"split": episode.split, "task": episode.task_id}
        env.reset(seed=episode.seed, options=options)
        inner = text_env(env)
        for number, step in enumerate(episode.steps, start=1):
            if inner.episode.observation != step.observation:
                return [], f"Task {episode.task_id}: turn {number} differs in the replay."
            env.step(step.action)
            infos.append(inner.take_debug_info(inner.episode))
    except TurngymError as error:
        return [], f"Crawls are not shown: {error}"
    return infos, ""
