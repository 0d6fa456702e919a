"""The examples of docs/adapters.md run."""

from __future__ import annotations

import importlib.util
import json
import re
import socket
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import TurngymError

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")


def example(heading: str, language: str = "python") -> list[str]:
    """The code blocks under a heading."""
    (section,) = re.findall(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; `make test-adapters` runs this example")


def run(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, "docs/adapters.md", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_tools(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = example("Tools for any client")
    names = run(code)
    assert names["reply"].info["turn"] == 1
    assert names["reply"].text in capsys.readouterr().out


def test_trl(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("trl")
    needs("datasets")
    import trl

    given: dict[str, Any] = {}

    class Trainer:
        def __init__(self, **settings: Any) -> None:
            given.update(settings)

        def train(self) -> None:
            row = given["train_dataset"][3]
            environment = given["environment_factory"]()
            given["prompt"] = environment.reset(**row)

    monkeypatch.setattr(trl, "GRPOTrainer", Trainer)
    on_cpu = partial(trl.GRPOConfig, use_cpu=True, bf16=False)
    monkeypatch.setattr(trl, "GRPOConfig", on_cpu)
    (code,) = example("TRL")
    run(code)
    assert len(given["train_dataset"]) == 64
    assert "Question: " in given["prompt"]


def test_verifiers() -> None:
    needs("verifiers")
    (code,) = example("verifiers and prime-rl")
    prompts = run(code)["prompts"]
    assert len(set(prompts)) == 4
    assert prompts[0].startswith("Question: ")


def test_verl() -> None:
    needs("pandas")
    (code,) = example("verl")
    names = run(code)
    read = names["pandas"].read_parquet("train.parquet")
    assert len(read) == 64
    assert read["prompt"][5][0]["content"].startswith("Question: ")
    needs("verl")
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase

    ((yaml),) = example("verl", "yaml")
    (entry,) = OmegaConf.create(yaml)
    module, _, name = entry["_target_"].rpartition(".")
    loop = getattr(importlib.import_module(module), name)
    assert issubclass(loop, AgentLoopBase)
    assert entry["name"] == read["agent_name"][0]


def test_skyrl() -> None:
    needs("skyrl_gym")
    (code,) = example("SkyRL-gym")
    names = run(code)
    assert names["prompt"] == names["rows"][0]["prompt"]
    assert names["out"]["done"]
    assert names["out"]["metadata"]["status"] == "failed"


def test_openenv(capsys: pytest.CaptureFixture[str]) -> None:
    needs("openenv")
    import uvicorn

    serving, playing = example("OpenEnv")
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = uvicorn.Server(uvicorn.Config(run(serving)["app"], log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.02)
            names = run(playing, address=f"http://127.0.0.1:{door.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(timeout=20)
    assert names["first"].observation.split == "test"
    assert "<information>" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["mcp", "openenv"])
def test_commands_refuse_clearly(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "SearchQA-v1"]) == 2
    assert "SearchQA-v0" in capsys.readouterr().err
    if importlib.util.find_spec(command) is None:
        assert main([command, "SearchQA-v0"]) == 2
        said = capsys.readouterr().err.replace("\n", " ")
        assert f"turngym[{command}]" in said
        return
    assert main([command, "SearchQA-v0", "--env.sise", "micro"]) == 2
    assert "size" in capsys.readouterr().err
    if command == "openenv":
        assert main([command, "SearchQA-v0", "--env.size", "micro", "--port", "70000"]) == 2
        assert "expected 0 to 65535" in capsys.readouterr().err
        assert main([command, "SearchQA-v0", "--episodes", "0"]) == 2


def test_mcp() -> None:
    (text,) = example("MCP", "json")
    (server,) = json.loads(text)["mcpServers"].values()
    assert server["command"] == "turngym"
    needs("mcp")
    from turngym.envs.adapters.mcp_server import McpEnvironment

    command, env_id, option, split = server["args"]
    assert (command, option) == ("mcp", "--split")
    environment = McpEnvironment(env_id, {"size": "micro"}, split)
    assert environment._call("new_episode", {}).meta["turngym/episode"]["split"] == "test"
    with pytest.raises(TurngymError):
        McpEnvironment("PaperCrawler-v0", {"size": "micro"})
