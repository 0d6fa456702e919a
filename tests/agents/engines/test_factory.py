"""The table of engines, their settings, and the one place that builds them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from helpers.engine_help import ask

from turngym.agents.engines import factory as engine_setup
from turngym.agents.engines.base import (
    EngineSource,
    EngineStats,
    Request,
    Requirement,
    Sampling,
)
from turngym.agents.engines.factory import (
    ENGINES,
    EngineRow,
    EngineSettings,
    build_engine,
    register_engine,
)
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError


def test_an_engine_with_settings_has_a_field_for_them() -> None:
    for name, row in ENGINES.items():
        if row.settings is not None:
            assert getattr(EngineSettings(), name) == row.settings()


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, EngineRow]:
    """The engines, put back after the test."""
    copied = dict(ENGINES)
    monkeypatch.setattr(engine_setup, "ENGINES", copied)
    return copied


class Echo:
    """Hands its source back."""

    version = max_context = vocabulary = 1
    shares_weights = False
    stats = EngineStats()

    def __init__(self, source: EngineSource) -> None:
        self.source = source

    def nothing(self, *_: Any) -> None: ...

    generate = release = sync = rest = nothing


def make_class(source: EngineSource) -> Any:
    return Echo


def make_nothing(source: EngineSource) -> Any:
    return None


def test_a_registered_engine_is_built_by_its_entry_point(table: dict[str, EngineRow]) -> None:
    row = EngineRow(about="hands its source back", entry_point=f"{__name__}:Echo")
    settings = EngineSettings(engine="echo", max_batch=3)
    with pytest.raises(UnknownNameError, match="unknown engine 'echo'"):
        build_engine("model", None, settings)
    register_engine("echo", row)
    register_engine("echo", row)  # a plugin that runs twice
    assert table["echo"] is row
    engine: Any = build_engine("model", None, settings)
    source = engine.source
    assert (source.model, source.max_batch, source.own) == ("model", 3, None)
    with pytest.raises(BadValueError, match="Train with one of: transformers, vllm"):
        build_engine("model", None, settings, learner=object())


def test_a_notebook_may_change_the_row_of_its_own_engine(table: dict[str, EngineRow]) -> None:
    first = EngineRow(about="mine", entry_point="__main__:build")
    again = dataclasses.replace(first, can=frozenset({"weight_sync"}))
    register_engine("mine", first)
    register_engine("mine", again)
    assert table["mine"] is again


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("make_class", "make_class gave the class Echo; expected an object that is a TrainingEng"),
        ("make_nothing", "make_nothing gave None, which has no version, max_context, .* rest; exp"),
    ],
)
@pytest.mark.usefixtures("table")
def test_what_is_no_engine_is_named(made: str, reason: str) -> None:
    register_engine("mine", EngineRow(about="mine", entry_point=f"{__name__}:{made}"))
    with pytest.raises(BadValueError, match=reason):
        build_engine("model", None, EngineSettings(engine="mine"))


@pytest.mark.parametrize("place", [f"{__name__}:make_clas", "no_such_module:build"])
@pytest.mark.usefixtures("table")
def test_an_entry_point_that_is_not_there_is_named(place: str) -> None:
    register_engine("mine", EngineRow(about="mine", entry_point=place))
    with pytest.raises(BadValueError, match=f"entry point of 'mine', '{place}', cannot be loaded"):
        build_engine("model", None, EngineSettings(engine="mine"))


@pytest.mark.usefixtures("table")
def test_a_row_is_a_row_with_the_name_of_a_function() -> None:
    with pytest.raises(BadValueError, match=r"row of 'mine' is \{\}; expected EngineRow"):
        register_engine("mine", {})  # type: ignore[arg-type]
    row: Any = EngineRow(about="mine", entry_point=make_nothing)  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match='expected "module:function"'):
        register_engine("mine", row)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("vllm", {}, "'vllm' is registered already"),
        ("mine", {"entry_point": "my_engine"}, "'my_engine'; expected \"module:function\""),
        ("mine", {"settings": VllmSettings}, "EngineSettings has no field 'mine'"),
    ],
)
@pytest.mark.usefixtures("table")
def test_rows_that_do_not_fit_are_refused(name: str, change: dict[str, Any], words: str) -> None:
    row = EngineRow(about="mine", entry_point="my_engine:build")
    with pytest.raises(BadValueError, match=words):
        register_engine(name, dataclasses.replace(row, **change))


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
        ({"max_batch": 0}, "max_batch is 0; expected at least 1"),
        ({"vllm": VllmSettings(sleep=True)}, "settings of vllm were given, but the engine is"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadValueError, match=words):
        EngineSettings(**settings)


def test_an_unknown_engine_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown engine 'vlm'\. Did you mean 'vllm'"):
        EngineSettings(engine="vlm").row()


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
