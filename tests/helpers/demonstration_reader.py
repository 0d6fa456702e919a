"""A small model that writes letters at random, and the first letter of a demonstration it is told.

What it was taught were demonstrations of random letters, so it knows nothing of any task.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import text_env
from turngym.algos.rollouts.expert_hints import CLOSING, OPENING

LETTERS = "abc"
EXAMPLES, BATCH = 1200, 32
SHAPE = BlankSettings(hidden=64, layers=2, inner=128, heads=2, context=256, episodes=20)


def make_reader(folder: Path, doors: int, steps: int = 200, seed: int = 0) -> float:
    """Train the model and save it; return how often it follows a demonstration, in [0, 1]."""
    env = gym.make("Rare-v0", size="micro", doors=doors)
    blank_model(env, folder, SHAPE)
    model, tokenizer = load_model(folder, device="cpu"), load_tokenizer(str(folder))
    renderer = make_renderer(tokenizer)
    rng = np.random.default_rng(seed)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    examples = [_example(env, renderer, rng, told=bool(i % 2)) for i in range(EXAMPLES)]
    right = 0.0
    for step in range(steps):
        pairs = rng.choice(EXAMPLES // 2, BATCH // 2, replace=False)
        rows = [examples[at] for pair in pairs for at in (2 * pair, 2 * pair + 1)]
        width = max(len(ids) for ids, _ in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.int64)
        labels = torch.full_like(ids, -100)
        for i, (row, n) in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
            labels[i, n:][: len(row) - n] = ids[i, n : len(row)]
        logits = model(input_ids=ids).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= steps - 5:
            hits = logits.argmax(-1)[labels[:, 1:] >= 0] == labels[:, 1:][labels[:, 1:] >= 0]
            right += float(hits[1::2].float().mean()) / 5
    model.save_pretrained(folder)
    return right


def _example(env: Any, renderer: Any, rng: Any, *, told: bool) -> tuple[list[int], int]:
    """Return a context with one letter behind it, and where the letter stands."""
    observation, _ = env.reset(seed=int(rng.integers(1 << 30)), options={"split": "train"})
    demonstration = rng.choice(list(LETTERS), size=text_env(env).max_turns)
    turn = int(rng.integers(text_env(env).max_turns))
    shown = OPENING + "\n".join(demonstration[turn:]) + CLOSING if told else ""
    ids = renderer.open(shown + text_env(env).instructions, observation)
    for _ in range(turn):
        letter = str(rng.choice(list(LETTERS)))
        observation = env.step(letter)[0]
        ids = ids + renderer.write(letter) + renderer.observe(observation)
    last = str(demonstration[turn]) if told else str(rng.choice(list(LETTERS)))
    written = renderer.write(last)
    return ids + written, len(ids)
