"""What each process of test_http_training.py runs: the tiny model, over servers or here."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from helpers import letters_world
from helpers.rank_run import setup

from turngym.agents.engines.http.settings import HttpSettings
from turngym.algos.training.trainer import train

assert letters_world.Letters

if __name__ == "__main__":
    torch.set_num_threads(1)
    model, folder, weights, *urls = sys.argv[1:]
    config = setup("grpo", model, 3)
    if urls:
        how: dict[str, Any] = {"weights_folder": weights}
        if weights == "group":
            how = {"weights_by": "group"}
        own = HttpSettings(urls=tuple(urls), timeout_s=60.0, **how)
        config = replace(config, engine="http", http=own)
    train(config, Path(folder))
