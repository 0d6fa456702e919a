"""Checkpoints and leaderboard entries on a hub of models and data sets, by huggingface_hub."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Any, Literal

from ...agents.models.built_folder import whole_or_nothing
from ...agents.models.licences import is_licence, is_licence_name
from ...agents.models.lora import ADAPTER_SETTINGS
from ...agents.models.registry.catalogue import CATALOGUE
from ...agents.models.registry.fetch import name_of_folder
from ...algos.runs.run_dir import read_json
from ...envs.core.errors import BadValueError, DataError, MissingExtraError, TurngymError
from ...envs.utils.http import check_url
from ...leaderboard.entries_io.files import EPISODES, MANIFEST, EntryFiles
from ...leaderboard.schema.result import Refused

Kind = Literal["model", "entry"]
REPO_TYPES: Mapping[Kind, str] = {"model": "model", "entry": "dataset"}
"""What a hub calls each: it knows models and data sets."""
CARD = "README.md"
TRAINER_STATE = "trainer"
"""Folder of a checkpoint with its optimiser, critic and shards."""
OF_RUN = ("metrics.jsonl", "result.json", "curve.png")
"""Files of a run directory that go along with its model, into ``run/``."""
FETCHED: Mapping[Kind, tuple[str, ...]] = {
    "model": (
        *("*.json", "*.jsonl", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.md", "*.png"),
        "*.html",
    ),
    "entry": ("*.json", "*.jsonl", "*.md"),
}
"""What is sent and fetched beside licence texts: nothing that runs code when it is read, as pickles
do."""
Uploads = dict[str, Path | bytes]
_ADDRESS = re.compile(r"\w+://")
_FOLDER = re.compile(r"(?P<kind>lm:)?/")


def find_uploads(source: Path, model: Path | None) -> tuple[Kind, Uploads]:
    """Return what a folder is, and the files to send by their names there.

    Args:
        source: An entry of the leaderboard, a model folder, or a run directory.
        model: Where the source is no entry, the model folder that it stands for.

    Raises:
        DataError: The entry is none, the model folder holds no safetensors, or a run's newest
            checkpoint is damaged.
    """
    if (source / MANIFEST).is_file():
        try:
            names = EntryFiles(source).files
        except Refused as refusal:
            raise DataError(f"push {source}: {refusal.refusal.message}") from refusal
        return "entry", {str(name): source / name for name in names}
    if model is None or not any(model.glob("*.safetensors")):
        raise DataError(
            f"push {source}: expected a run directory, a model folder with safetensors, or an "
            f"entry of the leaderboard (a folder with {MANIFEST} and {EPISODES}/)."
        )
    found: Uploads = dict(_list_model_files(model))
    if ADAPTER_SETTINGS in found:
        _name_base(found, source, model)
    if model.parent.parent == source and (source / "config.json").is_file():
        from ...algos.training.checkpoint import checkpoints

        if model in (steps := checkpoints(model.parent)) and steps[-1] != model:
            raise DataError(
                f"push {source}: checkpoint {steps[-1].name}, which the run's scores are of, is "
                f"damaged (or just written: try again). Restore it, or push {model} without them."
            )
        config = _without_places(read_json(source / "config.json"))
        found["run/config.json"] = json.dumps(config, indent=2).encode()
        found |= {f"run/{name}": source / name for name in OF_RUN if (source / name).is_file()}
        found.setdefault(CARD, _card(source, config).encode())
    return "model", found


def _list_model_files(model: Path) -> Iterator[tuple[str, Path]]:
    """Yield what is sent of a model folder, by names there: texts of its folders too.

    Hidden folders, a checkpoint's trainer state, and folders that hold weights, which are models
    of their own (the checkpoints that other trainers leave in their output), stay here.
    """
    for folder, inner, names in os.walk(model):
        here = Path(folder)
        inner[:] = sorted(
            name
            for name in inner
            if not name.startswith(".")
            and here / name != model / TRAINER_STATE
            and not any((here / name).glob("*.safetensors"))
        )
        for name in sorted(names):
            path = here / name
            if path.is_file() and (is_licence(path) or _is_kind_of(name, "model")):
                yield path.relative_to(model).as_posix(), path


def _name_base(found: Uploads, source: Path, model: Path) -> None:
    """Let the adapters among the uploads name their base model as it is named everywhere.

    Raises:
        DataError: The base is a folder of this machine.
    """
    settings = read_json(model / ADAPTER_SETTINGS)
    base = str(settings.get("base_model_name_or_path") or "")
    name = base if base in CATALOGUE else name_of_folder(base)
    if name is None:
        if Path(base).exists() or base.startswith(("/", ".", "~")) or base.count("/") > 1:
            raise DataError(
                f"push {source}: these are adapters of the model in the folder {base!r}, which "
                "nobody else has. Make one model of both, and push that: turngym merge "
                f"{source} OUT; turngym push OUT REPO."
            )
        name = base  # of a hub
    if name != base:
        found[ADAPTER_SETTINGS] = json.dumps(
            settings | {"base_model_name_or_path": name}, indent=2
        ).encode()
    if CARD in found and base in (model / CARD).read_text(encoding="utf-8") and name != base:
        del found[CARD]  # peft's, with the path


def push(repo: str, kind: Kind, uploads: Uploads, *, private: bool, message: str) -> str:
    """Send files as one commit, into a repository that is made if need be; return its address.

    Raises:
        BadValueError: The hub refuses, or cannot be reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    endpoint, hub = _endpoint(), _hub()
    with _hub_errors(f"push {repo}"):
        api = hub.HfApi(endpoint=endpoint)
        url = api.create_repo(repo, repo_type=REPO_TYPES[kind], private=private, exist_ok=True)
        operations = [
            hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
            for name, content in uploads.items()
        ]
        api.create_commit(repo, operations, commit_message=message, repo_type=REPO_TYPES[kind])
    return str(url)


