"""Options that do not go together: named, with what does."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import pytest
import tyro

from turngym.benchmarks.cli.arguments import (
    new_folder,
    output_file,
    refuse_others,
    refuse_without,
)
from turngym.envs.core.errors import BadValueError


@dataclass(frozen=True)
class Inner:
    """Nested options."""

    depth: int = 1
    so_far: str = ""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Options of every kind."""

    env: str
    report: tuple[str, ...] = ()
    out: str | None = None
    flat: Annotated[Inner, tyro.conf.arg(name="")] = field(default_factory=partial(Inner, depth=2))
    named: Inner = field(default_factory=Inner)


TAKES = ("env", "report", "out")


def test_what_a_mode_takes_or_was_not_given_goes_with_it() -> None:
    refuse_others(Command(env="a", report=("x",), out="y"), "try --report", TAKES)
    refuse_others(Command(env="a", flat=Inner(depth=2)), "try --report", TAKES)
    refuse_without(Command(env="a", out="y"), "--report", ("so_far",))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Command(env="a", flat=Inner()), "--depth does not go with try --report"),
        (Command(env="a", named=Inner(so_far="x")), "--named.so-far does not go with"),
        (
            Command(env="a", flat=Inner(2, "b"), named=Inner(depth=0)),
            "--so-far and --named.depth do not go with try --report, which takes --env and --out.",
        ),
    ],
)
def test_others_are_refused_by_the_names_they_are_typed_with(command: Command, says: str) -> None:
    with pytest.raises(BadValueError, match=says):
        refuse_others(command, "try --report", TAKES)


def test_modes_without_options_and_options_without_their_mode_say_so() -> None:
    with pytest.raises(BadValueError, match="which takes no other option"):
        refuse_others(Command(env="a", out="x"), "try --env", ("env",))
    with pytest.raises(BadValueError, match=r"--out and --so-far need --report\."):
        refuse_without(Command(env="a", out="x", flat=Inner(2, "b")), "--report", ("out", "so_far"))


def test_output_paths_that_cannot_be_are_refused_at_once(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("kept")
    for name, make in (
        (tmp_path, output_file),
        (note / "x", output_file),
        (note / "x", new_folder),
    ):
        with pytest.raises(BadValueError, match="folder"):
            make(str(name))
    assert note.read_text() == "kept"
    assert output_file(str(tmp_path / "a" / "b.json")).parent.is_dir()
    assert not new_folder(str(tmp_path / "new" / "er")).exists()
