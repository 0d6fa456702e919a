"""`turngym push` and `pull` against a stand-in of a hub's endpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from helpers.hub_stand_in import TOKEN, Repos, _Hub, serve_hub
from helpers.packaged_model import NAME, packaged

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.lora import LoraSettings, with_lora
from turngym.algos.training.policy_files import save_policy
from turngym.benchmarks.cli.hub import _hub_errors
from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import BadValueError


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repos]:
    with serve_hub() as (address, repos):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        monkeypatch.chdir(tmp_path)
        yield repos


def make_run(tiny_model: Path) -> Path:
    run = Path("runs") / "mine"
    step = run / "checkpoints" / "step-000002"
    shutil.copytree(tiny_model, step)
    (step / "trainer").mkdir()
    (step / "trainer" / "optimizer.pt").write_bytes(b"a pickle")
    state = {"step": 2, "files": {}}
    (step / "trainer" / "state.json").write_text(json.dumps(state))
    config = {
        "env": {
            "id": "Letters-v0",
            "settings": {"data": "/home/me/secret/words.jsonl", "selector": "lm:/home/me/judge"},
        },
        "http": {
            "urls": ["http://me:word@gpu3.lab.example:8300", "https://10.0.0.7/me?token=word"]
        },
        "recipe": {"name": "grpo", "paper": "a paper"},
        "model": "/home/me/models/start",
        "seed": 3,
    }
    (run / "config.json").write_text(json.dumps(config))
    sets = [{"name": "dev", "success": {"mean": 0.25}}]
    (run / "result.json").write_text(json.dumps({"before": sets, "after": sets}))
    (run / "metrics.jsonl").write_text('{"step": 0}\n')
    return run


@pytest.mark.parametrize("address", ["http://[bad", "hub.example"])
def test_an_address_of_the_hub_that_is_none_is_named(
    hub: Repos,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    for words in (["push", str(tiny_model), "me/mine"], ["pull", "me/mine", "--out", "got"]):
        assert main(words) == 2
        assert f"HF_ENDPOINT is '{address}'; expected an address" in capsys.readouterr().err
    assert not Path("got").exists()


def test_a_run_s_model_goes_there_and_back(
    hub: Repos,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tiny_model)
    found = run / "checkpoints" / "step-000002"
    monkeypatch.setattr("turngym.benchmarks.cli.push.model_path", lambda *_, **__: str(found))
    (found / "LICENSE").write_text("Apache 2.0")
    (found / "GEMMA_TERMS.html").write_text("<p>terms")
    assert main(["push", str(run), "lab/mine", "--dry"]) == 0
    assert "would be sent to lab/mine" in capsys.readouterr().out
    assert hub == {}
    assert main(["push", str(run), "lab/mine"]) == 0, capsys.readouterr().err
    files = hub["models", "lab/mine"]
    assert {"model.safetensors", "config.json", "README.md", "run/metrics.jsonl"} <= files.keys()
    assert not any("optimizer" in name or "trainer" in name for name in files)
    sent = b"".join(files.values())
    assert not any(
        place in sent for place in (b"/home/me", b"me:word", b"token=", b"lab.example", b"10.0.0.7")
    )
    config = json.loads(files["run/config.json"])
    assert config["model"] == "start"
    assert config["env"]["settings"] == {"data": "words.jsonl", "selector": "lm:judge"}
    assert config["http"]["urls"] == ["http://…", "https://…"]
    assert b"| dev | 25.0% | 25.0% |" in files["README.md"]
    assert main(["pull", "lab/mine", "--out", "copy"]) == 0, capsys.readouterr().err
    assert "play it with: turngym eval --agent copy" in capsys.readouterr().out
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (Path("copy") / name).read_bytes() == (tiny_model / name).read_bytes()
    assert (Path("copy") / "LICENSE").read_text() == "Apache 2.0"
    assert (Path("copy") / "GEMMA_TERMS.html").read_text() == "<p>terms"
    assert not (Path("copy") / ".cache").exists()
    assert main(["pull", "lab/mine", "--out", "copy"]) == 2  # never over what is there


def test_an_older_checkpoint_is_not_sent_beside_the_newest_scores(
    hub: Repos,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tiny_model)
    whole = run / "checkpoints" / "step-000002"
    (run / "checkpoints" / "step-000004").mkdir()  # damaged
    monkeypatch.setattr("turngym.benchmarks.cli.push.model_path", lambda *_, **__: str(whole))
    assert main(["push", str(run), "lab/mine"]) == 2
    assert "step-000004, which the run's scores are of, is damaged" in capsys.readouterr().err
    assert main(["push", str(whole), "lab/mine"]) == 0
    assert not any(name.startswith("run/") for name in hub["models", "lab/mine"])


def test_adapters_go_there_without_paths_and_are_found_again(
    hub: Repos,
    tiny_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tiny_model)
    found = run / "checkpoints" / "step-000002"
    monkeypatch.setattr("turngym.benchmarks.cli.push.model_path", lambda *_, **__: str(found))
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "there"))
    base = packaged(tiny_model)
    save_policy(with_lora(load_model(base), LoraSettings(rank=2)), found)
    (found / "model.safetensors").unlink()
    settings = json.loads((found / "adapter_config.json").read_text())
    for name in (NAME, str(base)):  # the second as it was written before, with a page of peft's
        settings["base_model_name_or_path"] = name
        (found / "adapter_config.json").write_text(json.dumps(settings))
        assert main(["push", str(run), "lab/mine"]) == 0, capsys.readouterr().err
        files = hub["models", "lab/mine"]
        assert json.loads(files["adapter_config.json"])["base_model_name_or_path"] == NAME
        assert str(tmp_path).encode() not in b"".join(files.values())
        assert files["README.md"].startswith(b"---\nlibrary_name: transformers")
        (found / "README.md").write_text(f"---\nbase_model: {base}\n---\n")
    shutil.move(tmp_path / "there", tmp_path / "here")
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "here"))
    assert main(["pull", "lab/mine", "--out", "copy"]) == 0, capsys.readouterr().err
    load_model("copy")


def test_adapters_of_a_model_that_nobody_else_has_are_not_sent(
    hub: Repos, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("lora").mkdir()
    save_policy(with_lora(load_model(tiny_model), LoraSettings(rank=2)), Path("lora"))
    assert main(["push", "lora", "lab/mine"]) == 2
    assert "turngym merge lora OUT" in capsys.readouterr().err.replace("\n", " ")
    assert hub == {}


def test_what_could_run_code_is_not_fetched(hub: Repos, tiny_model: Path) -> None:
    files = {path.name: path.read_bytes() for path in tiny_model.iterdir()}
    hub["models", "lab/bad"] = {**files, "pytorch_model.bin": b"x", "modeling_mine.py": b"x"}
    assert main(["pull", "lab/bad", "--out", "copy"]) == 0
    assert {path.suffix for path in Path("copy").iterdir()} <= {".json", ".safetensors", ".jinja"}


def test_licence_texts_are_fetched_as_they_are_sent(hub: Repos, tiny_model: Path) -> None:
    texts = {"LICENSE-MIT", "USE_POLICY", "GEMMA_TERMS", "NOTICE", "COPYING", "LICENSE.Apache-2.0"}
    shutil.copytree(tiny_model, "mine")
    for name in (*texts, "license.py", "LICENSE.bin"):
        (Path("mine") / name).write_text(name)
    assert main(["push", "mine", "lab/mine"]) == 0
    hub["models", "lab/mine"] |= {"license.py": b"1", "LICENSE.bin": b"1", "[a]*.json": b"{}"}
    assert main(["pull", "lab/mine", "--out", "copy"]) == 0
    sent = {path.name for path in tiny_model.iterdir()} | texts
    assert {path.name for path in Path("copy").iterdir()} == sent | {"[a]*.json"}
    assert (Path("copy") / "USE_POLICY").read_text() == "USE_POLICY"


def test_folders_of_a_model_go_there_and_back(
    hub: Repos, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(tiny_model, "mine")
    tokenizer = load_tokenizer("mine")
    tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "{{ tools }}"}
    tokenizer.save_pretrained("mine")
    template = "additional_chat_templates/tool_use.jinja"
    sent = {template: "{{ tools }}", "run/metrics.jsonl": "{}", "licences/a/LICENSE": "MIT"}
    stays = ("trainer/state.json", "trainer/shards/0.json", ".git/config.json", "code/model.py")
    other = ("checkpoint-5/model.safetensors", "checkpoint-5/config.json")  # of another trainer
    for name in (*sent, *stays, *other):
        path = Path("mine") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name != template:
            path.write_text(sent.get(name, "x"))
    assert main(["push", "mine", "lab/mine"]) == 0, capsys.readouterr().err
    assert {name for name in hub["models", "lab/mine"] if "/" in name} == sent.keys()
    assert main(["pull", "lab/mine", "--out", "copy"]) == 0, capsys.readouterr().err
    assert {name: (Path("copy") / name).read_text() for name in sent} == sent
    assert load_tokenizer("copy").chat_template == tokenizer.chat_template


@pytest.mark.parametrize("there", [False, True])
def test_a_pull_that_fails_can_be_tried_again(
    hub: Repos, tiny_model: Path, there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {path.name: path.read_bytes() for path in tiny_model.iterdir()}
    hub["models", "lab/mine"] = {k: v for k, v in files.items() if "safetensors" not in k}
    if there:
        Path("copy").mkdir()
    assert main(["pull", "lab/mine", "--out", "copy"]) == 2
    assert "holds no model as safetensors" in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["copy"] * there
    hub["models", "lab/mine"] = files
    assert main(["pull", "lab/mine", "--out", "copy"]) == 0
    assert {path.name for path in Path("copy").iterdir()} == files.keys()
    assert [path.name for path in Path().iterdir()] == ["copy"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pull", "cut short"),
        ("pull", "a page"),
        ("pull", "nothing"),
        ("push", "a page"),
        ("push", "nothing"),
    ],
)
def test_an_answer_that_is_none_of_a_hub_is_one_line(
    hub: Repos,
    tiny_model: Path,
    command: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub["models", "lab/mine"] = {p.name: p.read_bytes() for p in tiny_model.iterdir()}
    send = _Hub._send

    def answer(self: Any, status: int, data: bytes, headers: dict[str, str]) -> None:
        if said == "cut short" and self.command == "GET" and "/resolve/" in self.path:
            data = data[:-1]
        elif said != "cut short":
            data = {"a page": b"<html>Log in</html>", "nothing": b"null"}[said]
        send(self, status, data, headers)

    monkeypatch.setattr(_Hub, "_send", answer)
    words = {"pull": ["lab/mine", "--out", "copy"], "push": [str(tiny_model), "lab/x"]}[command]
    assert main([command, *words]) == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert f"error: {command} lab/" in told
    assert "the hub's answer cannot be used" in told
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory", "model.safetensors"),
        OSError(24, "Too many open files"),
        UnicodeEncodeError("ascii", "é", 0, 1, "ordinal not in range"),
        BadValueError("of our own"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_this_machine_refuses_is_not_blamed_on_the_hub(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, _hub_errors("push"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "error", [TimeoutError("timed out"), AttributeError("'int' object has no attribute 'replace'")]
)
def test_an_error_of_the_way_to_a_hub_is_one_line(error: Exception) -> None:
    with pytest.raises(BadValueError, match=f"^push: .*{error}"), _hub_errors("push"):
        raise error


def test_a_pull_names_the_status_of_a_file_that_is_refused(
    hub: Repos,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub["models", "lab/mine"] = {p.name: p.read_bytes() for p in tiny_model.iterdir()}
    send = _Hub._send

    def answer(self: Any, status: int, data: bytes, headers: dict[str, str]) -> None:
        send(self, 403 if "/resolve/" in self.path else status, data, headers)

    monkeypatch.setattr(_Hub, "_send", answer)
    assert main(["pull", "lab/mine", "--out", "copy"]) == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert "403" in told
    assert "hf auth login" in told


def test_an_error_without_words_is_named(
    hub: Repos, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", broken)
    assert main(["pull", "lab/mine", "--out", "copy"]) == 2
    assert "error: pull lab/mine: ConnectionResetError" in capsys.readouterr().err


def test_an_entry_goes_there_and_back_and_is_verified(
    hub: Repos, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Path("entry")
    (entry / "episodes").mkdir(parents=True)
    (entry / "entry.json").write_text("{}")
    (entry / "episodes" / "A-v0.jsonl").write_text("")
    assert main(["push", "entry", "lab/entry"]) == 0, capsys.readouterr().err
    assert set(hub["datasets", "lab/entry"]) == {"entry.json", "episodes/A-v0.jsonl"}
    assert main(["pull", "lab/entry", "--kind", "entry", "--out", "copy"]) == 2
    assert "pull lab/entry: entry.json" in capsys.readouterr().err.replace("\n", " ")
    (entry / "evil.py").write_text("1")
    assert main(["push", "entry", "lab/entry"]) == 2
    assert "evil.py" in capsys.readouterr().err


def test_refusals_are_one_line(
    hub: Repos,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["pull", "lab/absent", "--out", "copy"]) == 2
    assert "error: pull lab/absent: 404" in capsys.readouterr().err
    Path("empty").mkdir()
    assert main(["push", "empty", "lab/x"]) == 2
    assert "expected a run directory, a model folder" in capsys.readouterr().err.replace("\n", " ")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert main(["push", str(tiny_model), "lab/x"]) == 2
    assert "hf auth login" in capsys.readouterr().err
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert main(["push", str(tiny_model), "lab/x"]) == 2
    assert "error: push lab/x:" in capsys.readouterr().err


@pytest.mark.usefixtures("hub")
def test_a_mistyped_source_names_what_can_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", "absent", "me/agent"]) == 2
    known = capsys.readouterr().err.partition("Known: ")[2]
    assert known.startswith("a leaderboard entry, ")
    assert "human" not in known