def pull(repo: str, kind: Kind, out: Path, revision: str | None) -> list[Path]:
    """Fetch a model or an entry into a folder; return the files. After an error there are none.

    Raises:
        BadValueError: The hub refuses, or cannot be reached.
        DataError: What came is neither a model nor an entry.
        MissingExtraError: huggingface_hub is not installed.
    """
    endpoint, hub = _endpoint(), _hub()
    with whole_or_nothing(out) as draft:
        with _hub_errors(f"pull {repo}"):
            about = hub.HfApi(endpoint=endpoint).repo_info(
                repo, repo_type=REPO_TYPES[kind], revision=revision
            )
            names = [file.rfilename for file in about.siblings or ()]
            hub.snapshot_download(
                repo,
                repo_type=REPO_TYPES[kind],
                revision=about.sha,
                local_dir=draft,
                allow_patterns=[escape(name) for name in names if _is_fetched(name, kind)],
                endpoint=endpoint,
            )
        shutil.rmtree(draft / ".cache", ignore_errors=True)  # the library's notes
        _check_pulled(repo, kind, draft)
    return sorted(path for path in out.rglob("*") if path.is_file())


def _is_fetched(name: str, kind: Kind) -> bool:
    licence = kind == "model" and is_licence_name(name)
    return licence or _is_kind_of(name, kind)


def _is_kind_of(name: str, kind: Kind) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in FETCHED[kind])


def _check_pulled(repo: str, kind: Kind, folder: Path) -> None:
    if kind == "model" and not any(folder.glob("*.safetensors")):
        raise DataError(f"pull {repo}: it holds no model as safetensors.")
    if kind == "entry":
        try:
            EntryFiles(folder).manifest()
        except Refused as refusal:
            raise DataError(f"pull {repo}: {refusal.refusal.message}") from refusal


def _endpoint() -> str | None:
    """Return the hub's address; None for the library's.

    Raises:
        BadValueError: What the environment names is no address.
    """
    given = os.environ.get("HF_ENDPOINT")
    return check_url(given, "HF_ENDPOINT") if given else None


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as fault:
        raise MissingExtraError("the hub", "huggingface_hub", "train", fault) from fault
    return huggingface_hub


@contextmanager
def _hub_errors(what: str) -> Iterator[None]:
    """Say in one line what a hub or the way to it refused, or that its answer is none.

    Whatever stands between (a proxy, a page that wants a login) may answer too, with anything.
    """
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    # Which HTTP client it has depends on its version; its own errors derive from that one's.
    bases = [base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception)]
    client = tuple(base for base in bases if base.__name__ == "HTTPError")
    try:
        yield
    except (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        ConnectionError,
        TimeoutError,
        *client,
    ) as error:
        cause: BaseException = error
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, client):
            cause = error.__cause__  # the library's own words blame the connection for every status
        status = getattr(getattr(cause, "response", None), "status_code", None)
        hint = " Log in with `hf auth login`, or set HF_TOKEN." if status in (401, 403) else ""
        raise BadValueError(f"{what}: {_first_line(cause)}{hint}") from error
    except (TurngymError, UnicodeError):
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # this machine's
            raise
        why = f"{type(error).__name__}: {_first_line(error).rstrip('.')}"
        raise BadValueError(
            f"{what}: the hub's answer cannot be used ({why}). Try again; if it stays so, check "
            "HF_ENDPOINT and whether a proxy or a login page answers."
        ) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _without_places(value: Any) -> Any:
    """Return a configuration that names no folder and no server: they are nobody's business."""
    if isinstance(value, Mapping):
        return {key: _without_places(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_places(inner) for inner in value]
    if not isinstance(value, str):
        return value
    if (address := _ADDRESS.match(value)) is not None:
        return f"{address[0]}…"
    if (folder := _FOLDER.match(value)) is not None:
        return f"{folder['kind'] or ''}{Path(value).name}"
    return value


def _card(run: Path, config: Mapping[str, Any]) -> str:
    """Return the page about a run's model."""
    env, recipe = config["env"], config["recipe"]
    lines = [
        "---",
        "library_name: transformers",
        "tags: [turngym, reinforcement-learning]",
        "---",
        "",
        f"# {run.name}",
        "",
        f"Trained with turngym's recipe `{recipe['name']}` ({recipe['paper']}) on `{env['id']}` "
        f"with `{json.dumps(env['settings'])}`, from `{config['model']}`, seed {config['seed']}.",
    ]
    if (run / "result.json").is_file():
        result = read_json(run / "result.json")
        lines += ["", "| set | success before | after |", "|---|---|---|"]
        lines += [
            f"| {old['name']} | {old['success']['mean']:.1%} | {new['success']['mean']:.1%} |"
            for old, new in zip(result["before"], result["after"], strict=True)
        ]
    return "\n".join([*lines, "", "`run/` has the settings, the metrics and the result."]) + "\n"
