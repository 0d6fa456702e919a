"""A starter's tokenizer without transformers, whose import takes longer than a training step."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ROLES = ("eos_token", "unk_token", "pad_token")  # in the order of transformers
_BESIDE = ("chat_template.jinja", "chat_template.json", "special_tokens_map.json")
_BESIDE += ("added_tokens.json", "additional_chat_templates")
_KNOWN = {*_ROLES, "backend", "clean_up_tokenization_spaces", "is_local", "local_files_only"}
_KNOWN |= {"model_max_length", "tokenizer_class", "turngym_render"}
_CLASS = "TokenizersBackend"
_OF_THE_PLACE = ("is_local", "local_files_only")  # how it was read once, nothing of its own


_TURNING = threading.Lock()


class StarterTokenizer:
    """What a run asks of a tokenizer, answered by the compiled tokenizer behind transformers' own.

    Anything else that is asked of it or set (a chat template, a padded batch, another end token)
    turns it into the ``transformers.PreTrainedTokenizerFast`` of the same folder, which it then is
    for good, whoever holds it.

    Args:
        backend: Of the ``tokenizers`` library.
        settings: What ``tokenizer_config.json`` says.
        name_or_path: Where it comes from.

    Attributes:
        backend_tokenizer: The ``backend``.
        init_kwargs: The ``settings``; what is added is saved with them.
    """

    chat_template: str | None = None
    bos_token: str | None = None
    bos_token_id: int | None = None
    split_special_tokens = False
    is_fast = True

    def __init__(self, backend: Any, settings: dict[str, Any], name_or_path: str) -> None:
        own = {"backend_tokenizer": backend, "init_kwargs": settings, "name_or_path": name_or_path}
        self.__dict__.update(own)

    @property
    def eos_token(self) -> str | None:
        """The token that ends a text."""
        return self.init_kwargs.get("eos_token")

    @property
    def eos_token_id(self) -> int | None:
        """Its id."""
        return _id(self, self.eos_token)

    @property
    def pad_token(self) -> str | None:
        """The token that fills rows."""
        return self.init_kwargs.get("pad_token")

    @property
    def pad_token_id(self) -> int | None:
        """Its id."""
        return _id(self, self.pad_token)

    @property
    def unk_token(self) -> str | None:
        """The token of words that are not known; None where all bytes are."""
        return self.init_kwargs.get("unk_token")

    @property
    def unk_token_id(self) -> int | None:
        """Its id."""
        return _id(self, self.unk_token)

    @property
    def model_max_length(self) -> int:
        """Most tokens that its model reads."""
        return self.init_kwargs["model_max_length"]

    @property
    def all_special_tokens(self) -> list[str]:
        """The tokens above, each once."""
        return list(dict.fromkeys(self.init_kwargs[k] for k in _ROLES if k in self.init_kwargs))

    @property
    def all_special_ids(self) -> list[int]:
        """Their ids."""
        return [self.backend_tokenizer.token_to_id(token) for token in self.all_special_tokens]

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size(with_added_tokens=True)

    def get_vocab(self) -> dict[str, int]:
        """All tokens and their ids."""
        return self.backend_tokenizer.get_vocab(with_added_tokens=True)

    def encode(self, text: str, *rest: Any, **options: Any) -> list[int]:
        """Return the ids of a text. No special token is ever added: it has none to add."""
        if rest or set(options) - {"add_special_tokens"} or not isinstance(text, str):
            return _become(self).encode(text, *rest, **options)
        return self.backend_tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **options: Any) -> str:
        """Return the text of ids."""
        options.pop("clean_up_tokenization_spaces", None)  # byte-level: there is nothing to clean
        flat = isinstance(token_ids, Sequence) and not any(
            isinstance(one, Sequence) for one in token_ids[:1]
        )
        if options or not flat:
            return _become(self).decode(token_ids, skip_special_tokens, **options)
        return self.backend_tokenizer.decode(
            list(token_ids), skip_special_tokens=skip_special_tokens
        )

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return the id of a token, or the ids of several; ``unk_token_id`` for others."""
        if isinstance(tokens, str):
            return _id(self, tokens)
        return [_id(self, token) for token in tokens]

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Return the token of an id, or the tokens of several."""
        if isinstance(ids, int):
            return self.backend_tokenizer.id_to_token(ids)
        skipped = set(self.all_special_ids) if skip_special_tokens else ()
        return [self.backend_tokenizer.id_to_token(int(i)) for i in ids if int(i) not in skipped]

    def save_pretrained(self, save_directory: Any, **options: Any) -> tuple[str, ...]:
        """Write the two files that it is read from."""
        if options:
            return _become(self).save_pretrained(save_directory, **options)
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {k: v for k, v in self.init_kwargs.items() if k not in _OF_THE_PLACE}
        text = json.dumps(settings, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
        self.backend_tokenizer.save(str(folder / "tokenizer.json"))
        return str(folder / "tokenizer_config.json"), str(folder / "tokenizer.json")

    def __call__(self, *texts: Any, **options: Any) -> Any:
        """A padded batch, as transformers makes it."""
        return _become(self)(*texts, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python itself: copies and pickles ask for some
            raise AttributeError(name)
        return getattr(_become(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_become(self), name, value)


def _id(tokenizer: Any, token: str | None) -> int | None:
    if token is None:
        return None
    found = tokenizer.backend_tokenizer.token_to_id(token)
    unknown = tokenizer.unk_token
    return found if found is not None or token == unknown else _id(tokenizer, unknown)


def _become(tokenizer: Any) -> Any:
    """Turn a tokenizer into transformers' own, and return it: it is the same object."""
    from transformers import PreTrainedTokenizerFast

    with _TURNING:
        if type(tokenizer) is not StarterTokenizer:  # another thread was sooner
            return tokenizer
        settings = {k: v for k, v in tokenizer.init_kwargs.items() if k != "tokenizer_class"}
        settings["name_or_path"] = tokenizer.name_or_path
        full = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **settings)
        # whoever reads meanwhile finds what either class needs
        tokenizer.__dict__.update(full.__dict__)
        object.__setattr__(tokenizer, "__class__", type(full))
        tokenizer.__dict__.pop("backend_tokenizer", None)
    return tokenizer


def read_starter_tokenizer(folder: Path) -> StarterTokenizer | None:
    """Return the tokenizer of a folder that this library wrote.

    None where it is not one: files beside it, settings or tokens that transformers would act upon,
    or a file that cannot be read, of which transformers says what is wrong.
    """
    try:
        from tokenizers import Tokenizer

        model = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        ours = model["model_type"] == "qwen3" and settings["tokenizer_class"] == _CLASS
    except (ImportError, OSError, ValueError, KeyError, TypeError):
        return None
    if not ours or set(settings) - _KNOWN or settings.get("clean_up_tokenization_spaces") is True:
        return None
    if any((folder / name).exists() for name in _BESIDE):
        return None
    try:
        backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception:  # noqa: BLE001 - the library has no error of its own
        return None
    held = backend.get_added_tokens_decoder().values()
    special = {token.content for token in held if token.special}
    named = [settings[role] for role in _ROLES if settings.get(role) is not None]
    known = all(isinstance(token, str) and token in special for token in named)
    plain = backend.num_special_tokens_to_add(False) == 0
    plain = plain and backend.truncation is None and backend.padding is None
    if not (known and plain and "model_max_length" in settings):
        return None
    return StarterTokenizer(backend, settings, str(folder))
