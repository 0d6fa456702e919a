"""Pages for readers: their links lead somewhere, their snippets and examples run."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib.util
import io
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
import yaml
from helpers.model_server import serving

from turngym.agents.engines.openai_client import Endpoint, EndpointError
from turngym.algos.recipes import RECIPES, make_recipe
from turngym.benchmarks.docs.links import broken_links
from turngym.benchmarks.docs.site import SHOWN, Site
from turngym.envs import all_ids, read_transcripts
from turngym.envs.core import registration
from turngym.envs.testing.check import LAWS
from turngym.leaderboard.suites.files import load_suite

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md"))]
ELSEWHERE = {
    "docs/adapters.md": "test_adapters_page.py",
    "docs/adding-a-credit-rule.md": "test_docs.py",
    "docs/adding-a-recipe.md": "test_recipe_page.py",
    "docs/adding-an-engine.md": "test_engine_page.py",
    "docs/adding-an-environment.md": "test_docs.py",
    "docs/comparisons.md": "test_comparisons_page.py",
    "docs/real-data.md": "test_real_data_page.py",
}
"""Pages whose snippets another test of this folder runs."""
SLOW = {"docs/training.md"}
"""Pages whose snippets train."""
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_CHARS = 6_500


def snippets(page: str) -> list[tuple[str, bool]]:
    """The Python blocks of a page, and whether each is to be run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        (found.group(1), NOT_RUN.search(text[: found.start()]) is None)
        for found in BLOCK.finditer(text)
    ]


RUN_HERE = [page for page in PAGES if page not in ELSEWHERE and any(r for _, r in snippets(page))]


@pytest.fixture
def forget() -> Iterator[None]:
    """Forget what examples registered."""
    recipes, ids, specs = dict(RECIPES), set(gym.registry), dict(registration._SPECS)
    yield
    RECIPES.clear()
    RECIPES.update(recipes)
    registration._SPECS.clear()
    registration._SPECS.update(specs)
    for env_id in set(gym.registry) - ids:
        del gym.registry[env_id]


def test_links_of_written_pages_lead_somewhere() -> None:
    pages = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in (ROOT, DOCS, ROOT / "benchmarks", ROOT / "benchmarks" / "results")
        for path in folder.glob("*.md")
    }
    made = Site()
    shown = {f"docs/{path}" for path in generated_paths(made)}
    files = shown | {
        path.relative_to(ROOT).as_posix()
        for folder in ("docs", "envs", "algos", "agents", "benchmarks", "leaderboard", ".")
        for path in (ROOT / folder).glob("**/*" if folder != "." else "*")
        if "__pycache__" not in path.parts
    }
    assert [str(link) for link in broken_links(pages, files)] == []


def generated_paths(site: Site) -> list[str]:
    """Where generated pages are, without making them."""
    return [
        *(f"environments/{name}.md" for name in (*all_ids(hidden=True), "index")),
        *(f"algorithms/{name}.md" for name in (*RECIPES, "index", "papers")),
        *(f"examples/{path.stem}.md" for path in EXAMPLES.glob("*.*")),
        "commands/index.md",
        "reference/metrics.md",
        *SHOWN.values(),
    ]


def test_the_navigation_names_pages_that_exist() -> None:
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]

    def leaves(items: Any) -> Iterator[str]:
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict):
                yield from (leaf for inside in item.values() for leaf in leaves(inside))
            else:
                yield item

    pages = {page for page in leaves(nav) if not page.startswith("@")}
    written = {path.name for path in DOCS.glob("*.md")}
    assert pages - written - set(generated_paths(Site())) == set()


