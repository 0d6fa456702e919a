"""From settings to what an environment is made of: questions, passages, retriever, tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import BadValueError, UnknownNameError
from ..core.settings import check_integer, check_number, check_settings
from ..core.tasks import TaskSource
from ..tools.action_parsing import TagGrammar
from ..tools.python.tool import PythonTool
from ..tools.retrieval.base import Retriever
from .questions import KINDS, MAX_HOPS, Question, list_possible_kinds
from .source import GivenQuestions, generated_questions
from .text import BOTH_GRAMMAR, BOTH_INVALID, GRAMMAR, INVALID, PROMPTS
from .world.world import SIZES, World, load_world

if TYPE_CHECKING:
    from .data import Data

_HOPS = {"full": (1, 2, 3, 4), "micro": (1,)}
_DISTRACTORS = {"full": 0.2, "micro": 0.0}
_MAX_DISTRACTORS = 3.0
TOOLS = ("search", "python")
BOTH_PROMPT = "search-python"


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Questions, and what searches for them.

    Attributes:
        size: Size of the generated world; None for files.
        source: The tasks.
        retriever: Finds passages.
        world: The generated world; None for files.
    """

    size: str | None
    source: TaskSource[Question]
    retriever: Retriever
    world: World | None


def make_retriever(
    retriever: Retriever | str | None, settings: Mapping[str, Any] | None
) -> Retriever | None:
    """The retriever that was given; an address becomes the client of its server.

    Raises:
        UnknownNameError: An unknown setting of the client.
        BadValueError: Settings without an address, or a value out of range.
    """
    if retriever is None and settings is None:
        return None
    from ..tools.retrieval.http import as_retriever  # it brings the network along

    try:
        return as_retriever(retriever, settings)
    except BadValueError as fault:
        raise BadValueError(f"SearchQA: {fault}") from None


def generate_knowledge(  # noqa: PLR0913 - the settings of the world
    *,
    size: str | None,
    hops: int | Sequence[int] | None,
    kinds: str | Sequence[str] | None,
    distractors: float | None,
    world_seed: int | None,
    retriever: Retriever | None,
    where: str = "SearchQA",
) -> Knowledge:
    """Questions over a generated world.

    ``where`` is the environment that asks, for errors.

    Raises:
        UnknownNameError: An unknown size or kind.
        BadValueError: A value out of range, or kinds that the hop counts or the world exclude.
    """
    size = "full" if size is None else size
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, where)
    seed = 0 if world_seed is None else check_integer("world_seed", world_seed, where, min=0)
    near = _DISTRACTORS[size] if distractors is None else distractors
    near = check_number("distractors", near, where, min=0, max=_MAX_DISTRACTORS)
    counts = _check_hops(_HOPS[size] if hops is None else hops, where)
    try:
        world = load_world(size, seed, near)
        wanted = _check_kinds(kinds, world, where)
        source = generated_questions(world.key, wanted, counts)
    except BadValueError as fault:
        raise BadValueError(f"{where}: {fault}") from None
    return Knowledge(
        size=size,
        source=source,
        retriever=world.index if retriever is None else retriever,
        world=world,
    )


def load_knowledge(
    *,
    data: Data | None,
    corpus: str | Path | Sequence[str | Path] | None,
    retriever: Retriever | None,
    made: Mapping[str, Any],
    weights: Mapping[str, float] | None = None,
) -> Knowledge:
    """Questions and passages from files.

    Raises:
        BadValueError: A setting of the generated world was given too, or one of the two is missing.
        DataError: A file that does not hold what it should.
    """
    for name, value in made.items():
        if value is not None:
            raise BadValueError(
                f"SearchQA: {name}={value!r} describes the generated world, but data and corpus "
                f"were given; leave {name} out, or leave data and corpus out."
            )
    if data is None and weights is not None:
        raise BadValueError(
            f"SearchQA: weights={weights!r} mixes data sets, and no data was given; expected "
            'data={"train": {name: file, ...}} too.'
        )
    if data is None:
        raise BadValueError(
            "SearchQA: corpus was given without data; expected the questions too: "
            'data="questions.jsonl".'
        )
    if corpus is None and retriever is None:
        raise BadValueError(
            "SearchQA: data was given without passages to search; expected "
            'corpus="corpus.jsonl" or retriever=.'
        )
    if corpus is not None and retriever is not None:
        raise BadValueError("SearchQA: corpus and retriever were both given; expected one.")
    from .data import load_questions

    found = _open_corpus(corpus) if corpus is not None else retriever
    assert found is not None
    source = GivenQuestions(load_questions(data, weights))
    return Knowledge(size=None, source=source, retriever=found, world=None)


