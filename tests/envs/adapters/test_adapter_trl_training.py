"""GRPO by TRL's own trainer on micro SearchQA, through the adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.adapter_play import as_call, played

from turngym.envs.adapters.trl_environment import EnvironmentFactory, episode_info, trl_rows

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

MARKS = ["<|im_start|>", "<|im_end|>"]
CALLS = ["<tool_call>", "</tool_call>"]
WRONG = "Nobody"
SETTINGS = {"size": "micro", "top_k": 1}


def a_tokenizer(text: str) -> Any:
    """A byte-level tokenizer of the text, with Qwen's marks and its template of tools."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [text],
        tokenizers.trainers.BpeTrainer(
            vocab_size=800, initial_alphabet=alphabet, show_progress=False
        ),
    )
    made.add_special_tokens([tokenizers.AddedToken(m, special=True) for m in MARKS])
    made.add_tokens([tokenizers.AddedToken(m, special=False) for m in CALLS])
    template = Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja"
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token=MARKS[1],
        pad_token=MARKS[0],
        chat_template=template.read_text(encoding="utf-8"),
    )


def dialogues(row: dict[str, Any]) -> tuple[list[Any], list[list[dict[str, Any]]]]:
    """The tools as TRL gives them to the template; the expert's dialogue, right and wrong."""
    environment = EnvironmentFactory("SearchQA-v0", SETTINGS)()
    tools = environment._game.action_tools
    told: list[list[dict[str, Any]]] = []
    for wrong in (False, True):
        content = row["prompt"][0]["content"] + environment.reset(**row)
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        for action in played("SearchQA-v0").actions:
            name, arguments = as_call(action, tools)
            if name == "answer" and wrong:
                arguments = {"answer": WRONG}
            call = {"type": "function", "function": {"name": name, "arguments": arguments}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            answered = getattr(environment, name)(**arguments)
            messages.append({"role": "tool", "name": name, "content": answered})
        told.append([*messages, {"role": "assistant", "content": "Done."}])
        assert environment.get_reward() == float(not wrong)
    return [getattr(environment, name) for name in sorted(tools)], told


def half_right(rendered: list[list[int]], vocabulary: int) -> Any:
    """A tiny random model that learned both dialogues by heart."""
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
    )
    model = transformers.Qwen2ForCausalLM(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rows = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(ids) for ids in rendered], batch_first=True, padding_value=-100
    )
    for _ in range(300):
        loss = model(input_ids=rows.clamp(min=0), labels=rows).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.004:
            break
    return model


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_grpo_trains_through_the_environment_factory(tmp_path: Path) -> None:
    row = trl_rows("SearchQA-v0", 2, split="dev", seed=5, settings=SETTINGS)[1]
    methods, told = dialogues(row)
    schemas = [transformers.utils.get_json_schema(method) for method in methods]
    text = "".join(str(message) for messages in told for message in messages) + str(schemas)
    tokens = a_tokenizer(text)
    rendered = [
        tokens.apply_chat_template(messages, tools=methods, tokenize=True, return_dict=False)
        for messages in told
    ]
    model = half_right(rendered, len(tokens))
    seen: list[tuple[str, int]] = []

    def watched(environments: list[Any], **given: Any) -> list[float]:
        infos = [episode_info(environment) for environment in environments]
        seen.extend((info["status"], info["turn"]) for info in infos)
        return [0.0] * len(infos)

    config = trl.GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=400,
        max_steps=6,
        learning_rate=1e-4,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=3,
    )
    before = [weight.detach().clone() for weight in model.parameters()]
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=watched,
        args=config,
        train_dataset=datasets.Dataset.from_list([row] * 8),
        processing_class=tokens,
        environment_factory=EnvironmentFactory("SearchQA-v0", SETTINGS),
    )
    trainer.train()
    rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    assert len(rewards) == 6
    assert len(seen) == 48
    assert {status for status, _ in seen} >= {"solved", "failed"}
    assert any(turn == 2 for _, turn in seen)
    assert 0 < sum(rewards) / len(rewards) < 1
    assert all(log["grad_norm"] > 0 for log in trainer.state.log_history if log.get("reward_std"))
    changed = [
        not torch.equal(a, b.detach()) for a, b in zip(before, model.parameters(), strict=True)
    ]
    assert any(changed)
