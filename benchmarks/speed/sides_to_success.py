"""The two sides of ``test_speed_to_success.py``, each a process of its own.

``python sides_to_success.py ours|theirs MODEL PRECISION SEED OUT``. Apart from the measurement, so
that no side's seconds hold what that one needs.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

PROMPTS, COMPLETIONS, TOKENS, LR = 16, 8, 16, 3e-4
STEPS = int(os.environ.get("TURNGYM_BENCH_STEPS", "40"))
SETTINGS = {"size": "micro"}
SEARCH = re.compile(r"<search>(.*?)</search>", re.DOTALL)
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
TEMPLATE = (
    "{% for m in messages %}{{ (m.content or '') | replace(NOTE, '') }}"
    "{% for c in m.tool_calls or [] %}{% set given = c.function.arguments %}"
    "<{{ c.function.name }}> {{ given.query if given.query is defined else given | tojson }} "
    "</{{ c.function.name }}>{% endfor %}{% endfor %}"
)
"""The starter's dialogues as a chat template: the texts one after the other."""


class Trace:
    """What a side reports: when each step was done, and the success of its episodes."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def add(self, success: float) -> None:
        """Note that a step is done."""
        row = {"wall": time.time(), "cpu": time.process_time(), "success": success}
        self.rows.append(row)

    def write(self, out: Path, policy: Path) -> None:
        """Write it down, and where the trained model is."""
        (out / "trace.json").write_text(json.dumps({"rows": self.rows, "policy": str(policy)}))


def ours(model: str, precision: str, seed: int, out: Path) -> None:
    """Train with this library, as ``turngym train`` does."""
    from turngym.benchmarks.runtime.threads import prepare

    prepare(small=True)
    from turngym.algos import Budget, EnvConfig, LearnerSettings, TrainConfig, make_recipe, train
    from turngym.algos.runs.progress import Silent
    from turngym.algos.runs.run_dir import read_metrics
    from turngym.algos.training.checkpoint import newest_whole

    trace = Trace()

    class Clock(Silent):
        def update(self, *_: Any) -> None:
            trace.add(float("nan"))

    settings = {
        "rollout.n": COMPLETIONS,
        "groups_per_step": PROMPTS,
        "optim.lr": LR,
        "optim.minibatches": 1,
        "optim.epochs": 1,
        "optim.warmup_steps": 0,
        "optim.weight_decay": 0.0,
        "loss.kl.coef": 0.0,
        "loss.entropy_coef": 0.0,
    }
    config = TrainConfig(
        env=EnvConfig(id="SearchQA-v0", settings=SETTINGS),
        model=model,
        recipe=make_recipe("grpo", settings, small=True),
        budget=Budget(steps=STEPS),
        learner=LearnerSettings(precision=precision),  # type: ignore[arg-type]
        engine_dtype=precision,  # type: ignore[arg-type]
        seed=seed,
        max_tokens=TOKENS,
        max_batch=PROMPTS * COMPLETIONS,
        checkpoint_every=STEPS,
        device="cpu",
    )
    train(config, out / "run", Clock())
    rows = read_metrics(out / "run" / "metrics.jsonl")
    for row, logged in zip(trace.rows, rows, strict=True):
        row["success"] = logged["rollout/success_frac"]
    policy = newest_whole(out / "run" / "checkpoints")
    assert policy is not None
    trace.write(out, policy)


def theirs(model: str, precision: str, seed: int, out: Path) -> None:
    """Train with TRL through the adapter."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
    from transformers.utils import logging
    from trl import GRPOConfig, GRPOTrainer

    from turngym.envs.adapters.tool_view import NOTE
    from turngym.envs.adapters.trl_environment import EnvironmentFactory, episode_info, trl_rows

    logging.disable_progress_bar()
    torch.set_num_threads(1)
    trace = Trace()

    class Calls(PreTrainedTokenizerFast):
        """The starter's own form of calls, in place of JSON: it never saw another."""

        def parse_response(self, response: Any, *_: Any, **__: Any) -> dict[str, Any]:
            text = self.decode(response)
            call = SEARCH.search(text)
            if call is None:
                return {"role": "assistant", "content": text}
            function = {"name": "search", "arguments": {"query": call[1].strip()}}
            calls = [{"type": "function", "function": function}]
            return {"role": "assistant", "content": "", "tool_calls": calls}

    tokenizer = Calls.from_pretrained(model)
    tokenizer.response_template = {"turngym": True}  # so that TRL asks parse_response
    tokenizer.chat_template = TEMPLATE.replace("NOTE", json.dumps(NOTE))
    policy = AutoModelForCausalLM.from_pretrained(model)
    ends = [tokenizer.convert_tokens_to_ids(tag) for tag in ("</search>", "</answer>")]
    policy.generation_config.eos_token_id = [tokenizer.eos_token_id, *ends]

    def reward(environments: list[Any], completions: list[Any], **_: Any) -> list[float]:
        """Hand in the last message's answer; the environment's return."""
        returns, solved = [], 0
        for environment, messages in zip(environments, completions, strict=True):
            answer = ANSWER.search(str(messages[-1].get("content") or ""))
            if answer is not None and episode_info(environment)["status"] == "running":
                environment.answer(answer=answer[1].strip())
            returns.append(environment._score(None))
            solved += episode_info(environment)["status"] == "solved"
        shares.append(solved / len(returns))
        return returns

    shares: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            trace.add(shares[-1])

    trainer = GRPOTrainer(
        model=policy,
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(out / "trl"),
            per_device_train_batch_size=PROMPTS * COMPLETIONS,
            num_generations=COMPLETIONS,
            max_completion_length=400,
            generation_kwargs={"max_new_tokens": TOKENS},
            max_tool_calling_iterations=4,
            max_steps=STEPS,
            learning_rate=LR,
            lr_scheduler_type="constant",
            warmup_steps=0,
            weight_decay=0.0,
            max_grad_norm=1.0,
            beta=0.0,
            epsilon=0.2,
            loss_type="bnpo",
            temperature=1.0,
            use_cpu=True,
            bf16=precision == "bfloat16",
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            logging_steps=10**6,
            disable_tqdm=True,
            shuffle_dataset=False,
            seed=seed,
        ),
        train_dataset=Dataset.from_list(
            trl_rows("SearchQA-v0", PROMPTS * STEPS, seed=seed, settings=SETTINGS)
        ),
        processing_class=tokenizer,
        environment_factory=EnvironmentFactory("SearchQA-v0", SETTINGS, own_reward=False),
        callbacks=[Clock()],
    )
    trainer.train()
    policy.generation_config.eos_token_id = tokenizer.eos_token_id
    policy.save_pretrained(out / "policy")
    trace.write(out, out / "policy")


SIDES = {"ours": ours, "theirs": theirs}


if __name__ == "__main__":
    SIDES[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
