"""Train two recipes over several seeds, and let the test decide whether they differ.

The seed is the unit: each has one value per recipe, the mean success of its training episodes, and
a verdict needs five of them.
"""

import json
from pathlib import Path

from turngym.algos import train_on
from turngym.envs.utils.seed_tests import compare_seeds, decide_seeds

RECIPES = ("grpo", "rloo")


def area(run_dir: Path) -> float:
    """Return the mean success of a run's training episodes."""
    rows = map(json.loads, (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    values = [row["rollout/success_frac"] for row in rows if "rollout/success_frac" in row]
    return sum(values) / len(values)


def main(folder: str = "runs/compare", seeds: int = 5, steps: int = 12) -> str:
    """Train, compare, and return the verdict."""
    if seeds < 2:
        raise ValueError(f"seeds is {seeds}; expected at least 2, and 5 for a verdict.")
    areas: dict[str, list[float]] = {name: [] for name in RECIPES}
    for seed in range(seeds):
        for name in RECIPES:
            run_dir = Path(folder) / f"{name}-{seed}"
            settings = {"optim.lr": 3e-3, "groups_per_step": 16}
            train_on(
                "Bandit-v0",
                name,
                recipe_settings=settings,
                steps=steps,
                eval_n=20,
                max_tokens=3,
                seed=seed,
                run_dir=run_dir,
            )
            areas[name].append(area(run_dir))
    first, second = (areas[name] for name in RECIPES)
    test = compare_seeds(first, second, bound=0.1)
    verdict, why = decide_seeds(test, test.p_value, min_effect=0.05, bound=0.1)
    print(
        f"{RECIPES[0]} less {RECIPES[1]}: {test.difference:+.3f} "
        f"({test.low95:+.3f} to {test.high95:+.3f}), p {test.p_value:.2f}"
    )
    print(f"{verdict}: {why}")
    return verdict


if __name__ == "__main__":
    main()
