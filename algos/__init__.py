"""Algorithms: rollout x credit x loss, the learner, and the training loop.

A run takes three lines; the same call again resumes an interrupted one:

    from turngym.algos import train_on

    result = train_on("SearchQA-v0", "grpo", settings={"size": "micro"}, max_tokens=16)
    print(result.before[0].success.mean, result.after[0].success.mean)

or, with everything in sight, some more:

    from turngym.agents.warm_start.cache import ensure_starter
    from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train

    env = EnvConfig(id="SearchQA-v0", settings={"size": "micro"})
    result = train(
        TrainConfig(
            env=env,
            model=str(ensure_starter("SearchQA-v0")),
            recipe=make_recipe("grpo", {"optim.lr": 3e-4}, small=True),
            budget=Budget(steps=40),
            evals=(EvalConfig(name="dev", env=env, split="dev", n=200),),
            max_tokens=16,
        ),
        "runs/first",
    )
    print(result.before[0].success.mean, result.after[0].success.mean)

The names below load their modules when first used, so that importing this stays cheap.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
