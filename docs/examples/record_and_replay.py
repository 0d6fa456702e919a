"""Record episodes, replay them, and find an edited one out.

The leaderboard works like this: an entry holds actions and a hash chain of observations, never a
score, and verification plays it again.
"""

import dataclasses
import tempfile
from pathlib import Path

import gymnasium as gym

import turngym.envs
from turngym.agents import ExpertPolicy, run_episode


def main() -> tuple[bool, str]:
    """Return whether the record replays, and what is wrong with the edited one."""
    file = Path(tempfile.mkdtemp()) / "episodes.jsonl"
    with turngym.envs.RecordEpisodes(gym.make("Game24-v0", size="micro"), file) as env:
        for task in range(3):
            run_episode(env, ExpertPolicy(), seed=0, options={"split": "dev", "task": task})

    report = turngym.envs.replay(file)
    print(f"{report.turns} actions replayed, all the same: {report.same}")

    first = next(iter(turngym.envs.read_transcripts(file)))
    last = dataclasses.replace(first.steps[-1], reward=2.0)
    edited = dataclasses.replace(first, steps=(*first.steps[:-1], last))
    found = turngym.envs.replay(edited)
    print(f"a better reward was written in: turn {found.turn}, {found.difference}")
    return report.same, found.difference


if __name__ == "__main__":
    main()
