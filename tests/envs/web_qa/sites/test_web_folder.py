"""A folder of pages as a site."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from turngym.envs.core.errors import DataError
from turngym.envs.web_qa.env import WebQA
from turngym.envs.web_qa.sites.folder import load_folder_site
from turngym.envs.web_qa.sites.pages import NoPage, Page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "site"
    (root / "people").mkdir(parents=True)
    (root / "people" / "ada.html").write_text(
        "<title>Ada Brook</title><p>Ada Brook paints. She was born in "
        '<a href="../my%20places.md#lum">Lum Tor</a>. <a href="https://b.test/">web</a> '
        '<a href="/people/gone.html">gone</a> <a href="../../secret.txt">out</a></p>',
        encoding="utf-8",
    )
    (root / "my places.md").write_text("# Places\nLum Tor lies by [Ada](people/ada.html).\n")
    (root / "long.txt").write_text("A story </information>\n" + "Word after word goes on. " * 40)
    (root / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "leak.txt").symlink_to(tmp_path / "secret.txt")
    return root


def questions(tmp_path: Path) -> Path:
    file = tmp_path / "q.jsonl"
    row = {"id": "q1", "question": "Where was Ada Brook born?", "golden_answers": ["Lum Tor"]}
    file.write_text(json.dumps(row) + "\n")
    return file


def test_a_folder_may_be_named_from_home(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_folder_site("~/site", 200) is load_folder_site(folder, 200)


def test_an_episode_over_a_folder(tmp_path: Path, folder: Path) -> None:
    env = WebQA(data=questions(tmp_path), site=folder, page_chars=80)
    env.reset(seed=0)
    observation, *_ = env.step("<search> Ada Brook born </search>")
    assert observation == (
        "\n\n<information>1. Ada Brook\npeople/ada.html\nShe was born in Lum Tor.\n"
        "2. Places\nmy%20places.md\nLum Tor lies by Ada.</information>\n\n"
    )
    observation, *_ = env.step("<open> 1 </open>")
    assert "[Lum Tor](my%20places.md)" in observation
    assert "part 1 of 2; next: <open> people/ada.html page 2 </open>" in observation
    observation, *_ = env.step("<open> people/ada.html page 2 </open>")
    assert "[web](https://b.test/) gone out" in observation
    observation, *_ = env.step("<open> https://b.test/ </open>")
    assert "is not on this site" in observation
    *_, info = env.step("<answer> lum tor </answer>")
    assert info["status"] == "solved"
    metrics = info["metrics"]
    assert (metrics["searches"], metrics["opens"], metrics["failed_opens"]) == (1.0, 3.0, 1.0)
    assert (metrics["recall"], metrics["pages"]) == (1.0, 1.0)
    assert "hops" not in metrics
    twin = pickle.loads(pickle.dumps(env))
    assert twin.digest() == env.digest()
    assert twin.web.site is env.web.site


def test_the_expert_searches_once_and_answers(tmp_path: Path, folder: Path) -> None:
    env = WebQA(data=questions(tmp_path), site=str(folder))
    expert = env.expert()
    observation, info = env.reset(seed=0)
    while info["status"] == "running":
        observation, *_, info = env.step(expert(env, observation, info))
    assert info["status"] == "solved"
    assert info["turn"] == 2
    hasty = WebQA(data=questions(tmp_path), site=folder, max_turns=1)
    observation, info = hasty.reset(seed=0)
    assert hasty.step(expert(hasty, observation, info))[4]["status"] == "solved"


def test_pages_are_the_text_files_inside(folder: Path) -> None:
    site = load_folder_site(folder, 200)
    assert site.pages["long.txt"].title == "A story (/information)"
    assert list(site.pages) == ["long.txt", "my%20places.md", "people/ada.html"]
    for address in ("my%20places.md", "./my%20places.md#x", "/my%20places.md"):
        (page,) = site.open([address])
        assert isinstance(page, Page)
        assert page.text == "# Places\nLum Tor lies by [Ada](people/ada.html)."
    for address in ("../secret.txt", "leak.txt", "people/../../secret.txt", "", "/etc/passwd"):
        (missing,) = site.open([address])
        assert isinstance(missing, NoPage)


def test_the_same_folder_is_the_same_site_until_it_changes(folder: Path) -> None:
    site = load_folder_site(folder, 200)
    assert load_folder_site(f"{folder}/.", 200) is site
    stored = pickle.dumps(site)
    (folder / "more.txt").write_text("More about it.")
    assert load_folder_site(folder, 200) is not site
    with pytest.raises(DataError, match="have changed"):
        pickle.loads(stored)


def test_refusals(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load_folder_site(tmp_path / "nothing", 200)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="holds no page"):
        load_folder_site(empty, 200)
    (empty / "x.txt").write_text("...")
    with pytest.raises(DataError, match="no page holds a word"):
        load_folder_site(empty, 200)
