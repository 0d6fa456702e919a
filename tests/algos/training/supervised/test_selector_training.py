"""Training: a small model learns whom to select, and comes back from its folder."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from helpers import bookcase as shelves
from helpers.small_models import byte_level
from helpers.small_models import model as any_model
from safetensors import SafetensorError

from turngym.agents.paper_selector.calibration import selector_scores
from turngym.agents.paper_selector.decision import decision_of
from turngym.agents.paper_selector.examples import (
    PairSettings,
    SelectorRow,
    rows_of,
    selector_pairs,
)
from turngym.agents.paper_selector.model import LanguageModelSelector, Questions, open_selector
from turngym.agents.paper_selector.settings import SelectorSettings
from turngym.algos.training.supervised.selector import (
    MICRO,
    MICRO_SHAPE,
    TrainingSettings,
    _demonstration,
    save_selector,
    small_model,
    train_selector,
)
from turngym.envs.core.errors import BadValueError, DataError

SHORT = SelectorSettings(prompt="short")
SHAPE = replace(MICRO_SHAPE, hidden=64, heads=2, layers=2, inner=128, init_range=0.15)


def test_it_learns_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(shelves, "THEMES", ("gold", "iron", "salt", "wood"))
    world = shelves.bookcase()
    pairs = selector_pairs(world, "train", PairSettings(per_request=10))
    held = selector_pairs(world, "dev", PairSettings(n=80))
    model, tokenizer = small_model(rows_of(pairs, "short"), replace(SHAPE, vocab_size=400))
    before = LanguageModelSelector(model, tokenizer, SHORT).identity
    how = replace(MICRO, lr=3e-3, epochs=12)
    lessons = []
    told = train_selector(model, tokenizer, rows_of(pairs, "short"), (SHORT, how), lessons.append)
    assert [lesson.step for lesson in lessons] == list(range(1, int(told["steps"]) + 1))
    assert told["loss"] < 0.3 < lessons[0].loss
    save_selector(tmp_path / "new", model, tokenizer, (SHORT, how), told)
    selector = open_selector(tmp_path / "new", dtype="float32", device="cpu")
    assert selector.identity == LanguageModelSelector(model, tokenizer, SHORT).identity != before
    found = selector.probabilities([pair.judged for pair in held])
    scores = selector_scores(found, [pair.label for pair in held])
    assert scores.f1 > 0.9
    assert scores.ece < 0.1
    kept = json.loads((tmp_path / "new" / "selector.json").read_text())
    assert kept["training"]["steps"] == told["steps"]
    assert kept["training"]["lr"] == 3e-3


@pytest.fixture(scope="module")
def rows():
    pairs = selector_pairs(shelves.bookcase(), "train", PairSettings(n=12))
    return rows_of(pairs, "short")


@pytest.fixture
def fresh(rows):
    return small_model(rows, replace(SHAPE, hidden=16, inner=16, vocab_size=400))


def test_a_full_disk_is_told_and_leaves_no_part_of_a_selector(fresh, tmp_path, monkeypatch):
    """It raised an error of safetensors, and left a folder that the next call refused."""
    model, tokenizer = fresh

    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", full)
    with pytest.raises(DataError, match="the disk is full"):
        save_selector(tmp_path / "new", model, tokenizer, (SHORT, MICRO), {})
    assert not list(tmp_path.iterdir())


def test_what_is_learned(rows, fresh):
    _, tokenizer = fresh
    questions, decision = Questions(tokenizer, SHORT, None), decision_of(tokenizer)
    row = rows[0]
    asked = questions.ids(row.prompt)
    verdict = decision.true if row.label else decision.false
    plain = _demonstration(row, questions, decision, False)
    assert plain.ids == [*asked, verdict]
    assert plain.acted == [False] * len(asked) + [True]
    told = _demonstration(row, questions, decision, True)
    assert told.acted == [False] * len(asked) + [True] * (len(told.ids) - len(asked))
    said = tokenizer.decode(told.ids[len(asked) :])
    assert said == f" {row.label}\nReason: {row.reason}{tokenizer.eos_token}"
    bare = replace(row, reason="")
    assert _demonstration(bare, questions, decision, True) == plain


def test_a_long_question_leaves_room_for_its_answer():
    """Questions were as long as the context: the answer stood at places that the model lacks."""
    tokenizer = byte_level()
    tokenizer.add_tokens([" True", " False"])
    model = any_model("GPT2", len(tokenizer), n_positions=160)
    row = SelectorRow("paper " * 200 + "\nDecision:", True, "it is on gold.")
    told = train_selector(model, tokenizer, [row], (SHORT, TrainingSettings()))
    assert math.isfinite(told["loss"])
    questions, decision = Questions(tokenizer, SHORT, 160), decision_of(tokenizer)
    assert len(_demonstration(row, questions, decision, True).ids) == 160
    wordy = replace(row, reason="gold " * 100)
    with pytest.raises(BadValueError, match="the model sees 160; expected that more than 64"):
        train_selector(model, tokenizer, [wordy], (SHORT, TrainingSettings()))


def test_the_same_seed_gives_the_same_weights(rows):
    made = []
    for seed in (0, 0, 1):
        model, tokenizer = small_model(rows, replace(SHAPE, hidden=16, inner=16, vocab_size=400))
        how = TrainingSettings(batch=4, lr=1e-3, epochs=2, seed=seed)
        told = train_selector(model, tokenizer, rows, (SHORT, how))
        made.append((told["steps"], LanguageModelSelector(model, tokenizer, SHORT).identity))
    assert made[0] == made[1] != made[2]
    assert made[0][0] == 6


def test_dropout_is_drawn_from_the_seed():
    """It came from the caller's generator: one seed gave other weights, and moved the caller's."""
    tokenizer = byte_level()
    tokenizer.add_tokens([" True", " False"])
    row = SelectorRow("red lamp\nDecision:", True)
    made = []
    for theirs in (1, 2):
        model = any_model("GPT2", len(tokenizer), n_positions=160)
        torch.manual_seed(theirs)
        before = torch.get_rng_state()
        how = TrainingSettings(batch=2, lr=1e-3, epochs=2)
        train_selector(model, tokenizer, [row] * 4, (SHORT, how))
        assert torch.equal(torch.get_rng_state(), before)
        made.append(LanguageModelSelector(model, tokenizer, SHORT).identity)
    assert made[0] == made[1]


def test_the_papers_settings():
    assert TrainingSettings() == TrainingSettings(
        epochs=1, batch=32, lr=1e-5, warmup=0.01, rationale=True, seed=0
    )


def test_refusals(rows, fresh):
    model, tokenizer = fresh
    with pytest.raises(BadValueError, match="no rows"):
        train_selector(model, tokenizer, [], (SHORT, MICRO))
    for wrong in ({"lr": 0.0}, {"epochs": 0}, {"batch": 0}, {"warmup": 2.0}):
        with pytest.raises(BadValueError, match=next(iter(wrong))):
            TrainingSettings(**wrong)
    with pytest.raises(BadValueError, match="vocab_size"):
        small_model([SelectorRow("q", True)], replace(SHAPE, vocab_size=10))
