"""A starter's tokenizer answers as transformers' does, and turns into it for all else."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from turngym.agents.models.loading import load_tokenizer
from turngym.agents.models.random_init import word_tokenizer
from turngym.agents.models.starter_tokenizer import StarterTokenizer, read_starter_tokenizer
from turngym.agents.models.tokenizer import train_tokenizer
from turngym.agents.rendering.factory import keep_style, make_renderer
from turngym.envs.core.errors import BadValueError, MissingExtraError

TEXTS = ("Who wrote <search> Moby-Dick </search>?", "In 1851, Melville did; naïve as it is.")


def write(folder: Path, kind: str) -> Path:
    """A folder with a tokenizer, and the line of a model's settings that is looked at."""
    if kind == "bytes":
        made = train_tokenizer(TEXTS, vocab_size=300, max_length=512)
    else:
        made = word_tokenizer(["Who", "wrote", "Moby"], 512)
    made.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3"}))
    return folder


@pytest.fixture(scope="module", params=["bytes", "words"])
def pair(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[StarterTokenizer, Any]:
    folder = write(tmp_path_factory.mktemp("tokenizer"), request.param)
    ours = load_tokenizer(folder)
    assert type(ours) is StarterTokenizer
    return ours, AutoTokenizer.from_pretrained(folder)


@given(st.text(max_size=40) | st.sampled_from(TEXTS))
@settings(max_examples=60, deadline=None)
def test_texts_and_ids_are_those_of_transformers(pair: Any, text: str) -> None:
    ours, theirs = pair
    ids = theirs.encode(text, add_special_tokens=False)
    assert ours.encode(text, add_special_tokens=False) == ids == ours.encode(text)
    assert theirs.encode(text) == ids
    for skip in (False, True):
        assert ours.decode([*ids, 1], skip_special_tokens=skip) == theirs.decode(
            [*ids, 1], skip_special_tokens=skip
        )
    words = theirs.convert_ids_to_tokens(ids)
    assert ours.convert_ids_to_tokens(ids) == words
    assert ours.convert_tokens_to_ids(words) == theirs.convert_tokens_to_ids(words)
    assert type(ours) is StarterTokenizer


def test_what_it_says_of_itself_is_what_transformers_says(pair: Any) -> None:
    ours, theirs = pair
    names = [name for name, kind in vars(StarterTokenizer).items() if isinstance(kind, property)]
    names += ["chat_template", "bos_token", "bos_token_id", "split_special_tokens", "is_fast"]
    assert {"eos_token_id", "pad_token_id", "unk_token_id", "model_max_length"} <= set(names)
    for name in [*names, "name_or_path"]:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.get_vocab() == theirs.get_vocab()
    assert len(ours) == len(theirs)
    assert ours.convert_tokens_to_ids("no such token") == theirs.unk_token_id
    assert ours.convert_ids_to_tokens(1) == theirs.convert_ids_to_tokens(1)
    assert ours.convert_ids_to_tokens([1, 4], skip_special_tokens=True) == [
        theirs.convert_ids_to_tokens(4)
    ]
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert twin.get_vocab() == theirs.get_vocab()
        assert type(twin) is StarterTokenizer
    assert type(ours) is StarterTokenizer


@pytest.mark.parametrize("kind", ["bytes", "words"])
def test_it_is_saved_as_it_was_read(kind: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "made", kind)
    tokenizer = load_tokenizer(folder)
    keep_style(tokenizer, "plain")
    files = tokenizer.save_pretrained(tmp_path / "saved")
    assert type(tokenizer) is StarterTokenizer
    assert {Path(file).name for file in files} == {"tokenizer.json", "tokenizer_config.json"}
    first, second = folder / "tokenizer.json", tmp_path / "saved" / "tokenizer.json"
    assert first.read_bytes() == second.read_bytes()
    said = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert said == json.loads((folder / "tokenizer_config.json").read_text()) | {
        "turngym_render": "plain"
    }
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    theirs.save_pretrained(tmp_path / "theirs")  # with how they read it, which is left out
    (tmp_path / "theirs" / "config.json").write_text('{"model_type": "qwen3"}')
    again = load_tokenizer(tmp_path / "theirs")
    assert type(again) is StarterTokenizer
    again.save_pretrained(tmp_path / "again")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()


def ask_batch(tokenizer: Any) -> None:
    assert tokenizer(["Who", "Who wrote"], padding=True).attention_mask[0][-1] == 0


def ask_template(tokenizer: Any) -> None:
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }};{% endfor %}"
    said = tokenizer.apply_chat_template([{"role": "user", "content": "Who"}], tokenize=False)
    assert said == "Who;"


