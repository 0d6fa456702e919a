"""A console for text of unknown origin: control characters in it reach no terminal."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ...envs.utils.untrusted_text import plain


class PlainConsole(Console):
    """A console on which only rich itself moves the cursor and sets colours and titles.

    Pages, passages, models and other people's files bring texts with ESC and C1 codes, which
    could hide what was printed; a sign stands in their place. Everything in this package prints
    through this class. Words between colons stay words: rich would make an emoji of ``:key:``, also
    in a path or in what a model wrote.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"emoji": False, **settings})

    def on_broken_pipe(self) -> None:
        """Be quiet where nobody reads stderr any more: work goes on without its progress.

        A pipe of stdout is left to the command line, as nobody wants the result; rich would end
        the program with 1 for both.

        Raises:
            BrokenPipeError: Nobody reads stdout any more.
        """
        self.quiet = True
        if not self.stderr:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of what is printed, without control characters in their texts."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=plain(segment.text))
