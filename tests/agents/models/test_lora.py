"""Adapters: the reference without a second copy, resuming, and what a checkpoint holds."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.grown import forest
from helpers.packaged_model import NAME, packaged
from helpers.small_models import model
from helpers.training_runs import Killed, config, kill_after, numbers, run, small
from safetensors.torch import load_file

from turngym.agents.models.export import export_merged
from turngym.agents.models.loading import load_model
from turngym.agents.models.lora import LoraSettings, has_plain_lora, merged_view, with_lora
from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credits
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.scoring.scoring import TokenModel, WithoutAdapter
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import Clip, Kl, PolicyLoss
from turngym.algos.recipes.grpo import grpo
from turngym.algos.recipes.ppo import ppo
from turngym.algos.training.policy_files import save_policy
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, DataError

LORA = LoraSettings(rank=4)


def with_kl() -> Recipe:
    recipe = grpo()
    loss = PolicyLoss(clip=Clip(low=0.2, high=0.2), kl=Kl(coef=0.1))
    optim = replace(recipe.optim, lr=3e-2, warmup_steps=0, minibatches=1)
    return replace(recipe, loss=loss, optim=optim)


def learner(folder: Path, recipe: Recipe, **settings: Any) -> Learner:
    policy = with_lora(load_model(folder, device="cpu"), LORA)
    kept = LearnerSettings(precision="float32", **settings)
    return Learner(policy, recipe, pad_id=0, settings=kept, seed=3)


def credits_for(grown: Forest) -> Credits:
    rng = np.random.default_rng(1)
    return Credits([rng.normal(size=grown.n_act(p)).astype(np.float32) for p in grown])


def steps(one: Learner, n: int = 3) -> list[dict[str, float]]:
    grown = forest()
    return [
        one.update(grown, {"ref_logprobs": one.ref_logprobs(grown)}, credits_for(grown))
        for _ in range(n)
    ]


def test_the_adapter_switched_off_is_the_reference_and_no_copy(tiny_model: Path) -> None:
    lean, copied = (learner(tiny_model, with_kl()) for _ in range(2))
    assert isinstance(lean.models.reference, WithoutAdapter)
    assert lean.models.reference.model is lean.policy
    frozen = copy.deepcopy(copied.policy).requires_grad_(False)
    copied.models.reference = TokenModel(frozen, 1.0)
    ours, theirs = steps(lean), steps(copied)
    assert [row["loss/kl_nats"] for row in ours] == pytest.approx(
        [row["loss/kl_nats"] for row in theirs], rel=1e-4, abs=1e-7
    )
    assert ours[0]["loss/kl_nats"] == pytest.approx(0.0, abs=1e-6)
    assert ours[-1]["loss/kl_nats"] > 1e-4
    assert ours[-1]["update/loss"] == pytest.approx(theirs[-1]["update/loss"], rel=1e-4)


def test_the_models_own_weights_stay_bit_for_bit(tiny_model: Path) -> None:
    one = learner(tiny_model, with_kl())
    steps(one)
    plain = load_model(tiny_model, device="cpu").state_dict()
    own = one.policy.get_base_model().state_dict()
    base = {name.replace(".base_layer", ""): w for name, w in own.items() if "lora" not in name}
    assert base.keys() == plain.keys()
    assert all(torch.equal(base[name], plain[name]) for name in plain)


@pytest.mark.parametrize("shared_prefix", [True, False])
def test_layers_run_again_give_the_same_gradient(tiny_model: Path, shared_prefix: bool) -> None:
    made = []
    for again in (False, True):
        one = learner(
            tiny_model, with_kl(), gradient_checkpointing=again, shared_prefix=shared_prefix
        )
        steps(one, 1)
        made.append(torch.cat([p.grad.flatten() for p in one._param_groups()[0]]))
    assert (made[0] - made[1]).norm() <= 1e-5 * made[0].norm()
    assert made[0].norm() > 0


@pytest.mark.slow
def test_a_killed_run_with_adapters_ends_in_the_same_numbers(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = config(tiny_model, recipe=small(ppo, lr=2e-2), lora=LORA, evals=())
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        kill_after(trainer, 3)
        with pytest.raises(Killed):
            trainer.run()
    run(setup, tmp_path / "killed")
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "straight")
    last = tmp_path / "straight" / "checkpoints" / "step-000004"
    assert not (last / "model.safetensors").exists()
    tuned = load_file(last / "adapter_model.safetensors")
    assert all("lora_" in name for name in tuned)
    assert any(w.abs().max() > 0 for name, w in tuned.items() if "lora_B" in name)
    export_merged(last, tmp_path / "whole")
    whole, again = load_model(tmp_path / "whole", device="cpu"), load_model(last, device="cpu")
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(weight, again.state_dict()[name])


def test_adapters_and_whole_weights_are_not_mixed_up(tiny_model: Path, tmp_path: Path) -> None:
    from turngym.algos.training.checkpoint import load_checkpoint

    run(config(tiny_model, lora=LORA, evals=()), tmp_path)
    last = tmp_path / "checkpoints" / "step-000004"
    whole = Learner(load_model(tiny_model, device="cpu"), grpo(), pad_id=0)
    with pytest.raises(DataError, match=r"holds adapters \(LoRA\), this run trains all weights"):
        load_checkpoint(last, whole)


@pytest.mark.parametrize(
    ("family", "target", "what", "possible"),
    [
        ("Qwen2", "lm_head", "output layer", "down_proj, gate_proj, k_proj, o_proj, q_proj"),
        ("Qwen2", "model.embed_tokens", "input embedding", "up_proj, v_proj; or 'all-linear'"),
        ("GPT2", "wte", "input embedding", "c_attn, c_fc, c_proj; or 'all-linear'"),
    ],
)
def test_one_of_two_layers_with_the_same_weight_gets_no_adapters(
    family: str, target: str, what: str, possible: str
) -> None:
    """The engine sampled from another policy than the learner trained, by more than a nat."""
    net = model(family, tie_word_embeddings=True)
    words = rf"the target '{target}' is its {what}, .*{possible}"
    with pytest.raises(BadValueError, match=words):
        with_lora(net, LoraSettings(targets=("c_attn", "q_proj", target)))
    assert not any("lora_" in name for name, _ in net.named_parameters())
    with_lora(net, LoraSettings())
    apart = model("Qwen2", tie_word_embeddings=False)
    with_lora(apart, LoraSettings(targets=("lm_head", "embed_tokens")))


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_adapters_of_others_on_such_a_layer_are_not_merged(target: str, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    model("Qwen2", tie_word_embeddings=True).save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(r=2, target_modules=[target], task_type="CAUSAL_LM")
    net = peft.get_peft_model(load_model(tmp_path / "base", device="cpu"), config)
    net.save_pretrained(tmp_path / "lora", save_embedding_layers=False)
    assert not has_plain_lora(net)
    for read in (lambda: merged_view(net), lambda: load_model(tmp_path / "lora", device="cpu")):
        with pytest.raises(BadValueError, match="are one weight"):
            read()


def saved(base: Path | str, folder: Path, std: float = 0.2) -> Path:
    """A checkpoint with adapters that have learned something."""
    net = with_lora(load_model(base, device="cpu"), LORA)
    for name, weight in net.named_parameters():
        if "lora_B" in name:
            weight.data = (
                torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)) * std
            )
    folder.mkdir()
    save_policy(net, folder)
    return folder


def written_base(folder: Path) -> str:
    return json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]


def test_a_base_in_a_folder_is_found_from_wherever_adapters_are_loaded(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_model, tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    folder = saved("base", tmp_path / "lora")
    assert written_base(folder) == str(tmp_path / "base")
    assert not (folder / "README.md").exists()
    monkeypatch.chdir("/")
    load_model(folder, device="cpu")
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(BadValueError, match=r"adapter_config.json: base_model_name_or_path is .*b"):
        load_model(folder, device="cpu")


def test_a_base_of_the_catalogue_is_looked_for_in_the_cache_of_this_machine(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "there"))
    base = packaged(tiny_model)
    folder = saved(base, tmp_path / "lora")
    assert written_base(folder) == NAME
    before = load_model(folder, device="cpu").state_dict()
    settings = json.loads((folder / "adapter_config.json").read_text())
    for name in (NAME, str(base)):  # the second was written before
        settings["base_model_name_or_path"] = name
        (folder / "adapter_config.json").write_text(json.dumps(settings))
        shutil.rmtree(tmp_path / "there", ignore_errors=True)
        monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "here"))
        packaged(tiny_model)
        after = load_model(folder, device="cpu").state_dict()
        assert all(torch.equal(before[key], after[key]) for key in before)


def test_adapters_on_a_model_with_adapters_name_that_one(tiny_model: Path, tmp_path: Path) -> None:
    """Their base was the model below both: what the first ones had learned was lost."""
    first = saved(tiny_model, tmp_path / "first")
    second = saved(first, tmp_path / "second", std=0.0)
    assert written_base(second) == str(first)
    one, two = (load_model(folder, device="cpu").state_dict() for folder in (first, second))
    assert all(torch.equal(one[name], two[name]) for name in one)
