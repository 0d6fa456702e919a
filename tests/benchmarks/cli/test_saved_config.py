"""`turngym train --config RUN`: what the options beside it leave of the saved run."""

from __future__ import annotations

import json
from pathlib import Path

from turngym.algos.runs.progress import Silent
from turngym.benchmarks.cli.arguments import expand_dotted
from turngym.benchmarks.cli.env_options import EnvOptions
from turngym.benchmarks.cli.train import Command, configure, default_command


def test_own_files_beside_a_saved_run_take_the_place_of_its_generated_world(
    tiny_model: Path, tmp_path: Path
) -> None:
    """Its size and hops could not be left out, and were refused beside the files."""
    small = EnvOptions(size="micro", hops=(1,), env_arg=("max_turns=1",))
    run = Command(env="SearchQA-v0", env_options=small, model=str(tiny_model))
    (tmp_path / "config.json").write_text(json.dumps(configure(run, Silent())[0].resolved("d")))

    def settings(*words: str) -> list[str]:
        found = default_command(expand_dotted(["--config", str(tmp_path), *words]))
        assert found is not None
        return sorted(word.partition("=")[0] for word in found.env_options.env_arg)

    assert settings("--data", "nq", "--corpus", "wiki.jsonl") == ["max_turns"]
    assert settings("--env.data", "nq") == ["max_turns"]
    assert settings("--env.top_k", "2") == ["hops", "max_turns", "size"]
