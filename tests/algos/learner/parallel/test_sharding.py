"""Weights cut up between two processes: formats, the hand-over to an engine, checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.nets import small

from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.training.checkpoint import _check_form


@pytest.fixture
def found(pair: Path) -> dict[str, Any]:
    """What both processes saw."""
    return json.loads((pair / "found.json").read_text())


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "lora"])
def test_shards_and_sums_are_float32_and_products_bfloat16(
    found: dict[str, Any], weights: str
) -> None:
    """Before, bfloat16 weights were bfloat16 shards, and their gradients were summed in it."""
    row = found[weights]
    assert row["shards"] == ["torch.float32"]
    assert row["gradients"] == ["torch.float32"]
    assert row["frozen"] == (["torch.bfloat16"] if weights == "lora" else [])
    # about as far from float32 as one process in the same format
    assert 0 < row["apart"] < 2 * row["autocast_apart"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_engine_takes_weights_a_layer_at_a_time(found: dict[str, Any], precision: str) -> None:
    row = found["hand_over"][precision]
    assert row["most_layers"] == 1
    assert row["left_whole"] == 0
    assert row["names"]
    assert row["values"]
    assert row["moved"] > 0.1
    assert row["equal"] is (precision == "float32")  # norms are folded into rounded weights
    assert row["held_elsewhere"]  # an engine in another thread reads a copy


def test_adapters_on_shards_are_merged_as_they_are_read(found: dict[str, Any]) -> None:
    """Before, they went through a whole copy in main memory, and one more with them merged."""
    row = found["adapters"]
    assert row == dict.fromkeys(row, True)
    assert len(row) == 6


def test_shards_rest_while_the_engine_plays(found: dict[str, Any]) -> None:
    """Before, offload was refused where several processes share the weights."""
    row = found["turns"]
    assert row["weights"]
    assert row["moments"]
    assert row["scores"] == [True] * 2
    assert row["held"] == [0] * 2
    assert 0.5 <= row["frozen"] / row["whole"] < 0.6  # this process's part
    assert row["counted"]
    assert row["narrowed"]
    assert row["activations"]
    assert row["inputs"]
    assert abs(row["brought_back"] - row["moved"]) <= 4096 < row["moved"]


@pytest.mark.parametrize(("stored", "wanted"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_a_process_takes_its_shards_from_mapped_files(
    found: dict[str, Any], stored: str, wanted: str
) -> None:
    """Before, each process loaded the whole model, and copied it for the reference.

    Nor is a layer whole in float32 on its way.
    """
    row = found["files"][f"{stored} as {wanted}"]
    assert row["values"]
    assert row["reference"]
    assert row["shards"] == "torch.float32"
    assert row["frozen"] == f"torch.{wanted}"
    assert row["formats"] == [f"torch.{wanted}"] * 2
    # the mapped file is counted too, though it is the system's and all processes share it
    taken = row["peak"] - row["file"]
    # half of the policy in float32, half of the reference, and less than a layer on its way
    shards = row["whole"] * (0.5 + 0.5 * {"float32": 1.0, "bfloat16": 0.5}[wanted])
    assert 0.95 * shards < taken < shards + 0.6 * row["layer"] < 1.1 * row["whole"]


def test_a_teacher_is_cut_up_from_a_mapped_file(found: dict[str, Any]) -> None:
    """Before, each process loaded all of it in float32."""
    row = found["taught"]
    assert row["values"]
    assert row["scores"]
    assert row["format"] == "torch.float32"
    assert not row["reference"]
    taken = row["peak"] - row["file"]  # mapped; the policy's is gone when the teacher is cut up
    assert 0.95 * row["whole"] < taken < row["whole"] + 0.6 * row["layer"]  # half of each


def test_a_loss_that_is_not_finite_in_one_process_ends_all(found: dict[str, Any]) -> None:
    """The others waited for its passes for two hours."""
    row = found["not_finite"]
    first, second = row["said"]
    assert first == second
    assert len(first) == 1
    assert "the loss of optimiser step 0 is not finite" in first[0]
    assert row["steps"] == 2  # the next update, of two epochs, is as if it had not been


def test_a_checkpoint_is_written_while_training_goes_on(found: dict[str, Any]) -> None:
    row = found["checkpoint"]
    assert row == {"early": True, "moved": True, "step": 1, "weights": True, "moments": True}


def test_a_checkpoint_keeps_what_the_model_rounds_and_an_earlier_one_says_that_it_did_not(
    found: dict[str, Any],
) -> None:
    assert found["exact"]["now"] == {"equal": True, "lines": []}
    assert not found["exact"]["earlier"]["equal"]
    (line,) = found["exact"]["earlier"]["lines"]
    assert "with weights in torch.bfloat16 alone" in line


def test_actors_play_for_a_learner_of_several_processes(found: dict[str, Any]) -> None:
    """Before, Ray's actors refused to serve more than one learner process."""
    one = {"limits": [64, 320], "sent": True, "groups": ["a", "b"], "sampled": 2}
    assert found["actors"]["each"] == [{**one, "raised": "the actors are gone"}] * 2
    assert found["actors"]["played"] == ["a", "b"]


def test_a_slow_engine_holds_up_no_fast_one(found: dict[str, Any]) -> None:
    dealt, taken = found["taken"]["None"], found["taken"]["2"]
    assert all(row["order"] for row in dealt + taken)
    assert [len(row["mine"]) for row in dealt] == [6, 6]  # before: half each, however slow
    assert sorted(dealt[0]["mine"] + dealt[1]["mine"]) == sorted(
        taken[0]["mine"] + taken[1]["mine"]
    )
    assert len(taken[1]["mine"]) > len(taken[0]["mine"])


def test_an_optimiser_of_another_form_is_refused() -> None:
    recipe = make_recipe("grpo", {"loss.kl.coef": 0.0}, small=True)
    how = LearnerSettings(precision="float32")
    wide = Learner(small("qwen2"), recipe, pad_id=0, settings=how)
    narrow = Learner(small("qwen2").to(torch.bfloat16), recipe, pad_id=0, settings=how)
    _check_form({"step", "exp_avg", "exp_avg_sq"}, wide)
    _check_form({"count", "master", "mean", "square"}, narrow)
    _check_form(set(), narrow)
    for names, learner in (({"master"}, wide), ({"exp_avg"}, narrow)):
        with pytest.raises(ValueError, match="several keep float32 shards"):
            _check_form(names, learner)


@pytest.mark.parametrize("kind", ["plain", "lora"])
def test_an_engine_server_gets_what_all_gather_through_a_group(
    found: dict[str, Any], kind: str
) -> None:
    row = found["group"][kind]
    assert row == {"version": 1, "file": False, "held": True, "equal": True, "moved": True}


def test_runs_behind_one_another_share_their_process_groups(found: dict[str, Any]) -> None:
    """Of all processes, for threads that learn, play, write files or share work out; and of two
    engines that servers are behind."""
    assert found["groups"] <= 5 + 2


def test_no_process_begins_a_run_before_all_do(found: dict[str, Any]) -> None:
    """Else one whose last run failed would answer what the others ask in theirs."""
    assert found["met"]
