"""The selector itself: what it computes, remembers and refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from helpers.bookcase import bookcase
from helpers.small_models import CHATML, byte_level
from helpers.small_models import model as any_model

from turngym.agents.paper_selector.examples import PairSettings, rows_of, selector_pairs
from turngym.agents.paper_selector.model import LanguageModelSelector, open_selector
from turngym.agents.paper_selector.settings import SELECTOR_FILE, SelectorSettings
from turngym.algos.training.supervised.selector import MICRO_SHAPE, small_model
from turngym.envs.core.errors import BadValueError, DataError, EnvFault, UnknownNameError
from turngym.envs.paper_crawler.papers import Judged, Paper, Request
from turngym.envs.paper_crawler.prompts import PROMPTS

SHORT = SelectorSettings(prompt="short")
SHAPE = replace(MICRO_SHAPE, hidden=32, heads=2, layers=2, inner=64, vocab_size=400, context=256)


@pytest.fixture(scope="module")
def made():
    pairs = selector_pairs(bookcase(), "train", PairSettings(n=40))
    model, tokenizer = small_model(rows_of(pairs, "short"), SHAPE)
    return model, tokenizer, [pair.judged for pair in pairs]


def test_the_released_rule_and_the_renormalised_one(made):
    model, tokenizer, judged = made
    selector = LanguageModelSelector(model, tokenizer, SHORT, batch=7)
    shared = LanguageModelSelector(
        model, tokenizer, replace(SHORT, probability="renormalised"), batch=40
    )
    released, renormalised = selector.probabilities(judged), shared.probabilities(judged)
    for (request, paper), p, q in zip(judged, released, renormalised, strict=True):
        text = f"request: {request.text}\npaper: {paper.title}\n{paper.abstract}\nDecision:"
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(text)])).logits[0, -1]
        whole = logits.softmax(-1)
        true, false = (float(whole[i]) for i in selector.decision[:2])
        assert p == pytest.approx(true, abs=1e-6)
        assert q == pytest.approx(true / (true + false), abs=1e-5)


def test_every_question_is_asked_once(made, monkeypatch):
    model, tokenizer, judged = made
    selector = LanguageModelSelector(model, tokenizer, SHORT, batch=16)
    widths = []
    forward = selector._forward
    monkeypatch.setattr(
        selector, "_forward", lambda rows: widths.append([len(r) for r in rows]) or forward(rows)
    )
    first = selector.probabilities([*judged, judged[0]])
    assert sum(map(len, widths)) == len({(j.request.text, j.paper.id) for j in judged})
    asked = [width for part in widths for width in part]
    assert asked == sorted(asked)
    assert max(map(len, widths)) == 16
    widths.clear()
    assert selector.probabilities(judged) == first[:-1]
    assert first[-1] == first[0]
    assert widths == []
    assert selector.probabilities([]) == []


def test_the_oldest_scores_are_forgotten(made, monkeypatch):
    model, tokenizer, judged = made
    monkeypatch.setattr("turngym.agents.paper_selector.model.REMEMBERED", 5)
    selector = LanguageModelSelector(model, tokenizer, SHORT)
    scores = selector.probabilities(judged)
    assert len(selector._known) == 5
    assert selector.probabilities(judged) == pytest.approx(scores, abs=1e-6)


def test_a_threshold_moves_to_a_half(made):
    model, tokenizer, judged = made
    plain = LanguageModelSelector(model, tokenizer, replace(SHORT, probability="renormalised"))
    scores = plain.probabilities(judged)
    at = sorted(scores)[len(scores) // 3] + 1e-9
    moved = LanguageModelSelector(model, tokenizer, replace(plain.settings, threshold=at))
    shifted = moved.probabilities(judged)
    assert [s > 0.5 for s in shifted] == [s > at for s in scores]
    assert sum(s > 0.5 for s in shifted) not in (0, len(shifted))
    assert sorted(range(40), key=shifted.__getitem__) == sorted(range(40), key=scores.__getitem__)


def test_copies_and_identity(made):
    model, tokenizer, judged = made
    selector = LanguageModelSelector(model, tokenizer, SHORT)
    assert copy.deepcopy(selector) is selector
    scores = selector.probabilities(judged)
    twin = pickle.loads(pickle.dumps(selector))
    assert twin.identity == selector.identity
    assert twin.probabilities(judged) == pytest.approx(scores, abs=1e-6)
    other = copy.deepcopy(model)
    with torch.no_grad():
        next(other.parameters())[0, 0] += 1e-3
    changed = LanguageModelSelector(other, tokenizer, SHORT)
    asked = LanguageModelSelector(model, tokenizer, SelectorSettings(prompt="rules"))
    assert len({selector.identity, changed.identity, asked.identity}) == 3


def test_long_abstracts_are_cut_before_the_question(made):
    model, tokenizer, _ = made
    settings = replace(SHORT, max_tokens=100)
    selector = LanguageModelSelector(model, tokenizer, settings)
    paper = Paper("p", "gold", abstract="work " * 300 + "end")
    text = f"request: r\npaper: gold\n{paper.abstract}\nDecision:"
    ids = selector.prompts.ids(text)
    whole = tokenizer.encode(text)
    assert len(ids) == 100
    assert ids == whole[:36] + whole[-64:]
    assert 0 < selector.probabilities([Judged(Request("r", 1, ()), paper)])[0] < 1
    wide = LanguageModelSelector(model, tokenizer, SHORT)
    assert len(wide.prompts.ids(text * 3)) == 256  # the model's own limit


@pytest.mark.parametrize("chat", [False, True])
def test_a_long_request_is_cut_before_it_hides_the_paper(made, chat):
    model, tokenizer, _ = made
    if chat:
        tokenizer = byte_level(CHATML)
        tokenizer.add_tokens(["True", "False"])
        model = any_model("Qwen2", len(tokenizer))
    settings = replace(SHORT, max_tokens=200, chat=chat)
    selector = LanguageModelSelector(model, tokenizer, settings)
    paper = Paper("p", "gold work", abstract="early study " * 90 + "end")
    for words in (1, 30, 60, 300):
        text = PROMPTS["short"].select(Request("wool " * words, 1, ()), paper)
        ids = selector.prompts.ids(text)
        assert len(ids) <= 200
        shown = tokenizer.decode(ids)
        assert "request: wool" in shown
        assert "\npaper: gold work\n" in shown
        assert "\nDecision:" in shown


def test_a_chat_model():
    tokenizer = byte_level(CHATML)
    tokenizer.add_tokens(["True", "False"])
    selector = LanguageModelSelector(
        any_model("Qwen2", len(tokenizer)), tokenizer, replace(SHORT, chat=True)
    )
    ids = selector.prompts.ids("is it?\nDecision:")
    assert tokenizer.decode(ids).endswith("Decision:<|im_end|>\n<|im_start|>assistant\n")
    (score,) = selector.of_prompts(["is it?\nDecision:"])
    assert 0 < score < 1


def test_a_broken_model_is_a_fault(made):
    model, tokenizer, judged = made
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(EnvFault, match="not a number"):
        LanguageModelSelector(broken, tokenizer, SHORT).probabilities(judged[:1])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prompt": "shout"}, "prompt"),
        ({"probability": "odds"}, "probability"),
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": 0.0}, "threshold"),
        ({"max_tokens": 64}, "max_tokens"),
    ],
)
def test_bad_settings(settings, said):
    with pytest.raises((BadValueError, UnknownNameError), match=said):
        SelectorSettings(**settings)


def test_bad_models(made):
    model, tokenizer, _ = made
    with pytest.raises(BadValueError, match="batch"):
        LanguageModelSelector(model, tokenizer, SHORT, batch=0)
    with pytest.raises(BadValueError, match="do not belong together"):
        LanguageModelSelector(any_model("Qwen2", 100), tokenizer, SHORT)
    short_sighted = any_model("Qwen2", len(tokenizer), max_position_embeddings=64)
    with pytest.raises(BadValueError, match="sees 64 tokens; expected one that sees more than 64"):
        LanguageModelSelector(short_sighted, tokenizer, SHORT)


def test_the_environment_takes_a_folder_by_name(made, tmp_path):
    model, tokenizer, _ = made
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    SELECTOR_FILE.write(tmp_path, replace(SHORT, probability="renormalised"))
    world = bookcase(selector=f"lm:{tmp_path}", prompt="short")
    selector = world.parts.selector
    assert selector is open_selector(tmp_path)
    assert selector.settings.probability == "renormalised"
    world.reset(seed=0)
    world.step(f"[Search] {world.episode.task.payload.text}\n")
    queue = world.episode.state.queue
    assert queue
    asked = [Judged(world.episode.task.payload, world.library.find(i)) for i in queue]
    assert [found.score for found in queue.values()] == selector.probabilities(asked)
    twin = copy.deepcopy(world)
    assert twin.parts.selector is selector
    SELECTOR_FILE.write(tmp_path, SHORT)
    assert open_selector(tmp_path) is not selector


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("lmm:x", UnknownNameError, "Did you mean 'lm'"),
        ("lm", BadValueError, "expected lm:FOLDER"),
        ("lm:/no/such/folder", BadValueError, "no such folder"),
    ],
)
def test_names_that_open_nothing(name, error, said):
    with pytest.raises(error, match=said):
        bookcase(selector=name)


def test_a_folder_with_broken_settings(tmp_path):
    for text in ("{", '{"settings": {"colour": 1}}', "{}"):
        (tmp_path / "selector.json").write_text(text)
        with pytest.raises(DataError, match=r"selector\.json"):
            open_selector(tmp_path)
