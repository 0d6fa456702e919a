"""What a crawl tells people: it agrees with what it tells programs, and names papers."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest

from turngym.agents.scripted import scripted, text_env
from turngym.envs.paper_crawler.scores import SELECTED_ABOVE


@pytest.mark.parametrize("task", [0, 5])
def test_accounts_agree_with_info(task: int) -> None:
    env = gym.make("PaperCrawler-v0", size="micro")
    world = text_env(env)
    observation, info = env.reset(seed=1, options={"split": "dev", "task": task})
    policy = scripted("heuristic", 0, world)
    answers = set(world.episode.task.payload.answers)
    found = set()
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
        told, crawl = world.debug_info(world.episode)["crawl"], info["crawl"]
        assert json.loads(json.dumps(told)) == told
        assert (told["session"], told["paper"]) == (crawl["session_id"], crawl["paper_id"])
        assert (told["queue"], told["waiting"]) == (crawl["queue_size"], crawl["frontier_size"])
        assert len(told["actions"]) == len(crawl["actions"])
        for deed, action in zip(told["actions"], crawl["actions"], strict=True):
            assert (deed["kind"], deed["arg"]) == (action["kind"], action["arg"])
            assert [p["id"] for p in deed["found"]] == action["new_ids"]
            for paper in deed["found"]:
                assert paper["title"] == world.library.find(paper["id"]).title
                assert paper["selected"] == (paper["score"] > SELECTED_ABOVE)
                assert paper["answer"] == (paper["id"] in answers)
                found.add(paper["id"])
    assert told["answers"] == len(answers)
    assert told["queue"] == len(found)


def test_other_worlds_tell_nothing() -> None:
    env = gym.make("SearchQA-v0", size="micro")
    env.reset(seed=1)
    world = text_env(env)
    assert dict(world.debug_info(world.episode)) == {}