def test_the_readme_is_short_and_names_every_environment_and_recipe() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text) <= README_CHARS
    assert [name for name in all_ids() if f"`{name}`" not in text] == []
    commands = re.findall(r"turngym submit (.*)", text)
    assert commands
    assert all("--organisation" in c and "--licence" in c for c in commands)


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "docs/adding-an-environment.md"])
def test_pages_say_how_many_laws_an_environment_is_checked_by(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert {int(n) for n in re.findall(r"\b(\d+) laws", text)} == {len(LAWS)}


def test_what_planners_gain_is_what_was_measured() -> None:
    """They solved "about twice as many" as greedy play."""
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    _, _, section = results.partition("## Planning with a learned reward, micro ScienceWorld-v0")
    table = [line.split("|") for line in section.partition("\n## ")[0].splitlines()]
    means = {row[1].split(",")[0].strip(): row[5].strip() for row in table if len(row) == 9}
    greedy, best, mcts = (float(means[name]) for name in ("greedy", "best of 6", "MCTS"))
    times = f"{(best + mcts) / 2 / greedy:.1f} times as many"
    said = f"(best of 6 {100 * best:.0f} %, MCTS {100 * mcts:.0f}, greedy {100 * greedy:.0f})"
    page = (DOCS / "armap.md").read_text(encoding="utf-8")
    assert f"{times} held-out variations as greedy play {said}" in page


def test_credit_by_state_says_in_what_its_recipes_differ() -> None:
    """It left out the groups of a step, the mini batches and the warm-up."""
    page = (DOCS / "credit-by-state.md").read_text(encoding="utf-8")
    assert "16 groups of 8 a step (`igpo`: 32 of 16) in 8 mini batches without a warm-up" in page
    assert "a KL of 0.01 (`igpo`: 0.001, as `grpo`), no entropy bonus" in page
    names = re.findall(r"^\| `(\w+)` \| .*, \d{4}\.\d{5} \|$", page, re.MULTILINE)
    assert len(names) == 7
    for name in names:
        made: Any = make_recipe(name, {})
        batch = (made.groups_per_step, made.rollout.n, made.loss.kl.coef)
        assert batch == ((32, 16, 0.001) if name == "igpo" else (16, 8, 0.01)), name
        assert (made.optim.minibatches, made.optim.warmup_steps) == (8, 0), name
        assert made.loss.entropy_coef == 0, name
        plain, small = (make_recipe(one, {}, small=True) for one in ("grpo", name))
        assert (plain.optim, plain.rollout) == (small.optim, small.rollout), name
        assert plain.groups_per_step == small.groups_per_step, name


def test_pages_that_other_tests_run_are_there() -> None:
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).is_file()
        assert Path(page).name in (Path(__file__).parent / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_snippets_are_python(page: str) -> None:
    for code, _ in snippets(page):
        ast.parse(code)


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in RUN_HERE]
)
def test_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code, run in snippets(page) * 2:  # a notebook's cells are run again
        if run:
            exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_ten_lines_ask_for_what_the_task_asks(page: str) -> None:
    (code, _), *_ = snippets(page)
    printed = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), names)
    question = printed.getvalue().splitlines()[0]
    first, *_ = re.findall(r"<search> (.*?) </search>", code)
    assert set(first.split()) <= set(re.findall(r"\w+", question))
    assert f"print(observation)  # {question}" in code
    assert names["reward"] == 1.0


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import an example as a script of its folder does."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_example_play_and_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load("play_and_fork", monkeypatch).main() == {"Bea Brook": 1.0, "Pia Pond": 0.0}


def test_example_record_and_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    same, difference = load("record_and_replay", monkeypatch).main()
    assert same
    assert "recorded 2.0, played 1.0" in difference


@pytest.mark.usefixtures("forget")
def test_example_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    report = load("own_environment", monkeypatch).main()
    assert "the expert reaches the top" in report.passed


@pytest.mark.slow
@pytest.mark.usefixtures("forget")
def test_example_own_credit_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before, after = load("own_credit_rule", monkeypatch).main(str(tmp_path / "run"))
    assert after > before + 0.2


@pytest.mark.slow
def test_example_compare_recipes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict = load("compare_recipes", monkeypatch).main(str(tmp_path), seeds=2, steps=3)
    assert verdict == "not decided"  # two seeds decide nothing


