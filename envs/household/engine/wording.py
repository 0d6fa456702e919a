"""The words of the game: the two editions of the original, and the short one of micro rooms.

Sources: the text grammars of ALFWorld (arXiv 2010.03768), as embedded in its game files
(``file``) and as shipped in its package 0.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...core.fork import Shared

HELP = """\
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


@dataclass(frozen=True, kw_only=True)
class Wording(Shared):
    """The texts of one edition; ``%s`` stand for names and lists.

    Attributes:
        name: The edition.
        put: Verb that lays the held object down.
        into: What stands between the object and the receptacle there, with blanks.
        by_location: Arriving names the location instead of the receptacle.
        help: Answer to ``help``; empty where that is no command.
        article: Stands before names in lists.
        empty: A list of nothing.
        comma: Stands between two names of a list.
        last: Stands before the last name of a list.
        opening: Receptacles of the room and the task.
        nothing: The answer to what is not admissible.
        arrive: Before the view of a receptacle that was gone to.
        opened: Before the view of a receptacle that was opened.
        on: View of a receptacle that cannot be closed.
        open: View of an open one.
        closed: View of a closed one.
        close: A receptacle was closed.
        take: An object was taken from a receptacle.
        laid: The held object was laid down.
        use: Something was turned on.
        clean: An object was cleaned with a receptacle.
        heat: It was heated.
        cool: It was cooled.
        slice: It was sliced with a knife.
        carrying: What is held.
        empty_handed: Nothing is held.
        facing: Receptacles here, and what lies beside them.
        middle: Before the first move.
        normal: A thing that holds things.
        seen: A thing with properties, of :attr:`qualities`.
        plain: A thing without.
        qualities: Words for clean, hot, cool, cold and sliced, in the order of the rules.
    """

    name: str
    put: str = "put"
    into: str = " in/on "
    by_location: bool = False
    help: str = ""
    article: str = "a "
    empty: str = "nothing"
    comma: str = ", "
    last: str = ", and "
    opening: str = (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
        "around you, you see %s.\n\n%s"
    )
    nothing: str = "Nothing happens."
    arrive: str = "You arrive at %s. "
    opened: str = "You open the %s. "
    on: str = "On the %s, you see %s."
    open: str = "The %s is open. In it, you see %s."
    closed: str = "The %s is closed."
    close: str = "You close the %s."
    take: str = "You pick up the %s from the %s."
    laid: str = "You put the %s in/on the %s."
    use: str = "You turn on the %s."
    clean: str = "You clean the %s using the %s."
    heat: str = "You heat the %s using the %s."
    cool: str = "You cool the %s using the %s."
    slice: str = "You sliced the %s with the %s."
    carrying: str = "You are carrying: a %s."
    empty_handed: str = "You are not carrying anything."
    facing: str = "You are facing the %s. Next to it, you see %s."
    middle: str = "You are in the middle of a room. Looking quickly around you, you see nothing."
    normal: str = "This is a normal %s. In it, you see %s."
    seen: str = "This is a %s %s."
    plain: str = "There's nothing special about %s."
    sliced: str = "sliced"

    def write_list(self, names: Sequence[str]) -> str:
        """Return names in a row, each with the article."""
        if not names:
            return self.empty
        return self.article + self._join(names, self.comma + self.article, self.article)

    def write_names(self, names: Sequence[str]) -> str:
        """Return names in a row, without articles."""
        return self._join(names, self.comma, "") if names else self.empty

    def _join(self, names: Sequence[str], comma: str, article: str) -> str:
        if len(names) == 1:
            return names[0]
        return f"{comma.join(names[:-1])}{self.last}{article}{names[-1]}"


FILE = Wording(name="file", by_location=True)
RELEASE = replace(
    FILE,
    name="0.4.2",
    put="move",
    into=" to ",
    by_location=False,
    help=HELP,
    laid="You move the %s to the %s.",
)
SHORT = Wording(
    name="short",
    into=" in ",
    article="",
    last=", ",
    opening="%s\n%s",
    nothing="no",
    arrive="",
    opened="",
    on="%s: %s",
    open="%s: %s",
    closed="%s: closed",
    close="%s: closed",
    take="have %s",
    laid="%s in %s",
    use="%s on",
    clean="%s clean",
    heat="%s hot",
    cool="%s cool",
    slice="%s sliced",
    carrying="have %s",
    empty_handed="have nothing",
    facing="%s: %s",
    middle="nothing",
    normal="%s: %s",
    seen="%s %s",
    plain="%s",
)
"""Of micro rooms. Answers name one thing or two; see :func:`fill`."""
EDITIONS = MappingProxyType({wording.name: wording for wording in (FILE, RELEASE)})


def fill(template: str, first: str, second: str) -> str:
    """Return a template of one or two names filled in; one of one leaves the second out."""
    return template % ((first, second) if template.count("%s") == 2 else (first,))
