"""What sections a paper has, what they are called and what they cite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SUBTOPIC, METHOD, SECOND = "subtopic", "method", "second method"


@dataclass(frozen=True, slots=True)
class Section:
    """One section of every paper.

    Attributes:
        kind: What statistics call it.
        heading: With ``{}`` where the theme's name goes.
        share: Citations, as a share of the paper's number of references.
        pool: What it cites: ``"field"``, ``"subtopic"``, ``"method"``, ``"second"``, ``"data"`` or
            ``"recent"``.
        theme: The concept whose name the heading may carry; empty for a fixed heading.
        unnamed: What stands for the name where the heading does not carry it.
        fresh: Whether it cites only papers that no earlier section cites.
    """

    kind: str
    heading: str
    share: float
    pool: str
    theme: str = ""
    unnamed: str = ""
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """Sections of the papers of a size of world.

    Attributes:
        sections: Of papers, in order.
        introduction: Heading of a survey's introduction.
        taxonomy: Heading of a survey's section on a method, with places for number and name.
        applications: Heading of its last section.
        introduction_size: Citations of a survey's introduction.
        taxonomy_size: Fewest and most citations of a section on a method.
        applications_size: Citations of the last section.
    """

    sections: tuple[Section, ...]
    introduction: str
    taxonomy: str
    applications: str
    introduction_size: int
    taxonomy_size: tuple[int, int]
    applications_size: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of sections, a survey's last."""
        return (*(section.kind for section in self.sections), *SURVEY_KINDS)


SURVEY_KINDS = ("survey introduction", "survey taxonomy", "survey applications")
RELATED = ("related subtopic", "related method", "related second")
_WORK = "2 Related Work "
OUTLINES: Mapping[str, Outline] = {
    "full": Outline(
        sections=(
            Section("introduction", "1 Introduction", 0.20, "field"),
            Section("related subtopic", _WORK + "2.1 {}", 0.26, "subtopic", SUBTOPIC, "Background"),
            Section("related method", _WORK + "2.2 {}", 0.18, "method", METHOD, "Techniques"),
            Section("related second", _WORK + "2.3 {}", 0.10, "second", SECOND, "Other directions"),
            Section("methods", "3 Approach 3.1 Preliminaries", 0.10, "recent"),
            Section("methods", "3 Approach 3.2 Architecture", 0.06, "recent"),
            Section("experiments", "4 Experiments 4.1 Datasets", 0.08, "data"),
            Section("experiments", "4 Experiments 4.2 Baselines", 0.10, "subtopic", fresh=True),
            Section("experiments", "4 Experiments 4.3 Implementation details", 0.10, "recent"),
        ),
        introduction="1 Introduction",
        taxonomy="2 Taxonomy 2.{} {}",
        applications="3 Applications",
        introduction_size=10,
        taxonomy_size=(4, 11),
        applications_size=8,
    ),
    "micro": Outline(
        sections=(
            Section("introduction", "1 intro", 0.25, "field"),
            Section("related subtopic", "2.1 {}", 0.35, "subtopic", SUBTOPIC, "background"),
            Section("related method", "2.2 {}", 0.25, "method", METHOD, "methods"),
            Section("related second", "2.3 {}", 0.15, "second", SECOND, "more"),
            Section("methods", "3 setup", 0.25, "recent"),
        ),
        introduction="1 intro",
        taxonomy="2.{} {}",
        applications="3 use",
        introduction_size=4,
        taxonomy_size=(2, 5),
        applications_size=0,
    ),
}
