"""From settings to a site and its questions: generated, a folder's, or the web's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import BadValueError, UnknownNameError
from ..core.settings import check_integer, check_number
from ..core.tasks import TaskSource
from ..search_qa.build import generate_knowledge
from ..search_qa.questions import Question
from ..search_qa.source import GivenQuestions
from .sites.generated import SNIPPETS, GeneratedSite, load_generated_site
from .sites.pages import Site

if TYPE_CHECKING:
    from ..search_qa.data import Data

MAX_BYTES_LIMIT = 1_000_000_000
_SNIPPETS = {"full": "fitting", "micro": "first"}


@dataclass(frozen=True, kw_only=True)
class Web:
    """A site, and questions that its pages answer.

    Attributes:
        size: Size of the generated world; None for files and the web.
        source: The tasks.
        site: The pages.
        generated: The same site when it is the generated one.
    """

    size: str | None
    source: TaskSource[Question]
    site: Site
    generated: GeneratedSite | None


@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """How pages of the web are visited; see :class:`turngym.envs.web_qa.env.WebQA`."""

    allow: str | Sequence[str] = ()
    allow_private: bool = False
    timeout_s: float = 10.0
    max_bytes: int = 2_000_000

    def __post_init__(self) -> None:
        check_number("timeout_s", self.timeout_s, "WebQA", above=0)
        check_integer("max_bytes", self.max_bytes, "WebQA", min=1, max=MAX_BYTES_LIMIT)

    @property
    def changed(self) -> str:
        """Return the settings that are not the usual ones, as they are written."""
        usual = vars(EndpointSettings())
        return ", ".join(
            f"{k}={value!r}" for k, value in vars(self).items() if (value or usual[k]) != usual[k]
        )


def find_web(
    *,
    made: Mapping[str, Any],
    data: Data | None,
    site: str | Path | Site | None,
    search_url: str | None,
    net: EndpointSettings,
    snippet_chars: int,
) -> Web:
    """What the settings describe; ``made`` are those of the generated site.

    Raises:
        UnknownNameError: An unknown size, kind or way of making snippets.
        BadValueError: A value out of range, one that is missing, or two that exclude each other.
        DataError: A file that does not hold what it should.
    """
    if search_url is None and net.changed:
        raise BadValueError(
            f"WebQA: {net.changed} is about pages of the web; expected search_url too."
        )
    if data is None and site is None and search_url is None:
        return _generate_web(made, snippet_chars)
    for name, value in made.items():
        if value is not None:
            raise BadValueError(
                f"WebQA: {name}={value!r} describes the generated site, but data, site or "
                f"search_url was given; leave {name} out, or leave those out."
            )
    if data is None:
        raise BadValueError(
            'WebQA: a site was given without questions; expected them too: data="questions.jsonl".'
        )
    if (site is None) == (search_url is None):
        got = "both site and search_url" if site is not None else "neither site nor search_url"
        raise BadValueError(f"WebQA: data was given with {got}; expected one of the two.")
    from ..search_qa.data import load_questions

    source = GivenQuestions(load_questions(data, where="WebQA"))
    if search_url is not None:
        pages: Site = _make_endpoint(search_url, net, snippet_chars)
    elif isinstance(site, (str, Path)):
        from .sites.folder import load_folder_site

        pages = load_folder_site(site, snippet_chars)
    else:
        assert site is not None
        pages = site
    return Web(size=None, source=source, site=pages, generated=None)


def _generate_web(made: Mapping[str, Any], snippet_chars: int) -> Web:
    settings = {name: value for name, value in made.items() if name != "snippets"}
    knowledge = generate_knowledge(retriever=None, where="WebQA", **settings)
    assert knowledge.world is not None
    assert knowledge.size is not None
    wanted = _SNIPPETS[knowledge.size] if made["snippets"] is None else made["snippets"]
    if wanted not in SNIPPETS:
        raise UnknownNameError("snippets", wanted, SNIPPETS, "WebQA")
    site = load_generated_site(knowledge.world.key, wanted, snippet_chars)
    return Web(size=knowledge.size, source=knowledge.source, site=site, generated=site)


def _make_endpoint(search_url: str, net: EndpointSettings, snippet_chars: int) -> Site:
    from .sites.endpoint import EndpointSite
    from .sites.fetch import Fetcher
    from .sites.rules import Rules

    hosts = (net.allow,) if isinstance(net.allow, str) else net.allow
    if not isinstance(hosts, (list, tuple)):
        raise BadValueError(
            f"WebQA: allow is {hosts!r}; expected a host or several: ('example.org', '*.test')."
        )
    rules = Rules(allow=tuple(hosts), allow_private=net.allow_private)
    pages = Fetcher(rules=rules, timeout_s=net.timeout_s, max_bytes=net.max_bytes)
    return EndpointSite(search_url=search_url, pages=pages, snippet_chars=snippet_chars)
