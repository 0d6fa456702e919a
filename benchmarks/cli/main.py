"""The command line: one table of commands, of which the one that is asked for is imported."""

from __future__ import annotations

import errno
import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from importlib.metadata import version
from io import StringIO, TextIOWrapper
from typing import Any

import tyro
from rich.text import Text

from ...algos.runs.console import PlainConsole
from ...algos.runs.interrupts import terminate_as_interrupt
from ...envs.core.errors import (
    BadValueError,
    DataError,
    MissingExtraError,
    TurngymError,
    UnknownNameError,
)
from ...envs.core.plugins import load_plugin, passed_on
from ...envs.core.registration import resolve_id
from ...envs.utils.disk_errors import describe_disk_error
from ...envs.utils.garbage_collection import thawed_heap
from .arguments import expand_dotted, refuse_empty
from .words import (
    hide_empty_defaults,
    in_plain_words,
    short_help,
    subcommand_list,
    subcommands,
    whole_help,
)

INTERRUPTED, TERMINATED, REFUSED = 130, 143, 2

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "environments": {
        "envs": "List the environments.",
        "init": "Write a package with an environment of your own, with tests that pass.",
        "play": "Play an episode in the terminal, or watch an agent play it.",
        "mcp": "Offer an environment as MCP tools to one client.",
        "openenv": "Serve an environment over OpenEnv's interface.",
    },
    "training and evaluation": {
        "demo": "Watch a small model find a better strategy by reinforcement learning.",
        "recipes": "List the recipes, or all settings of one.",
        "train": "Train a language model, or resume an interrupted run.",
        "engine": "Serve an engine over HTTP, for training on other cards or machines.",
        "plan": "Show the memory, tokens and time that a published run takes.",
        "merge": "Write a model trained with adapters as an ordinary model folder.",
        "eval": "Score agents on the first N tasks of a split.",
        "models": "List the language models that are fetched by name, or fetch some.",
        "starters": "Score the small starting models, sampled and greedy.",
        "view": "Write rollouts or episodes as one HTML page.",
        "curves": "Draw the learning curves of several runs in one picture.",
        "probe": "Measure what in an environment matters for the choice of an algorithm.",
        "bench": "Fill the benchmark matrix, write its report, or measure speed.",
        "claims": "Test the papers' headline statements at small scale.",
        "credit": "Measure how well recipes' credit matches the truth of each turn.",
    },
    "leaderboard": {
        "submit": "Play a suite and pack the actions as an entry.",
        "leaderboard": "Verify, rank and publish entries; host sealed seasons.",
        "push": "Send a model or a leaderboard entry to a hub.",
        "pull": "Fetch a model or a leaderboard entry from a hub.",
    },
    "single environments and agents": {
        "index": "Build, describe and search indexes over passage files.",
        "retriever": "Answer searches over HTTP.",
        "papers": "Check, generate and draw what PaperCrawler works on.",
        "selector": "Train and score PaperCrawler's selector.",
        "retail": "Regenerate the shop's tasks, or export those of tau-bench.",
        "fidelity": "Compare an environment with transcripts of the original.",
        "drrn": "Train a small network that scores legal actions.",
        "armap": "Make trajectory pairs and train the planners' reward model.",
    },
}
"""One line on each command, by group. The module of the same name beside this one has the
command's options as ``Command`` and what it does as ``run``."""

# What the extra `train` installs; the core lists, plays and scores scripted agents without it.
_TRAINING = ("torch", "transformers", "tokenizers", "safetensors", "tensorboard", "matplotlib")
ACCEPT = "--accept-licence"
"""Option of every command: the licence of a model, accepted once."""
PLUGIN = "--plugin"
"""Option of every command: what registers environments, recipes and engines of a user's own."""
OF_EVERY_COMMAND = (
    (
        f"{PLUGIN} FILE|MODULE",
        "Python file, or module that is installed or lies in the working folder, which is loaded "
        "first and registers environments, recipes or engines; repeatable. An environment of a "
        "module is also named MODULE:Id-v0, wherever an environment is.",
    ),
    (f"{ACCEPT} NAME", "Licence of a model, accepted once; `turngym models` says what asks."),
)
"""The options that every command takes, and what they do."""
# The OpenMP threads of small models mostly wait for one another: let them sleep.
_OPENMP = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "TOKENIZERS_PARALLELISM": "false"}