def _open_corpus(corpus: str | Path | Sequence[str | Path]) -> Retriever:
    """BM25 over a passage file, an index on the disk, or several as a hybrid."""
    several = not isinstance(corpus, (str, Path))
    folders = list(corpus) if several else [corpus]
    if several or Path(folders[0]).expanduser().is_dir():
        from ..tools.retrieval.index import open_indexes

        return open_indexes(folders)
    from .data import load_corpus_index

    return load_corpus_index(folders[0])


def _check_hops(hops: int | Sequence[int], where: str) -> tuple[int, ...]:
    given: Sequence[object] = hops if isinstance(hops, (list, tuple, range)) else (hops,)
    counts = {check_integer("hops", count, where, min=1, max=MAX_HOPS) for count in given}
    if not counts:
        raise BadValueError(f"{where}: hops is empty; expected at least one number.")
    return tuple(sorted(counts))


def _check_kinds(kinds: str | Sequence[str] | None, world: World, where: str) -> tuple[str, ...]:
    possible = list_possible_kinds(world)
    if kinds is None:
        return possible
    wanted = tuple(kinds) if isinstance(kinds, (list, tuple)) else (kinds,)
    for kind in wanted:
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS, where)
        if kind not in possible:
            raise BadValueError(
                f"the {world.schema.name} world has no {kind} questions; it has "
                f"{', '.join(possible)}."
            )
    if not wanted:
        raise BadValueError("kinds is empty; expected at least one.")
    return tuple(k for k in KINDS if k in wanted)


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """The tools of an environment, and the words that go with them.

    Attributes:
        names: Names of the tools; each is the tag that calls it.
        python: Runs code; None without the tool.
        grammar: How actions are read.
        invalid: The reply to an action that cannot be read.
    """

    names: tuple[str, ...]
    python: PythonTool | None
    grammar: TagGrammar
    invalid: str

    def prompt(self, wanted: str | None, size: str | None) -> str:
        """Name of the prompt: ``wanted``, or the one that suits tools and size.

        Raises:
            UnknownNameError: There is no such prompt.
            BadValueError: It explains a tool that is not there.
        """
        if wanted is None:
            if size == "micro":
                return "none"
            return "search-r1" if self.python is None else BOTH_PROMPT
        if wanted not in PROMPTS:
            raise UnknownNameError("prompt", wanted, PROMPTS, "SearchQA")
        if wanted == BOTH_PROMPT and self.python is None:
            raise BadValueError(
                f"SearchQA: prompt={wanted!r} explains the python tool, but tools is "
                f"{self.names}; add tools=('search', 'python'), or take another prompt."
            )
        return wanted


def make_toolbox(
    tools: str | Sequence[str], python_tool: PythonTool | Mapping[str, Any] | None
) -> Toolbox:
    """The tools by name, with the python tool's settings.

    Raises:
        UnknownNameError: An unknown tool or setting.
        BadValueError: No search, settings of a tool that is not there, or a value out of range.
    """
    wanted = (tools,) if isinstance(tools, str) else tuple(tools)
    for name in wanted:
        if name not in TOOLS:
            raise UnknownNameError("tool", name, TOOLS, "SearchQA")
    if "search" not in wanted:
        raise BadValueError(
            f"SearchQA: tools is {tools!r}; expected 'search' among them, since the answers stand "
            "in the passages."
        )
    if "python" in wanted:
        return Toolbox(
            names=TOOLS,
            python=_make_python_tool(python_tool),
            grammar=BOTH_GRAMMAR,
            invalid=BOTH_INVALID,
        )
    if python_tool is not None:
        raise BadValueError(
            f"SearchQA: python_tool was given, but tools is {tools!r}; add "
            "tools=('search', 'python'), or leave python_tool out."
        )
    return Toolbox(names=("search",), python=None, grammar=GRAMMAR, invalid=INVALID)


def _make_python_tool(given: PythonTool | Mapping[str, Any] | None) -> PythonTool:
    if isinstance(given, PythonTool):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise BadValueError(
            f"SearchQA: python_tool is {given!r}; expected a PythonTool, or its settings: "
            "{'timeout_s': 5}."
        )
    settings = dict(given or {})
    check_settings(PythonTool, settings)
    return PythonTool(**settings)
