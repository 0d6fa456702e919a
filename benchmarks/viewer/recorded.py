"""Recorded episodes as a forest: one tree per episode, whole texts instead of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np

from ...agents.scripted import text_env
from ...algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn
from ...algos.training.rollout_dump import Pieces, RolloutDump
from ...envs.core.env import Status
from ...envs.core.errors import DataError, TurngymError
from ...envs.wrappers.record import Transcript, read_transcripts

ACCOUNTS = ("PaperCrawler-v0",)
"""Worlds that are played again to learn what each action found."""

_ONE = np.zeros(1, np.int64)
_NONE = np.zeros(1, np.float32)


def recorded_episodes(path: Path) -> tuple[RolloutDump, list[str]]:
    """Every episode of a file, those of one task in one group, and what the page should say.

    Raises:
        DataError: A line that is no episode, or no episode at all; names file and line.
    """
    groups: dict[tuple[str, str], Group] = {}
    pieces: dict[tuple[str, str], list[list[Pieces]]] = {}
    notes: list[str] = []
    env_ids: list[str] = []
    for episode in read_transcripts(path):
        key = episode.env_id, episode.task_id
        group = groups.setdefault(key, Group(f"{episode.env_id} {episode.task_id}", key[1]))
        accounts, why = _accounts(episode)
        tree, texts = _tree(episode, accounts)
        group.trees.append(tree)
        pieces.setdefault(key, []).append(texts)
        env_ids.append(episode.env_id)
        if why and why not in notes:
            notes.append(why)
    if not groups:
        raise DataError(f"{path}: holds no whole episode; was recording it interrupted?")
    about = {"env": ", ".join(dict.fromkeys(env_ids)), "sampled": False, "tokens": False}
    forest = Forest.of(list(groups.values()))
    return RolloutDump(step=0, about=about, forest=forest, pieces=list(pieces.values())), notes


def _tree(episode: Transcript, accounts: list[dict[str, Any]]) -> tuple[Tree, list[Pieces]]:
    tree, texts = Tree(), []
    newest: dict[int, int] = {}  # last turn by session
    found: dict[str, int] = {}  # turn that found a paper
    for i, step in enumerate(episode.steps):
        account = accounts[i] if accounts else {}
        parent = newest.get(step.session)
        crawl = account.get("crawl", {})
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
                account=account,
            )
        )
        newest[step.session] = i
        for deed in crawl.get("actions", ()):
            for paper in deed["found"]:
                found.setdefault(paper["id"], i)
        seen = episode.instructions + step.observation if i == 0 else step.observation
        texts.append(([seen], [step.action]))
    return tree, texts


def _accounts(episode: Transcript) -> tuple[list[dict[str, Any]], str]:
    """What each action did, from playing it again; empty, with the reason, where that fails."""
    if episode.env_id not in ACCOUNTS:
        return [], ""
    accounts = []
    try:
        env: gym.Env[Any, Any] = gym.make(episode.env_id, **episode.kwargs)
        options = {"split": episode.split, "task": episode.task_id}
        env.reset(seed=episode.seed, options=options)
        world = text_env(env)
        for number, step in enumerate(episode.steps, start=1):
            if world.episode.observation != step.observation:
                return [], f"Task {episode.task_id}: turn {number} plays differently here."
            env.step(step.action)
            accounts.append(dict(world.debug_info(world.episode)))
    except TurngymError as error:
        return [], f"Crawls are not shown: {error}"
    return accounts, ""
