"""What is asked of engines: settings of sampling and contexts that make sense."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from turngym.agents.engines.base import Completion, Request, Sampling, check_request, sample
from turngym.agents.engines.sampling import uniforms
from turngym.envs.core.errors import BadValueError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(({"temperature": t}, "expected 0 .greedy., or a number") for t in (-1.0, "1", None)),
        *(({"temperature": float(t)}, "from 1e-30 to 1e.30") for t in ("nan", "inf", "1e-40")),
        *(({"max_tokens": n}, "expected an integer, 1 or more") for n in (1.5, 0, True, "3")),
        *(({"top_k": n}, "expected an integer, 0 or more") for n in (2.5, -1, np.float32(2))),
        *(({"top_p": p}, "a value in .0, 1.") for p in (0.0, float("nan"), "1")),
        *(({"stop": s}, "tuple of non-empty strings") for s in ("stop", ("",), [""], (3,))),
    ],
)
def test_settings_that_nothing_can_be_sampled_with_are_refused(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadValueError, match=rf"Sampling\.{next(iter(settings))} is .*{words}"):
        Sampling(**{"max_tokens": 3} | settings)


def test_numbers_of_numpy_and_lists_of_stop_strings_are_taken() -> None:
    stop = ["</answer>", "\n"]
    given: Any = {"max_tokens": np.int64(3), "temperature": np.float32(0.5), "stop": stop}
    assert Sampling(**given).stop == ("</answer>", "\n")
    wanted = Sampling(max_tokens=3, temperature=0.5, stop=tuple(stop))
    assert hash(Sampling(**given)) == hash(wanted)


def test_a_seed_of_numpy_is_that_number_and_anything_but_an_integer_is_refused() -> None:
    drawn = [
        uniforms(Request(ids=[1], sampling=Sampling(max_tokens=2), seed=seed).seed, 3).tolist()
        for seed in (np.int64(7), np.uint32(7), 7)
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    wrong: Any
    for wrong in (1.5, "7", None, True):
        with pytest.raises(BadValueError, match=r"Request\.seed is .* expected an integer"):
            Request(ids=[1], sampling=Sampling(max_tokens=2), seed=wrong)


@pytest.mark.parametrize("ids", [[3.7], [3, 4.0], np.array([3.0]), ["3"], [2**64], [[3]]])
def test_a_context_of_anything_but_integers_is_refused(ids: Any) -> None:
    with pytest.raises(BadValueError, match=r"the context .* expected integers"):
        check_request(Request(ids=ids, sampling=Sampling(max_tokens=2), seed=0), 10, 10)


@pytest.mark.parametrize("ids", [[], (), np.array([]), np.zeros((2, 2), np.int64)])
def test_a_context_of_another_shape_is_refused(ids: Any) -> None:
    with pytest.raises(BadValueError, match=r"expected \[n\] with at least one token"):
        check_request(Request(ids=ids, sampling=Sampling(max_tokens=2), seed=0), 10, 10)


@pytest.mark.parametrize(
    "ids", [[3, 4], (3, 4), np.array([3, 4], np.int32), np.array([3, 4], np.uint8)]
)
def test_contexts_become_integers_of_64_bits(ids: Any) -> None:
    found, room = check_request(Request(ids=ids, sampling=Sampling(max_tokens=20), seed=0), 10, 10)
    assert (found.tolist(), found.dtype, room) == ([3, 4], np.int64, 8)


class Fixed:
    """Gives the same to every request."""

    def __init__(self, given: Any) -> None:
        self.given = given

    async def generate(self, request: Request) -> Any:
        return self.given


class Sync(Fixed):
    def generate(self, request: Request) -> Any:
        return self.given


DONE = Completion(
    ids=np.arange(2),
    logprobs=np.zeros(2, np.float32),
    entropies=np.zeros(2, np.float32),
    stop="length",
)
ASKED = Request(ids=[1], sampling=Sampling(max_tokens=2), seed=0)
LISTS: Any = {"ids": [1, 2], "floats": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (Sync(DONE), "Sync.generate gave a Completion; expected a coroutine.*async def"),
        (Fixed(None), "Fixed.generate gave a NoneType; expected a Completion"),
        (Fixed(([1], [0.0])), "Fixed.generate gave a tuple; expected a Completion"),
        (Fixed(replace(DONE, ids=LISTS["ids"])), "ids as a list .*; expected a NumPy array of int"),
        (Fixed(replace(DONE, ids=np.zeros(2))), "ids as a ndarray .*; expected a NumPy array of"),
        (Fixed(replace(DONE, logprobs=LISTS["floats"])), "logprobs as a list .* array of floats"),
        (Fixed(replace(DONE, entropies=np.zeros(3))), r"entropies of shape \(3,\) with ids of \(2"),
        (Fixed(replace(DONE, logprobs=np.zeros((2, 1)))), r"logprobs of shape \(2, 1\)"),
        (Fixed(replace(DONE, ids=np.arange(0))), "ids of shape .0,.*expected .* at least one"),
    ],
)
def test_an_engine_that_samples_something_else_is_named(engine: Any, reason: str) -> None:
    with pytest.raises((TypeError, BadValueError), match=reason):
        asyncio.run(sample(engine, ASKED))


def test_what_was_sampled_is_handed_on_as_it_is() -> None:
    assert asyncio.run(sample(Fixed(DONE), ASKED)) is DONE  # type: ignore[arg-type]