_NO_HOME = "Could not determine home directory"
"""What pathlib says of a ``~`` that stands for no folder, in an error of no kind of its own."""
_NO_MORE = ("can't start new thread", str(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))))
"""What Python says of a thread, and of a process, that the system does not start."""
_NO_MAP = "failed to map segment from shared object"
"""What the system says of a library that has no room in the address space."""
_SLOW = {"train": "loading libraries, the environment and the model"}
"""What commands say that load for seconds, before they do."""


_ALONE = {
    *("demo", "eval", "starters", "probe", "bench", "claims", "credit"),
    *("submit", "selector", "drrn", "armap"),
}
"""What computes in this process, and in workers that it starts itself."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        words: Arguments; those of the process when left out.

    Returns:
        0; 2 for input that was refused, 130 after Ctrl-C, 143 after SIGTERM.
    """
    with _streams(), _variables(), thawed_heap(), terminate_as_interrupt() as termination:
        status = _run_guarded(words)
    if words is None:
        _drop_unwritten()
    return TERMINATED if termination.came else status


def _drop_unwritten() -> None:
    """Forget what a full disk or a closed pipe did not take: Python would end with 120 for it."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # told already, or nobody is there to be told
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _streams() -> Iterator[None]:
    """Have a place to print within, also where a stream is closed or not in UTF-8."""
    names = ("stdout", "stderr")
    # Python has None for a stream that the shell closed (`>&-`), to which not all of us can print
    closed = [name for name in names if getattr(sys, name) is None]
    for name in closed:
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # a locale such as C has no dashes and arrows: \u2013 in their place, as Python does in stderr
    output = sys.stdout if isinstance(sys.stdout, TextIOWrapper) else None
    errors = None if output is None else output.errors
    if output is not None and errors in ("strict", "surrogateescape"):
        output.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if output is not None and not output.closed:
            with suppress(OSError):  # what is left to write has no room
                output.reconfigure(errors=errors)
        for name in closed:
            getattr(sys, name).close()
            setattr(sys, name, None)


@contextmanager
def _variables() -> Iterator[None]:
    """Set the variables of small models within, where they are not set: also in a notebook."""
    missing = [name for name in _OPENMP if name not in os.environ]
    os.environ.update({name: _OPENMP[name] for name in missing})
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def _run_guarded(words: Sequence[str] | None) -> int:
    """Run the command, or list the commands; return the exit status."""
    name, *rest = (sys.argv[1:] if words is None else words) or ["--help"]
    try:
        if name in ("-h", "--help"):
            list_commands()
        elif name in ("-V", "--version"):
            PlainConsole(highlight=False).print(f"turngym {version('turngym')}")
        else:
            run_command(name, rest)
        sys.stdout.flush()
    except TurngymError as error:
        return _refuse(error)
    except ModuleNotFoundError as error:
        if error.name not in _TRAINING:
            raise
        return _refuse(MissingExtraError("this command", error.name, "train"))
    except KeyboardInterrupt:
        exec("")  # what came out of an exec (of a dataclass) would end `python -m` by the signal
        with suppress(OSError):
            PlainConsole(stderr=True).print("stopped.")
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of a pipe (head, less) has enough
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        refusal = _describe_system(error, [name, *rest])
        if refusal is None:
            raise
        return _refuse(refusal)
    return 0


def _describe_system(error: Exception, words: Sequence[str]) -> TurngymError | None:
    """Return what a disk or an account refuses, None if the error is of another kind."""
    if isinstance(error, (MemoryError, ImportError)) or _NO_MAP in str(error):
        return _describe_address_space(error)
    if str(error) in _NO_MORE:
        return BadValueError(
            "no further process or thread can be started: those of this account, or of its "
            "container or job, are as many as they may be (`ulimit -u` shows the account's limit). "
            "Raise the limit, end others, or ask for fewer workers, and run the same command again."
        )
    if isinstance(error, OSError):
        line = describe_disk_error(error)
        return None if line is None else DataError(line)
    if not str(error).startswith(_NO_HOME):
        return None
    return BadValueError(_describe_homeless(words))


def _describe_address_space(error: Exception) -> TurngymError | None:
    """Return what a limit of the address space refuses, None where there is no such limit."""
    if os.name != "posix" or not (isinstance(error, MemoryError) or _NO_MAP in str(error)):
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    said = f" ({error})" if str(error) else ""
    return BadValueError(
        f"there is no memory left for this process{said}: its address space is limited to "
        f"{limit >> 20:,} MiB (`ulimit -v` shows it in KiB, a batch system may set it). Raise the "
        "limit, or make less of what is asked for, and run the same command again."
    )


def _describe_homeless(words: Sequence[str]) -> str:
    """Return what is wrong with a path that begins with ~: pathlib does not say which."""
    values = [word.partition("=")[2] if word.startswith("-") else word for word in words]
    named = ", ".join(f"`{value}`" for value in values if value.startswith("~"))
    return (
        f"{named or 'a path'}: ~ stands for the home folder of an account, and here it is none's "
        "(HOME is not set, or no account has this name). Give the whole path."
    )


def list_commands() -> None:
    """Print the commands with a line on each, from the table alone."""
    console = PlainConsole(highlight=False, soft_wrap=True)
    console.print(
        "[bold]turngym[/]: environments, algorithms and a leaderboard for language agents."
    )
    for group, commands in COMMANDS.items():
        console.print(f"\n[dim]{group}[/]")
        for name, summary in commands.items():
            console.print(f"  [bold]{name:13}[/]{summary}")
    console.print(
        "\n`turngym COMMAND -h` shows the options on one screen, `--help` all about them."
    )
    for option, about in OF_EVERY_COMMAND:
        console.print(f"\nEvery command takes {option}: {about}", markup=False)


def run_command(name: str, words: Sequence[str]) -> None:
    """Import a command, read its options, and run it.

    Raises:
        UnknownNameError: There is no such command.
        TurngymError: The options were refused.
    """
    commands = {k: line for group in COMMANDS.values() for k, line in group.items()}
    if name not in commands:
        raise UnknownNameError("command", name, commands)
    helped = bool({"-h", "--help"} & {*words})
    count = os.environ.get("WORLD_SIZE", "1")
    if name in _ALONE and not helped and count not in ("", "1"):
        raise BadValueError(
            f"{name}: started as {count} processes (WORLD_SIZE), each of which "
            "would do all of the work; only train shares it. Start it without torchrun or "
            "accelerate launch."
        )
    # torchrun starts several processes; one of them reports
    if name in _SLOW and not helped and os.environ.get("RANK", "0") == "0":
        PlainConsole(highlight=False).print(_SLOW[name])
        sys.stdout.flush()
    module = import_module(f".{name}", __package__)
    about = commands[name]
    asked, options = _asked_for(name, words, module.Command)
    if "-h" in words:
        single = isinstance(options, type)
        _print(short_help(asked, options) if single else subcommand_list(asked, options, about))
        return
    with passed_on():
        words = expand_dotted(load_plugins(take_accepted(words)))
        if hasattr(module, "expand_words"):
            words = module.expand_words(words)
        start = module.default_command(words) if hasattr(module, "default_command") else None
        if "--help" in words:
            rest = "\n\n".join(f"{option}: {text}" for option, text in OF_EVERY_COMMAND)
            single = isinstance(options, type)
            listed = "" if single else f"{subcommand_list(asked, options, about)}\n\n{rest}"
            _print(listed or whole_help(asked, options, start, rest))
            return
        asked, options, words = _split_subcommand(name, words, module.Command)
        with plain_errors():
            command = tyro.cli(
                options,
                **({} if start is None else {"default": start}),
                args=words,
                prog=f"turngym {asked}",
                description=_description(options, about),
            )
        refuse_empty(command)
        module.run(command)


def _print(text: str) -> None:
    PlainConsole(highlight=False, markup=False, soft_wrap=True).print(text)


def _asked_for(name: str, words: Sequence[str], command: Any) -> tuple[str, Any]:
    """Return whose help is asked for, and its options: the subcommand's where one is named."""
    kinds = subcommands(command)
    named = next((word for word in words if word in kinds), "")
    return (f"{name} {named}", kinds[named]) if named else (name, command)


