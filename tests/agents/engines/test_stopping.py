"""Ends of actions: stop strings wherever the tokens' borders lie, end of text, limits."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import torch
from helpers.small_models import CHATML, byte_level, metaspace, model
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Completion, Request, Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.stopping import StopRules
from turngym.agents.rendering.token_text import TokenText

TOKENIZER = byte_level()
EXACT = TokenText(TOKENIZER)


def first_stop(rules: StopRules, stops: tuple[str, ...], ids: list[int]) -> int | None:
    """How many tokens the action has when the rules end it."""
    which = rules.index(stops)
    for n in range(1, len(ids) + 1):
        token = np.array([ids[n - 1]])
        if rules.suspects(np.array([which]), token)[0] and rules.hit(which, ids[:n]):
            return n
    return None


PIECES = st.sampled_from(
    ["</answer>", "</", "answer", ">", "> ", "a>b", "é", "漢", "字>", " ", "\n", "x"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES, max_size=14), st.sets(st.sampled_from(["</answer>", "漢", ">\n", "é", " "]))
)
def test_stops_are_found_at_the_first_token_that_completes_one(
    pieces: list[str], stops: set[str]
) -> None:
    rules = StopRules(EXACT, len(TOKENIZER), frozenset({1}))
    ids = [i for p in pieces for i in EXACT.encode(p)]
    expected = next(
        (n for n in range(1, len(ids) + 1) if any(s in EXACT.decode(ids[:n]) for s in stops)), None
    )
    for _ in range(2):  # the second time what was learnt about tokens is used
        assert first_stop(rules, tuple(sorted(stops)), ids) == expected


def test_a_stop_string_may_end_inside_a_token_and_span_many() -> None:
    rules = StopRules(EXACT, len(TOKENIZER), frozenset({1}))
    inside = EXACT.encode("</answer>")
    spelled = [i for c in "</answer>" for i in EXACT.encode(c)]
    assert len(spelled) == 9
    assert first_stop(rules, ("</answer>",), spelled) == 9
    assert first_stop(rules, ("</ans",), inside) is not None
    assert first_stop(rules, ("</answer>",), EXACT.encode("x" * 70) + spelled) == 79


def test_stops_behind_tokens_without_text() -> None:
    rules = StopRules(EXACT, len(TOKENIZER) + 50, frozenset({1}))
    blank = len(TOKENIZER) + 7  # a padded row of the vocabulary: the tokenizer does not know it
    ids = [i for c in "</s>" for i in [*EXACT.encode(c), *[blank] * 20]]
    assert first_stop(rules, ("</s>",), ids) == 3 * 21 + 1


def test_most_tokens_are_looked_at_once_only() -> None:
    rules = StopRules(EXACT, len(TOKENIZER), frozenset({1}))
    which = rules.index(("</answer>",))
    everything = np.arange(len(TOKENIZER))
    for token in everything:
        rules.hit(which, [int(token)])
    watched = rules.suspects(np.full(len(everything), which), everything)
    assert watched[1]
    assert watched.sum() < 20


def test_no_stop_strings_watch_end_of_text_alone() -> None:
    rules = StopRules(EXACT, 300, frozenset({1, 9}))
    watched = rules.suspects(np.full(300, rules.index(())), np.arange(300))
    assert np.flatnonzero(watched).tolist() == [1, 9]


class Script:
    """Makes a model say given tokens: a real engine, a scripted head."""

    def __init__(self, tokenizer: Any, ids: list[int], **more: Any) -> None:
        self.engine = TransformersEngine(model("Qwen2"), tokenizer, dtype="float32", **more)
        forward, vocabulary = self.engine._forward, self.engine._forward.vocabulary
        self.at = 0

        def say(count: int) -> torch.Tensor:
            logits = torch.full((count, vocabulary), -50.0)
            logits[:, ids[self.at]] = 50.0
            self.at += 1
            return logits

        forward.feed = lambda pool, pieces: say(len(pieces))  # type: ignore[method-assign]
        forward.decode = lambda pool, rows, *_: say(len(rows))  # type: ignore[method-assign]

    def ask(self, **sampling: Any) -> Completion:
        r = Request(ids=[5], sampling=Sampling(**({"max_tokens": 40} | sampling)), seed=0)
        return asyncio.run(self.engine.generate(r))


def test_reasons_and_what_stays_in_the_action() -> None:
    text = EXACT.encode("red</answer> lamp")
    done = Script(TOKENIZER, text).ask(stop=("</answer>",))
    assert done.stop == "stop"
    assert EXACT.decode(done.ids).endswith("</answer>")
    done = Script(TOKENIZER, [*EXACT.encode("red"), 1, 1]).ask(stop=("</answer>",))
    assert (done.stop, done.ids[-1]) == ("eos", 1)
    done = Script(TOKENIZER, text).ask(max_tokens=1)
    assert (done.stop, len(done.ids)) == ("length", 1)
    # on the very last token the better reason is named
    n = len(EXACT.encode("red</answer>"))
    assert Script(TOKENIZER, text).ask(stop=("</answer>",), max_tokens=n).stop == "stop"
    assert Script(TOKENIZER, [9, 1]).ask(max_tokens=2).stop == "eos"


def test_all_end_ids_of_model_tokenizer_and_template_end_an_action() -> None:
    tokenizer = byte_level(CHATML)
    net = model("Qwen2")
    net.generation_config.eos_token_id = [11, 12]
    eng = TransformersEngine(net, tokenizer, dtype="float32")
    message_end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert eng.eos_ids == {1, 11, 12, message_end}


def test_stops_with_a_tokenizer_that_drops_blanks() -> None:
    exact = TokenText(metaspace())
    rules = StopRules(exact, 300, frozenset({2}))
    ids = exact.encode("the red</answer> lamp")
    n = first_stop(rules, ("</answer>",), ids)
    assert n is not None
    assert "</answer>" in exact.decode(ids[:n])
    assert "</answer>" not in exact.decode(ids[: n - 1])
    assert first_stop(rules, (" lamp",), ids) is not None


def test_verdicts_that_are_remembered_are_those_that_were_found() -> None:
    rules, words = StopRules(EXACT, len(TOKENIZER), frozenset()), ("red", " lamp", "</b>", ">")
    stops = ("</b>",), ("lamp>",)
    actions = [EXACT.encode(first + second) for first in words for second in words]
    actions.append(EXACT.encode("red lamp " * 40 + "</b>"))  # too long to be remembered
    for stop in stops:
        found = []
        for action in actions:
            fresh = StopRules(EXACT, len(TOKENIZER), frozenset())
            found.append(fresh.hit(fresh.index(stop), action))
        assert any(found)
        assert not all(found)
        for _ in range(2):
            assert [rules.hit(rules.index(stop), action) for action in actions] == found
    assert len(rules._hits) == len(stops) * (len(actions) - 1)
