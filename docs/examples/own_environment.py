"""Write an environment, register it, and check it against the contract.

The guide on environments of your own has a larger one, with an expert, a starting model and
training.
"""

from dataclasses import dataclass

from turngym.envs import (
    EnvironmentSpec,
    Outcome,
    Report,
    Task,
    TextEnv,
    check_text_env,
    register_environment,
)
from turngym.envs.core.noisy_expert import NoisyExpert
from turngym.envs.core.tasks import parse_index

SIZES = {"train": 40, "dev": 20, "test": 20}
LONGEST = 20  # characters that are read as a number: an action may be of any length
FIRST = {"train": 0, "dev": 40, "test": 60}


class Numbers:
    """A task per number from 0 to 79."""

    def sizes(self):
        """Return the number of tasks in each split."""
        return SIZES

    def task(self, split, index):
        """Return a task."""
        return Task(f"{split}/{index}", split, index, FIRST[split] + index)

    def index_of(self, split, task_id):
        """Return the index of a task id."""
        return parse_index(split, task_id, SIZES[split])


@dataclass
class Counting:
    """The state of an episode: the number that comes next."""

    following: int


class CountOn(TextEnv[Counting, int]):
    """Name the next three numbers, one in each turn."""

    instructions = "Count on, one number in each turn, three in all.\n"
    stop = ("\n",)

    def __init__(self, *, max_turns=5, render_mode=None):
        super().__init__(source=Numbers(), max_turns=max_turns, render_mode=render_mode)

    def begin(self, task, random):  # noqa: ARG002
        """Start with the number of the task."""
        return Counting(task.payload + 1), f"{task.payload}\n"

    def play(self, episode, action):
        """Read a number."""
        if not action.strip().isdecimal() or len(action) > LONGEST:
            return Outcome.unreadable("write a number\n")
        state = episode.state
        if int(action) != state.following:
            return Outcome.failed("no\n", {"outcome": 0.0})
        state.following += 1
        if state.following > episode.task.payload + 3:
            return Outcome.solved("done\n", {"outcome": 1.0})
        return Outcome.move("and then?\n")

    def legal_actions(self):
        """Return the right number and its neighbours."""
        return [str(self.episode.state.following + d) for d in (-1, 0, 1)]


class Expert(NoisyExpert):
    """Counts right, but for a share of mistakes."""

    def __call__(self, env, observation, info):  # noqa: ARG002
        """Return the next number."""
        return str(env.unwrapped.episode.state.following + self.draw_mistake())


register_environment(
    EnvironmentSpec(
        id="CountOn-v0",
        entry_point="own_environment:CountOn",
        expert="own_environment:Expert",
        summary="name the next three numbers",
        sizes=(),
    )
)


def main() -> Report:
    """Check the environment and print what was checked."""
    report = check_text_env("own_environment:CountOn-v0")
    print(f"{report.env}: {len(report.passed)} laws of the contract hold")
    return report


if __name__ == "__main__":
    main()