def test_example_compare_recipes_wants_two_seeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With one it trained for minutes, and then had nothing to compare."""
    with pytest.raises(ValueError, match="seeds is 1; expected at least 2"):
        load("compare_recipes", monkeypatch).main(str(tmp_path), seeds=1, steps=1)
    assert not list(tmp_path.iterdir())


def test_example_served_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server that stops answering costs nothing but time: the same call goes on."""
    example, file = load("served_model", monkeypatch), tmp_path / "played.jsonl"
    suite = load_suite("micro-game24-v3")
    slots = list(suite.slots())

    def reply(request: dict[str, Any]) -> str:
        assert request["model"] == "m"
        first, *_ = request["messages"]
        assert first["content"].endswith("Reply with your next action alone.")
        return "no action"

    monkeypatch.setattr(example, "Endpoint", partial(Endpoint, attempts=1))
    with serving(reply, reply, 500) as server, pytest.raises(EndpointError):
        example.main(server.url, "m", suite.id, str(file), workers=1)
    with serving(reply) as server:
        assert example.main(server.url, "m", suite.id, str(file)) == 0.0
    assert sorted(t.seed for t in read_transcripts(file)) == sorted(map(suite.seed_of, slots))


@pytest.mark.parametrize("content", [[{"type": "text", "text": "no action"}], 24])
def test_a_served_model_that_replies_with_no_text_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: object
) -> None:
    """It ended the run with an AttributeError."""
    example = load("served_model", monkeypatch)
    monkeypatch.setattr(example, "Endpoint", partial(Endpoint, attempts=1))
    reply = {"choices": [{"message": {"content": content}}]}
    raw = {"raw": json.dumps(reply).encode(), "status": 200}
    with serving(raw) as server, pytest.raises(EndpointError, match=r"content is a (list|int)"):
        example.main(server.url, "m", "micro-game24-v3", str(tmp_path / "played.jsonl"))


def test_a_served_model_without_room_ends_that_episode_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example, file = load("served_model", monkeypatch), tmp_path / "played.jsonl"
    too_long = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    full = {"raw": json.dumps(too_long).encode(), "status": 400}
    suite = load_suite("micro-game24-v3")

    def reply(request: dict[str, Any]) -> Any:
        most = {narrow[0]: 0, narrow[1]: 1}.get(request["seed"], 99)
        return full if len(request["messages"]) > most else "no action"

    narrow = list(map(suite.seed_of, list(suite.slots())[:2]))
    with serving(reply) as server:
        assert example.main(server.url, "m", suite.id, str(file), workers=1) == 0.0
    ends = {t.seed: (len(t.steps), t.status) for t in read_transcripts(file)}
    assert len(ends) == len(list(suite.slots()))
    assert [seed for seed, end in ends.items() if end == (1, "running")] == narrow


def test_there_are_six_scripts_and_two_notebooks_and_all_are_run() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = set(re.findall(r"load\(\"(\w+)\"", Path(__file__).read_text(encoding="utf-8")))
    assert names == tested
    assert (len(names), len(list(EXAMPLES.glob("*.ipynb")))) == (6, 2)


async def _run_cell(source: str, names: dict[str, Any]) -> None:
    """Inside an event loop, as a notebook's kernel does."""
    exec(compile(source, "cell", "exec"), names)


@pytest.mark.parametrize("name", ["tour", pytest.param("learning", marks=pytest.mark.slow)])
def test_notebooks_print_what_is_stored_in_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            asyncio.run(_run_cell("".join(cell["source"]), names))
        stored = "".join("".join(out["text"]) for out in cell["outputs"])
        assert printed.getvalue() == stored


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="extra docs; `make docs` builds the site")
    pytest.importorskip("mkdocstrings", reason="extra docs; `make docs` builds the site")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    site = tmp_path / "site"
    for name in all_ids(hidden=True):
        assert (site / "environments" / f"{name}.html").is_file()
    for name in RECIPES:
        assert (site / "algorithms" / f"{name}.html").is_file()
    assert 'id="turngym.envs.core.env.TextEnv"' in (site / "api" / "envs.html").read_text()
    assert "turngym train" in (site / "commands" / "train.html").read_text()
    loaded = re.compile(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+")
    found = {m.group() for page in site.rglob("*.html") for m in loaded.finditer(page.read_text())}
    assert found == set(), "pages load nothing from elsewhere"
