"""Out of memory names the knob and leaves a run that goes on; other models are refused by name."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_models import model
from helpers.training_runs import config, final_weights, run, same

from turngym.agents.models.out_of_memory import MemoryFullError, NoRoomError, explain_out_of_memory
from turngym.algos.learner.learner import Learner, LossNotFiniteError
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes.grpo import grpo
from turngym.algos.training.checkpoint import load_checkpoint, newest_whole
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, DataError, EpisodeError

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore words.")


def full_at(trainer: Trainer, step: int, module: Any) -> None:
    """From this step on the module's forward pass finds no memory."""

    def refuse(*_: Any) -> None:
        if trainer.counters.step >= step:
            raise FULL

    module.register_forward_pre_hook(refuse)


def test_the_learner_names_its_knob_and_the_run_goes_on_with_less(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = config(tiny_model, evals=())
    with Trainer(setup, tmp_path) as trainer:
        full_at(trainer, 3, trainer.learner.policy)
        full_at(trainer, 3, trainer.learner.policy.get_decoder())
        with pytest.raises(MemoryFullError) as refused:
            trainer.run()
    said = str(refused.value)
    assert "--micro-batch-tokens 4096, was 8192" in said
    assert "--gradient-checkpointing" in said
    assert "last checkpoint" in said
    assert "2.00 GiB" in said
    newest = newest_whole(tmp_path / "checkpoints")
    assert newest is not None
    assert newest.name == "step-000002"
    less = dataclasses.replace(setup.learner, micro_batch_tokens=64, gradient_checkpointing=True)
    assert run(dataclasses.replace(setup, learner=less, max_batch=2), tmp_path).steps == 4
    odd = dataclasses.replace(setup, learner=less, max_batch=2, max_tokens=4)
    with pytest.raises(BadValueError, match="max_tokens: was 5, now 4"):
        Trainer(odd, tmp_path)


def test_the_engine_names_its_knob(tiny_model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    with Trainer(config(tiny_model, evals=()), tmp_path) as trainer:

        def refuse(*_: Any) -> None:
            raise FULL

        monkeypatch.setattr(trainer.engine, "_sample", refuse)
        with pytest.raises((MemoryFullError, EpisodeError), match="--max-batch 32, was 64"):
            trainer.run()


def test_the_cpus_own_words_are_known_and_others_pass() -> None:
    full = pytest.raises(MemoryFullError, match="out of memory while reading: take less")
    with full, explain_out_of_memory("reading", "take less."):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes")
    sent = pickle.loads(pickle.dumps(MemoryFullError("full: take less", "full")))
    assert (str(sent), sent.what) == ("full: take less", "full")
    room = pickle.loads(pickle.dumps(NoRoomError("no room.", "Take less.")))
    assert (str(room), room.what) == ("no room. Take less.", "no room.")
    with pytest.raises(RuntimeError, match="something else"), explain_out_of_memory("reading", "x"):
        raise RuntimeError("something else")
    with pytest.raises(BadValueError), explain_out_of_memory("reading", "x"):
        raise BadValueError("can't allocate memory is only a text here")


def test_a_nan_is_found_before_the_weights_move(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, evals=())
    with Trainer(setup, tmp_path) as trainer:
        policy = trainer.learner.policy
        before: dict[str, torch.Tensor] = {}

        def poison(_module: Any, _args: Any, out: Any) -> Any:
            if trainer.counters.step < 2:
                return None
            if not before:
                before.update({n: w.clone() for n, w in policy.state_dict().items()})
            return out * float("nan")

        policy.get_output_embeddings().register_forward_hook(poison)
        with pytest.raises(LossNotFiniteError, match=r"not finite \(loss nan, "):
            trainer.run()
        assert same(before, dict(policy.state_dict()))
    assert same(final_weights(tmp_path, 2), _untied(before))
    assert run(setup, tmp_path).steps == 4


def _untied(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: w for name, w in weights.items() if name != "lm_head.weight"}


def test_a_checkpoint_of_another_architecture_is_refused_by_name(
    tiny_model: Path, tmp_path: Path
) -> None:
    run(config(tiny_model, evals=()), tmp_path)
    other = Learner(model("Llama"), grpo(), pad_id=0, settings=LearnerSettings())
    with pytest.raises(DataError) as refused:
        load_checkpoint(tmp_path / "checkpoints" / "step-000004", other)
    said = str(refused.value)
    assert "is of a Qwen2ForCausalLM, this run's model is a LlamaForCausalLM" in said
    assert "num_attention_heads 2 instead of 4" in said
