"""Pages that are made from the registries, the parsers and packed results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.tiny_matrix import filled, tiny

from turngym.algos.recipes import RECIPES
from turngym.algos.runs.metrics import METRICS
from turngym.benchmarks.cli.environment_pages import Described, environment_page
from turngym.benchmarks.cli.main import COMMANDS
from turngym.benchmarks.docs.api_pages import API, api_pages, exported, write_sources
from turngym.benchmarks.docs.command_pages import INDEX, command_page, command_pages, command_path
from turngym.benchmarks.docs.links import join_pages
from turngym.benchmarks.docs.packed_results import curve_svg, packed_rows
from turngym.benchmarks.docs.recipe_pages import link_papers, recipe_pages
from turngym.benchmarks.docs.site import ROOT, Site, metrics_page, notebook_page, script_page
from turngym.benchmarks.matrix.matrix_files import read_folder, write_packed
from turngym.envs import find_environment
from turngym.envs.core.errors import BadValueError

FORM = (
    "Example episode",
    "Actions",
    "Observations",
    "Rewards",
    "Start and end of an episode",
    "Arguments",
    "Metrics",
    "Speed",
    "Reference scores",
    "Version history",
)
HEADINGS = ("Use", "Logged metrics", "Implementation details", "Results", "References")


def headings(page: str) -> list[str]:
    return re.findall(r"^## (.*)$", page, re.MULTILINE)


@pytest.fixture(scope="module")
def recipes() -> dict[str, str]:
    return recipe_pages()


@pytest.mark.parametrize("name", ["Bandit-v0", "Game24-v0"])
def test_an_environment_s_page_has_gymnasium_s_form(name: str) -> None:
    one = Described(find_environment(name))
    page = environment_page(one)
    assert [title for title in headings(page) if title in FORM] == list(FORM)
    assert f'gym.make("{name}")' in page
    assert "▶" in page
    assert "status solved, return 1" in page
    assert f"truncated after {one.default.max_turns} actions" in page
    assert "| `size` | `'" in page
    best = [scores for scores in one.references if scores.agent == "expert"]
    assert min(best[0].success) == 1.0
    least = 100 * 0.025 ** (1 / len(best[0].success))  # the exact interval of all of them
    assert f"| `expert` | 100 % ({least:.0f}–100) | 1.00 ({least / 100:.2f}–1.00) |" in page


def test_limits_on_a_page_are_those_of_gym_make() -> None:
    page = environment_page(Described(find_environment("MathWord-v0")))
    assert "truncated after 1 actions" in page
    assert "Returns lie in 0 to 1 with" in page


def test_every_recipe_has_a_page_under_five_headings(recipes: dict[str, str]) -> None:
    for name in RECIPES:
        page = recipes[f"algorithms/{name}.md"]
        assert headings(page) == list(HEADINGS), name
        assert f"turngym train --recipe {name} " in page
        assert f"[`{name}`]({name}.md)" in recipes["algorithms/index.md"]
    assert "Differs from the paper" in recipes["algorithms/grpo.md"]
    assert "`loss/value_clip_frac`" in recipes["algorithms/ppo.md"]
    assert "loss/value" not in recipes["algorithms/grpo.md"]


def test_the_paper_index_names_the_place_of_settings(recipes: dict[str, str]) -> None:
    index = recipes["algorithms/papers.md"]
    (dapo,) = re.findall(r"^## dapo$(.*?)(?=^## )", index, re.MULTILINE | re.DOTALL)
    assert "section 3.1" in dapo
    assert "| `loss.clip.high` | `0.28` |" in dapo
    assert "### search-r1-grpo-7b" in index


def test_papers_become_links() -> None:
    assert link_papers("see arXiv 2402.03300, 1.5") == (
        "see [arXiv 2402.03300](https://arxiv.org/abs/2402.03300), 1.5"
    )


def test_results_of_packed_files_stand_on_their_recipe_s_page(tmp_path: Path) -> None:
    suite = tiny(recipes=("grpo", "ppo"), seeds=(0, 1))
    folder = tmp_path / "matrix"
    filled(folder, suite, lambda cell: [[1.0, 0.0]])
    write_packed(read_folder(folder), tmp_path / "tiny.jsonl.gz")
    rows = packed_rows(tmp_path)
    assert {(row.recipe, row.column, len(row.cells)) for row in rows} == {
        ("grpo", "Bandit-v0", 2),
        ("ppo", "Bandit-v0", 2),
    }
    page = recipe_pages(rows)["algorithms/grpo.md"]
    assert "| Bandit-v0 | grpo | 2 |" in page
    assert "`turngym bench --suite tiny`" in page
    assert "No packed result" in recipe_pages(rows)["algorithms/rloo.md"]


def test_a_curve_is_a_mean_over_seeds() -> None:
    svg = curve_svg([[0.0, 1.0], [0.5, 0.5], []])
    assert "training success from 0.25 to 0.75" in svg
    assert "0.0,23.5 120.0,8.5" in svg
    assert curve_svg([[]]) == ""


def test_a_command_s_page_has_its_options() -> None:
    page = command_page("envs", "")
    assert page.startswith("# turngym envs\n\nList the environments, with the limits")
    assert (
        "| `--hidden`, `--no-hidden` | List the diagnostic environments too. |  | `False` |" in page
    )
    nested = command_page("index", "Build, describe and search indexes over passage files.")
    assert "## turngym index build" in nested
    assert "`--corpus`" in nested


def test_the_metrics_page_has_every_key() -> None:
    page = metrics_page()
    assert all(f"| `{key}` |" in page for key in METRICS)


def test_the_reference_names_what_packages_export(tmp_path: Path) -> None:
    pages = api_pages(ROOT)
    assert set(pages) == {page.path for page in API}
    assert "::: turngym.envs.core.env.TextEnv" in pages["api/envs.md"]
    # where a name is defined, not where it is passed on
    assert ("envs.testing.harness", "ConformanceError") in set(exported(ROOT, "envs"))
    write_sources(ROOT, tmp_path)
    source = (tmp_path / "turngym/envs/core/env.py").read_text(encoding="utf-8")
    compile(source, "env.py", "exec")
    assert ":meth:" not in source
    assert (tmp_path / "turngym/envs/core/__init__.py").exists()


def test_places_of_files_on_the_site() -> None:
    site = Site()
    assert site.place("benchmarks/RESULTS.md") == "results/measured.md"
    assert site.place("docs/ladder.md") == "ladder.md"
    assert site.place("docs/examples/tour.ipynb") == "examples/tour.md"
    assert site.place("algos/recipes/grpo.py") == "source/algos/recipes/grpo.py.md"


def test_the_navigation_lists_generated_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {f"commands/{name}.md": "" for name in ("index", "index-command", "train", "eval")}
    site = Site()
    monkeypatch.setattr(Site, "generated", pages)
    monkeypatch.setattr(Site, "written", {"new.md": "", "old.md": ""})
    given = ["old.md", {"Commands": ["commands/index.md", "@commands"]}, {"Rest": ["@others"]}]
    assert site.navigation(given) == [
        "old.md",
        {
            "Commands": [
                "commands/index.md",
                "commands/eval.md",
                "commands/index-command.md",
                "commands/train.md",
            ]
        },
        {"Rest": ["new.md"]},
    ]
    with pytest.raises(BadValueError, match="@nothing"):
        site.navigation(["@nothing"])


def test_every_command_has_a_page_of_its_own() -> None:
    """The page on `turngym index` was the list of all commands."""
    pages = command_pages()
    names = [name for commands in COMMANDS.values() for name in commands]
    assert len(pages) == len(names) + 1
    assert pages[INDEX].startswith("# Command line\n")
    for name in names:
        path = command_path(name)
        assert pages[path].startswith(f"# turngym {name}\n")
        assert f"]({path.removeprefix('commands/')})" in pages[INDEX]
    assert "dummy" not in "".join(pages.values())  # the parser's own name of a subcommand's options


def test_two_pages_of_one_path_are_refused() -> None:
    assert join_pages({"a.md": "one"}, {"b.md": "two"}) == {"a.md": "one", "b.md": "two"}
    with pytest.raises(BadValueError, match=r"a\.md"):
        join_pages({"a.md": "one"}, {"a.md": "two"})


def test_choices_of_an_option_stand_one_by_one() -> None:
    """Long choices in one word kept the column of meanings a few letters wide."""
    page = command_page("train", "")
    assert "| `blank`, `imitate` |" in page
    assert "| `auto`, `float32`, `bfloat16`, `float16` |" in page
    assert max(len(word) for word in re.findall(r"`([^`]+)`", page)) < 60


def test_an_example_of_one_s_own_is_a_page(tmp_path: Path) -> None:
    """Its title was what stood between the first three quotation marks of the file."""
    script = tmp_path / "own.py"
    script.write_text(
        "'''Mine.\n\nHow it goes.\n'''\nTEXT = \"\"\"\n```\n\"\"\"\n", encoding="utf-8"
    )
    page = script_page(script)
    assert page.startswith("# Mine\n\nHow it goes.\n")
    assert page.endswith('\n"""\n````\n')
    script.write_text('TEXT = """data"""\n', encoding="utf-8")
    with pytest.raises(BadValueError, match=r"own\.py has no docstring"):
        script_page(script)


def test_a_notebook_s_page_has_its_raw_cells_and_values(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "raw", "source": ["as it is"]},
        {
            "cell_type": "code",
            "source": ["print(1)\n", "1 + 1"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
            ],
        },
    ]
    book = tmp_path / "own.ipynb"
    book.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    page = "as it is\n\n```python\nprint(1)\n1 + 1\n```\n\n```text\n1\n2\n```\n"
    assert notebook_page(book) == page