def ask_pad(tokenizer: Any) -> None:
    tokenizer.pad_token = tokenizer.eos_token
    assert tokenizer.pad_token_id == tokenizer.eos_token_id


def ask_pair(tokenizer: Any) -> None:
    assert tokenizer.encode("Who", "wrote") == [
        *tokenizer.encode("Who"),
        *tokenizer.encode("wrote"),
    ]


def ask_tensor(tokenizer: Any) -> None:
    import torch

    ids = tokenizer.encode("Who wrote")
    assert tokenizer.decode(torch.tensor(ids)) == "Who wrote"


def ask_several(tokenizer: Any) -> None:
    ids = tokenizer.encode("Who wrote")
    assert tokenizer.decode([ids, ids[:1]]) == ["Who wrote", tokenizer.decode(ids[:1])]


ASKED = (ask_batch, ask_template, ask_pad, ask_pair, ask_tensor, ask_several)


@pytest.mark.parametrize("ask", ASKED)
def test_it_turns_into_transformers_tokenizer_for_all_else(ask: Any, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write(tmp_path, "bytes"))
    keep_style(tokenizer, "plain")
    renderer = make_renderer(tokenizer)
    before = renderer.open("Who wrote", " it?")
    vocabulary, name = tokenizer.get_vocab(), tokenizer.name_or_path
    ask(tokenizer)
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    assert tokenizer.get_vocab() == vocabulary
    assert tokenizer.name_or_path == name
    assert tokenizer.init_kwargs["turngym_render"] == "plain"
    assert renderer.open("Who wrote", " it?") == before, "whoever held it goes on"
    assert (tokenizer.eos_token_id, len(tokenizer)) == (1, len(vocabulary))


def test_it_turns_while_other_threads_read(tmp_path: Path) -> None:
    folder = write(tmp_path, "bytes")
    for _ in range(20):
        tokenizer, over, faults = load_tokenizer(folder), threading.Event(), []

        def read(of: Any = tokenizer, end: threading.Event = over, bad: Any = faults) -> None:
            try:
                while not end.is_set():
                    seen = of.eos_token_id, of.pad_token_id, len(of), of.encode("Who wrote")
                    assert seen[:2] == (1, 0)
            except BaseException as fault:  # noqa: BLE001 - told below
                bad.append(fault)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        assert tokenizer(["Who"]).input_ids
        over.set()
        for reader in readers:
            reader.join()
        assert faults == []


def edit(folder: Path, file: str, **changes: Any) -> None:
    known = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(known | changes))


OTHERS = {
    "a model of another kind": lambda f: edit(f, "config.json", model_type="llama"),
    "a class of its own": lambda f: edit(f, "tokenizer_config.json", tokenizer_class="Other"),
    "a setting more": lambda f: edit(f, "tokenizer_config.json", add_bos_token=True),
    "tidied texts": lambda f: edit(f, "tokenizer_config.json", clean_up_tokenization_spaces=True),
    "a token more": lambda f: edit(f, "tokenizer_config.json", eos_token="<|no|>"),
    "a template": lambda f: (f / "chat_template.jinja").write_text("{{ messages }}"),
    "padding": lambda f: edit(
        f,
        "tokenizer.json",
        padding={
            "strategy": {"Fixed": 8},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<|pad|>",
        },
    ),
    "tokens put before": lambda f: edit(
        f,
        "tokenizer.json",
        post_processor={
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<|pad|>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<|pad|>": {"id": "<|pad|>", "ids": [0], "tokens": ["<|pad|>"]}},
        },
    ),
}


@pytest.mark.parametrize("change", list(OTHERS))
def test_what_transformers_would_act_upon_is_left_to_it(change: str, tmp_path: Path) -> None:
    folder = write(tmp_path, "bytes")
    assert read_starter_tokenizer(folder) is not None
    OTHERS[change](folder)
    assert read_starter_tokenizer(folder) is None


def test_spoilt_files_end_with_the_error_of_before(tmp_path: Path) -> None:
    folder = write(tmp_path, "bytes")
    (folder / "tokenizer.json").write_text("{")
    assert read_starter_tokenizer(folder) is None
    with pytest.raises(BadValueError, match="no tokenizer could be loaded"):
        load_tokenizer(folder)


def test_what_an_installed_package_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"'transformers', which cannot.*import of tokeni"):
        train_tokenizer(TEXTS, vocab_size=400, max_length=64)
    with pytest.raises(MissingExtraError, match=r"'transformers', which cannot.*import of tokeni"):
        word_tokenizer(["a"], 64)
