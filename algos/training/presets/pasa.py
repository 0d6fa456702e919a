"""PaSa's crawler with Qwen2.5-7B."""

from __future__ import annotations

from .preset import Preset, Published

PRESETS = (
    Preset(
        name="pasa-7b",
        paper="PaSa, arXiv 2501.10120",
        recipe="pasa",
        model="Qwen/Qwen2.5-7B-Instruct",
        env="PaperCrawler-v0",
        env_settings={"size": "full", "prompt": "pasa", "granularity": "action"},
        steps=250,
        max_tokens=1024,
        max_context=2048,
        sampled_tokens=1024,
        trained_paths=4,
        gpus=16,
        published=(
            Published("AutoScholarQuery, crawler recall", ".7931", "without RL .6556"),
            Published("AutoScholarQuery, recall", ".4834", "without RL .4210"),
            Published("AutoScholarQuery, precision", ".1448", "without RL .1476"),
            Published("RealScholarQuery, recall", ".6111", "without RL .4115"),
        ),
        notes=(
            "the paper starts from the crawler after imitation (learning rate 1e-5, one epoch of "
            "5,000 requests): train it with the recipe sft first and name it by --model",
            "the paper's papers and requests are data and papers of the environment; without them "
            "the generated world is crawled",
            "whole crawls are played and 4 sessions per request trained on, so more is sampled "
            "than the plan counts",
        ),
    ),
)