def _split_subcommand(
    name: str, words: Sequence[str], command: Any
) -> tuple[str, Any, Sequence[str]]:
    """Return what is run, its options, and its words: the subcommand's where one comes first.

    Read as a command of its own, a subcommand's wrong options point to its own help.

    Raises:
        UnknownNameError: There is no such subcommand.
    """
    kinds = subcommands(command)
    if not kinds or not words or words[0].startswith("-"):
        return name, command, words
    if words[0] not in kinds:
        advice = f"`turngym {name} --help` has a line on each."
        raise UnknownNameError("subcommand", words[0], kinds, f"turngym {name}", advice=advice)
    return f"{name} {words[0]}", kinds[words[0]], words[1:]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print what the parser says, help and wrong options, in plain words."""
    said, helped = StringIO(), StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(helped):
            yield
    finally:
        sys.stdout.write(hide_empty_defaults(helped.getvalue()))
        sys.stderr.write(in_plain_words(said.getvalue()))


def _description(command: Any, summary: str) -> str:
    """Return what the help of a command says first: what it does, and what every one takes."""
    # A class of options describes itself; a union of subcommands does not.
    about = (inspect.getdoc(command) if isinstance(command, type) else None) or summary
    rest = "\n\n".join(f"{option}: {text}" for option, text in OF_EVERY_COMMAND)
    return f"{about.partition('Attributes:')[0].strip()}\n\n{rest}"


def load_plugins(words: Sequence[str]) -> list[str]:
    """Load what ``--plugin`` and ``MODULE:Id-v0`` name; return the other words, with the ids.

    Raises:
        BadValueError: The option without a plugin.
        DataError: A plugin that is not there or does not run.
        UnknownNameError: A module that registers no such environment.
    """
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, _, value = word.partition("=")
        if option == PLUGIN:
            plugin = value or (rest.pop(0) if rest else "")
            if not plugin or plugin.startswith("-"):
                raise BadValueError(f"{PLUGIN}: expected a Python file or a module after it.")
            load_plugin(plugin)
        elif option == "--env" and value:
            kept.append(f"{option}={resolve_id(value)}")
        elif word.startswith("-") or _is_value(kept):
            kept.append(word)
        else:
            kept.append(resolve_id(word))
    return kept


def _is_value(before: Sequence[str]) -> bool:
    """Return whether a word after these is the value of an option, other than ``--env``."""
    last = before[-1] if before else ""
    return last.startswith("--") and "=" not in last and last != "--env"


def take_accepted(words: Sequence[str]) -> list[str]:
    """Remember the licences that ``--accept-licence NAME`` accepts; return the other words.

    Raises:
        UnknownNameError: No model asks for this licence.
        BadValueError: The option without a name.
    """
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word != ACCEPT and not word.startswith(f"{ACCEPT}="):
            kept.append(word)
            continue
        from ...agents.models.registry.fetch import accept_licence

        named = word.partition("=")[2] or (rest.pop(0) if rest else "")
        if not named or named.startswith("-"):
            raise BadValueError(f"{ACCEPT}: expected the name of a licence after it.")
        accept_licence(named)
    return kept


def _refuse(error: TurngymError) -> int:
    line = Text.assemble(("error:", "bold red"), f" {error}")
    with suppress(OSError):  # nobody reads stderr, or its disk is full: the status says it
        PlainConsole(stderr=True).print(line, highlight=False, soft_wrap=True)
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
