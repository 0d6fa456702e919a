"""Shared by all tests: a tiny random language model; registers the toy world ``Letters-v0``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported, and for the processes that tests start. Two workers with a thread per
# core each take several times as long: OpenMP's threads wait for one another by spinning.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Behind `&` of a shell Ctrl-C is ignored, and so it would be by the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a busy machine is no fault of a strategy or of a law
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("brief", _PATIENT, max_examples=60)
settings.register_profile("thorough", _PATIENT, max_examples=1000)  # --hypothesis-profile thorough
settings.load_profile("brief")

# the second registers Letters-v0
pytest_plugins = ["helpers.browser", "helpers.letters_world", "helpers.other_torch"]


def pytest_collection_finish() -> None:
    """Freeze a million objects that stay: every training run looks for what is unused."""
    from turngym.envs.utils.garbage_collection import freeze_for_good

    freeze_for_good()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved folder: two-layer Qwen2 with random weights, byte-level BPE of 300 tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("tiny")
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        ["pear plum fig kiwi again empty search answer information"] * 4,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<|pad|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<|pad|>", eos_token="<|endoftext|>"
    )
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder
