"""Play an episode, fork it, and see what another action would have brought.

Trees, the credit microscope and planners all rest on this: a fork is a copy of the episode at this
very state, so that two continuations differ in nothing but their actions.
"""

import gymnasium as gym

import turngym.envs


def main() -> dict[str, float]:
    """Play both continuations and return their rewards."""
    env = gym.make("SearchQA-v0", size="micro", hops=2)
    observation, _ = env.reset(seed=7, options={"split": "test", "task": 12})
    print(observation)
    env.step("<search> Pia Clay partner </search>")

    rewards = {}
    for query, answer in (("Pia Pond teacher", "Bea Brook"), ("Pia Clay teacher", "Pia Pond")):
        branch = turngym.envs.fork(env)
        observation, *_ = branch.step(f"<search> {query} </search>")
        _, reward, _, _, info = branch.step(f"<answer> {answer} </answer>")
        print(f"{query!r} leads to {answer!r}: reward {reward:g}, {info['status']}")
        rewards[answer] = float(reward)

    assert env.unwrapped.episode.turn == 1, "the original did not move"
    return rewards


if __name__ == "__main__":
    main()
