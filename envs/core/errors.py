"""All errors: one root, and messages that say where, what was given and what was expected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

_VERSION = re.compile(r"-v\d+$")


class TurngymError(Exception):
    """Root of every error that turngym raises on purpose.

    Errors are sent between processes, also of those whose constructor takes other arguments than
    the message that it writes of them.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self, OSError):  # which knows more than its arguments and attributes
            return super().__reduce__()  # pyright: ignore[reportReturnType]
        return _restore, (type(self), self.args, dict(vars(self)))


def _restore(
    cls: type[TurngymError], args: tuple[object, ...], state: Mapping[str, Any]
) -> TurngymError:
    """Return an error that was pickled, without calling its constructor."""
    error = cls.__new__(cls, *args)
    vars(error).update(state)
    return error


class UnknownNameError(TurngymError, ValueError):
    """A name (environment, split, task, recipe, size, option) that does not exist.

    Args:
        kind: Kind of name, in words ("split", "recipe").
        name: The unknown name.
        known: The names that exist; the nearest one is suggested.
        where: What refused it (an environment id, a command); empty when obvious.
        hidden: Names that exist as well and may be suggested, but are not listed.
        advice: What else can be done, a sentence at the end of the message.

    Gymnasium's processes raise an error as its class called with the error alone, so ``kind`` may
    be an error of this class, which is made again.
    """

    def __init__(
        self,
        kind: str | UnknownNameError,
        name: object = "",
        known: Iterable[object] = (),
        where: str = "",
        *,
        hidden: Iterable[object] = (),
        advice: str = "",
    ) -> None:
        if isinstance(kind, UnknownNameError):
            super().__init__(*kind.args)
            vars(self).update(vars(kind))
            return
        names = [str(k) for k in known]
        near = _find_nearest(str(name), [*names, *map(str, hidden)])
        hint = f" Did you mean {near!r}?" if near else ""
        listed = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
        place = f"{where}: " if where else ""
        message = f"{place}unknown {kind} {str(name)!r}.{hint} Known: {listed or 'none'}."
        super().__init__(f"{message} {advice}" if advice else message)
        self.kind = kind
        self.name = name


def _find_nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the name that is most like the given one, if any is like it.

    Versions only decide between names that are the same without: ``-v0`` is half of a short id.
    """
    bare = {one: _VERSION.sub("", one.lower()) for one in known}
    versioned = any(bare[one] != one.lower() for one in bare)
    wanted, cutoff = _VERSION.sub("", name.lower()), 0.55 if versioned else 0.4
    near = difflib.get_close_matches(wanted, list(bare.values()), n=1, cutoff=cutoff)
    same = {one.lower(): one for one in reversed(known) if near and bare[one] == near[0]}
    best = difflib.get_close_matches(name.lower(), list(same), n=1, cutoff=0.0)
    return same[best[0]] if best else None


class BadValueError(TurngymError, ValueError):
    """A setting or input has a wrong value or shape."""


class ContextFullError(BadValueError):
    """The prompt fills the model's context window."""


class EpisodeError(TurngymError, RuntimeError):
    """A call is out of order: a step before reset, or after the episode's end."""


class DataError(TurngymError, ValueError):
    """A file has the wrong contents; the message names file and line."""


class MissingExtraError(TurngymError, ImportError):
    """An optional dependency is missing; the message names the extra to install.

    Args:
        what: Who needs it.
        package: The package.
        extra: Turngym's extra that brings it.
        fault: Why its import failed: what is installed may lack something else.
    """

    def __init__(
        self, what: str, package: str, extra: str, fault: ImportError | None = None
    ) -> None:
        missing = "" if fault is None else (fault.name or "").replace("_", "-")
        absent = isinstance(fault, ModuleNotFoundError | None) and package.startswith(missing)
        state = "is not installed" if absent else f"cannot be imported ({fault})"
        name, blank, remark = package.partition(" ")  # a shell would take mcp>=2 for a file
        plain = name.replace("-", "").replace("_", "").isalnum()
        quoted = (name if plain else f"'{name}'") + blank + remark
        super().__init__(
            f"{what} needs the package {package!r}, which {state}. "
            f"Install it with: pip install 'turngym[{extra}]' (no index has turngym: pip takes the "
            f"extra from the one that is installed here), or pip install {quoted}"
        )


def check_package(what: str, module: str, extra: str, package: str | None = None) -> None:
    """Refuse to begin what needs a package at its end; nothing is imported.

    Args:
        what: Who needs it.
        module: The module.
        extra: Turngym's extra that brings it.
        package: The package; left out: named as the module is.

    Raises:
        MissingExtraError: It is not installed.
    """
    if find_spec(module) is None:
        raise MissingExtraError(what, package or module, extra)


class EnvFault(TurngymError, RuntimeError):
    """A tool, server or grader failed: the episode ends with status ``env_error``.

    Raise it inside :meth:`turngym.envs.TextEnv.play` when something outside the model's and the
    programmer's control failed. It never becomes a score.
    """


class EngineFault(TurngymError, RuntimeError):
    """An engine failed while sampling or loading weights; the run can be resumed."""
