"""Write a credit rule, put it into GRPO, and train with it.

The rule reinforces the best path of each group and pushes all others down alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from turngym.algos import train_on
from turngym.algos.core.protocols import Credit, Credits
from turngym.algos.credit.group import by_prompt, on_every_token
from turngym.algos.recipes import grpo, recipe


@dataclass(frozen=True, kw_only=True)
class BestOfGroup(Credit):
    """The best of the group against the rest."""

    min_paths = 2

    def __call__(self, forest, annotations):  # noqa: ARG002
        """Return one advantage per action token."""
        returns = np.asarray(forest.returns())
        score = np.zeros(len(returns))
        for group in by_prompt(forest):
            best = returns[group] == returns[group].max()
            if not best.all():
                score[group] = np.where(best, 1.0, -1.0)
        return Credits(on_every_token(forest, score))


@recipe("the best of the group against the rest", small={"optim.lr": 3e-3, "rollout.n": 8})
def bestofgroup():
    """GRPO with another credit rule."""
    return replace(grpo(), name="bestofgroup", credit=BestOfGroup())


def main(run_dir: str = "runs/bestofgroup", steps: int = 20) -> tuple[float, float]:
    """Train on Bandit-v0 and return success before and after."""
    result = train_on(
        "Bandit-v0",
        "bestofgroup",
        recipe_settings={"groups_per_step": 16, "optim.minibatches": 2},
        steps=steps,
        eval_n=40,
        max_tokens=3,
        run_dir=run_dir,
    )
    before, after = result.before[0].success.mean, result.after[0].success.mean
    print(f"success {before:.2f} before, {after:.2f} after {steps} steps")
    return before, after


if __name__ == "__main__":
    main()
