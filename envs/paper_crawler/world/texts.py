"""What the papers of a world say: titles, abstracts, headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.errors import BadValueError
from ..papers import make_title_key
from .graph import NONE, PAPER, SURVEY, Citations, Columns
from .names import Lexicon, Names, load_lexicon, names_of
from .outline import METHOD, OUTLINES, SECOND, SUBTOPIC
from .parameters import WorldParameters


@dataclass(frozen=True, slots=True)
class Wording:
    """How papers of a size of world put it.

    Attributes:
        named: Title with coined name, method and subtopic.
        hidden: Title with coined name and filler words.
        survey: Title of a survey.
        edition: Its end when another survey is called so already.
        dataset: Title of a paper that presents a data set.
        about: Start of an abstract with subtopic and field, for each kind of paper.
        unseen: Start of the abstract of a paper that only citations lead to.
        using: What introduces the methods.
        fillers: What introduces the filler words.
        capital: Whether titles and headings are capitalised.
    """

    named: str
    hidden: str
    survey: str
    edition: str
    dataset: str
    about: tuple[str, str, str]
    unseen: str
    using: str
    fillers: str
    capital: bool


WORDINGS = {
    "full": Wording(
        named="{}: {} for {}",
        hidden="{}: {} {}",
        survey="A survey of {} methods",
        edition="{}, the {} edition",
        dataset="{}: a benchmark for {}",
        about=(
            "We explore {} in {}{}.",
            "This survey reviews {} in {}{}.",
            "We release material for {} in {}{}.",
        ),
        unseen="We explore something within {}.",
        using=", leaning on ",
        fillers=" It brings {}.",
        capital=True,
    ),
    "micro": Wording(
        named="{} : {} for {}",
        hidden="{} : {} {}",
        survey="survey of {}",
        edition="{} by {}",
        dataset="{} : data for {}",
        about=("{} in {}{}", "survey {} in {}{}", "data {} in {}{}"),
        unseen="some {}",
        using=" with ",
        fillers=" . {}",
        capital=False,
    ),
}


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a world.

    Attributes:
        titles: Of each paper.
        abstracts: Of each paper.
        headings: All headings, each once.
        heading_of: Which of them each section has ``[sections]``.
    """

    titles: list[str]
    abstracts: list[str]
    headings: list[str]
    heading_of: np.ndarray


def joined(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class _Writer:
    def __init__(self, p: WorldParameters, columns: Columns, rng: np.random.Generator) -> None:
        self.p, self.columns, self.rng = p, columns, rng
        self.names: Names = names_of(p)
        self.words: Lexicon = load_lexicon(p.size)
        self.wording = WORDINGS[p.size]
        self._coined = self._coin()
        self._taken: set[str] = set()

    def _coin(self) -> list[str]:
        """Coined names, different by their letters, enough for every paper."""
        heads, tails, joint = self.words.heads, self.words.tails, self.words.joint
        grid = self.rng.permutation(len(heads) * len(tails)).tolist()
        made: dict[str, str] = {}
        for spot in grid:
            name = heads[spot // len(tails)] + joint + tails[spot % len(tails)]
            made.setdefault(make_title_key(name), name)
            if len(made) == self.p.papers:
                return list(made.values())
        raise BadValueError(
            f"citation world: {len(made)} names can be coined; expected papers to be at most that, "
            f"got {self.p.papers}."
        )

    def subtopic(self, i: int) -> str:
        c = self.columns
        return self.names.subtopics[c.subtopics[i]][c.subtopic_alias[i]]

    def method(self, i: int, method: int) -> str:
        return self.names.methods[method][self.columns.method_alias[i, method]]

    def title(self, i: int) -> str:
        c, w = self.columns, self.wording
        coined = self._coined[i]
        if c.kinds[i] == SURVEY:
            title = self._case(w.survey.format(self.subtopic(i)))
            if make_title_key(title) in self._taken:
                title = self._case(w.edition.format(title, coined))
        elif c.kinds[i] != PAPER:
            title = coined + self._case(w.dataset.format("", self.subtopic(i)))
        elif c.visible[i] and not c.hidden_title[i]:
            method = self.method(i, c.methods[i, 0])
            title = coined + self._case(w.named.format("", method, self.subtopic(i)))
        else:
            title = coined + self._case(w.hidden.format("", *self._filler()))
        self._taken.add(make_title_key(title))
        return title

    def _case(self, text: str) -> str:
        if not self.wording.capital:
            return text
        return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))

    def _filler(self) -> tuple[str, str]:
        adjectives, nouns = self.words.adjectives, self.words.nouns
        a, b = self.rng.random(2)
        return adjectives[int(a * len(adjectives))], nouns[int(b * len(nouns))]

    def abstract(self, i: int) -> str:
        c, w, p = self.columns, self.wording, self.p
        field = self.names.fields[c.fields[i]][c.field_alias[i]]
        count = int(self.rng.integers(p.fillers_low, p.fillers_high + 1))
        fillers = [word for _ in range((count + 1) // 2) for word in self._filler()]
        fillers = fillers[: count - count % 2] + fillers[len(fillers) - count % 2 :]
        coins = self.rng.random(2)
        if c.visible[i]:
            used = [
                self.method(i, m)
                for m, coin in zip(c.methods[i].tolist(), coins.tolist(), strict=True)
                if m != NONE and coin < p.method_in_abstract
            ]
            using = w.using + joined(used) if used else ""
            text = w.about[c.kinds[i]].format(self.subtopic(i), field, using)
        else:
            text = w.unseen.format(field)
        if not fillers:
            return text
        if not w.capital:
            return text + w.fillers.format(" ".join(fillers))
        pairs = [" ".join(fillers[k : k + 2]) for k in range(0, len(fillers), 2)]
        return text + w.fillers.format(joined(pairs))

    def headings(self, i: int, plans: list[int], themes: list[int]) -> list[str]:
        outline, c = OUTLINES[self.p.size], self.columns
        base = len(outline.sections)
        made = []
        taxonomy = 0
        for plan, theme in zip(plans, themes, strict=True):
            if plan == base + 1:
                taxonomy += 1
                made.append(outline.taxonomy.format(taxonomy, self.method(i, theme)))
            elif plan >= base:
                made.append(outline.introduction if plan == base else outline.applications)
            else:
                section = outline.sections[plan]
                name = section.unnamed
                if section.theme and self.rng.random() < self.p.named_headings:
                    name = {
                        SUBTOPIC: self.subtopic,
                        METHOD: lambda i: self.method(i, c.methods[i, 0]),
                        SECOND: lambda i: self.method(i, c.methods[i, 1]),
                    }[section.theme](i)
                made.append(section.heading.format(name))
        return made


def write_texts(
    p: WorldParameters, columns: Columns, citations: Citations, rng: np.random.Generator
) -> Texts:
    """Texts of all papers.

    Args:
        p: The parameters.
        columns: The papers.
        citations: Their sections.
        rng: Source of the draws.
    """
    writer = _Writer(p, columns, rng)
    numbers: dict[str, int] = {}
    heading_of: list[int] = []
    plans, themes = citations.plans.tolist(), citations.themes.tolist()
    starts = citations.section_starts.tolist()
    titles, abstracts = [], []
    for i in range(p.papers):
        titles.append(writer.title(i))
        abstracts.append(writer.abstract(i))
        a, b = starts[i], starts[i + 1]
        for heading in writer.headings(i, plans[a:b], themes[a:b]):
            heading_of.append(numbers.setdefault(heading, len(numbers)))
    return Texts(titles, abstracts, list(numbers), np.array(heading_of, dtype=np.int64))
