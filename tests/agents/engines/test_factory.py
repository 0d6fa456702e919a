"""The table of engines, their settings, and the one place that builds them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import pytest
from helpers.engine_help import ask

from turngym.agents.engines import factory as engine_setup
from turngym.agents.engines.base import Request, Requirement, Sampling
from turngym.agents.engines.factory import ENGINES, EngineName, EngineSettings, build_engine
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError


def test_every_engine_has_its_name_and_a_field_for_its_settings() -> None:
    assert tuple(ENGINES) == get_args(EngineName)
    fields = {field.name for field in dataclasses.fields(EngineSettings)}
    assert {name for name, row in ENGINES.items() if row.settings} <= fields
    for name, row in ENGINES.items():
        if row.settings is not None:
            assert getattr(EngineSettings(), name) == row.settings()


def test_what_the_engine_in_this_process_can_do_is_so(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    engine = build_engine(str(tiny_model), tokenizer, EngineSettings(device="cpu", max_context=64))
    assert engine.max_context == 64
    sampling = Sampling(max_tokens=3, temperature=0.0, top_logprobs=2)
    (done,) = ask(engine, Request(ids=[5, 6, 7], sampling=sampling, seed=0))  # type: ignore[arg-type]
    assert done.cache is not None
    assert done.top_logprobs is not None
    engine.sync(load_model(tiny_model, device="cpu"))
    assert engine.version == 1
    assert ENGINES["transformers"].can == {"weight_sync", "top_logprobs", "cache_handles"}


def test_a_learner_s_own_model_is_sampled_from(tiny_model: Path) -> None:
    tokenizer, learner = load_tokenizer(tiny_model), load_model(tiny_model, device="cpu")
    engine = build_engine("no such folder", tokenizer, EngineSettings(), learner=learner)
    assert engine.vocabulary == learner.config.vocab_size


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"engine": "vlm"}, "vllm"),
        ({"max_batch": 0}, "max_batch is 0; expected at least 1"),
        ({"vllm": VllmSettings(sleep=True)}, "settings of vllm were given, but the engine is"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises((BadValueError, UnknownNameError), match=words):
        EngineSettings(**settings)


def test_an_engine_that_is_not_installed_or_cannot_learn_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = dataclasses.replace(
        ENGINES["transformers"], needs=Requirement("no_such_module", "its-package", "its-extra")
    )
    monkeypatch.setattr(engine_setup, "ENGINES", {"transformers": row})
    with pytest.raises(MissingExtraError, match=r"its-package.*turngym\[its-extra\]"):
        build_engine("model", None, EngineSettings())
    row = dataclasses.replace(ENGINES["transformers"], can=frozenset())
    monkeypatch.setattr(engine_setup, "ENGINES", {"transformers": row})
    with pytest.raises(BadValueError, match="cannot take a learner's weights"):
        build_engine("model", None, EngineSettings(), learner=object())
