"""The laptop model: a small decoder that learns a world from its expert, then learns to err.

Reading comes first and clean (demonstrations whose answers must be looked up and copied), until
held-out dialogues are reproduced; only then demonstrations with mistakes make a middling player of
it, one that reinforcement learning can improve. The other way round the copying never forms.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym

from ..envs.api import TextEnv
from ..envs.digest import digest_of
from ..envs.disk_cache import cache_dir as default_cache_dir
from ..envs.errors import BadValueError, MissingExtraError
from ..envs.registry import find_world
from .blank import BlankSettings, blank_model
from .demonstrations import EXPERT, Teacher

Stage = Literal["words", "reading", "erring"]
VERSION = 2
"""Part of every cache key: raise it when this file or one that it builds with
would make another model."""
MANIFEST = "starter.json"
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "SearchQA-v0": {"size": "micro", "hops": (1, 2)},
    "PaperCrawler-v0": {"size": "micro", "schedule": "sampled", "per_layer": 3},
}
"""What a starter learns on, by environment id; other ids learn on ``size="micro"``. Diagnostic
worlds that are not listed have nothing to imitate: their starter is a blank model."""
_SAMPLE = 64


class Progress(NamedTuple):
    """How far the building is.

    Attributes:
        stage: ``words`` (the tokenizer), ``reading`` (clean) or ``erring`` (with mistakes).
        step: Steps taken in this stage.
        steps: Steps that this stage takes at most; reading usually stops earlier.
        greedy: Share of held-out dialogues reproduced, when last measured.
    """

    stage: Stage
    step: int
    steps: int
    greedy: float


@dataclass(frozen=True, kw_only=True)
class StarterSettings:
    """How the laptop model is made.

    Defaults were found on micro SearchQA with two cores. An initialisation range of 0.06 and a
    learning rate of 1e-3 matter: with 0.02 and 2e-3 the copying circuit does not form in time.

    Attributes:
        hidden: Width of the model.
        layers: Decoder layers; two are too few to look something up.
        heads: Attention heads.
        inner: Width of the feed-forward part.
        init_range: Standard deviation of the initial weights.
        context: Most tokens that the model can see.
        vocab_size: Most tokens of the tokenizer.
        texts: Dialogues that the tokenizer is trained on.
        batch: Demonstrations per step.
        lr: Learning rate of the clean stage.
        warmup_steps: Of both stages.
        read_steps: Most clean steps.
        read_until: Share of held-out dialogues reproduced greedily that ends the clean stage.
        read_least: Below this share after ``read_steps`` no starter is made.
        held_out: Demonstrations of the dev split that are watched.
        reader: Who shows the clean stage: ``"expert"``, or a baseline of the world whose actions
            can be told from what it is shown, where the expert's cannot.
        mistakes: Share of mistakes in the second stage, as ``env.expert`` understands it.
        err_steps: Steps of the second stage; 0 leaves the clean player.
        err_lr: Learning rate of the second stage.
        seed: Of weights, tasks and mistakes.
    """

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    inner: int = 256
    init_range: float = 0.06
    context: int = 8192
    vocab_size: int = 1024
    texts: int = 4000
    batch: int = 48
    lr: float = 1e-3
    warmup_steps: int = 50
    read_steps: int = 1200
    read_until: float = 0.95
    read_least: float = 0.6
    held_out: int = 192
    reader: str = EXPERT
    mistakes: float = 0.3
    err_steps: int = 80
    err_lr: float = 5e-4
    seed: int = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            least = 0 if f.name in ("err_steps", "read_steps", "seed") else 1
            if f.type == "int" and value < least:
                raise BadValueError(f"starter: {f.name} is {value}; expected at least {least}.")
        for name in ("read_until", "read_least", "mistakes"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadValueError(f"starter: {name} is {getattr(self, name)}; expected 0 to 1.")
        if self.hidden % (2 * self.heads):
            raise BadValueError(
                f"starter: hidden is {self.hidden}, heads {self.heads}; expected a multiple of "
                f"{2 * self.heads}, so that every head has an even width."
            )


LESSONS: Mapping[str, StarterSettings] = {
    "Game24-v0": StarterSettings(
        context=512,
        vocab_size=300,
        texts=500,
        read_steps=150,
        read_until=0.9,
        read_least=0.05,
        held_out=32,
        err_steps=0,
    ),
    "ScienceWorld-v0": StarterSettings(
        vocab_size=512,
        texts=500,
        batch=16,
        read_steps=500,
        read_until=0.6,
        read_least=0.2,
        held_out=97,
        err_steps=0,
    ),
    "WebQA-v0": StarterSettings(read_steps=700, read_least=0.15, err_steps=0),
    "Retail-v0": StarterSettings(read_until=0.8, err_steps=0),
    "MixedTasks-v0": StarterSettings(
        read_until=0.6,
        read_least=0.4,
        mistakes=0.15,
        err_steps=24,
    ),
    "PaperCrawler-v0": StarterSettings(
        vocab_size=512,
        reader="heuristic",
        read_steps=1800,
        read_until=0.55,
        read_least=0.4,
        mistakes=0.1,
        err_steps=30,
    ),
}
"""How a starter learns where the defaults do not fit.

A page of WebQA states six facts, and finding the one that was asked for takes longer to form than
searching, opening and copying. Its starter has the answer before its eyes in 98 % of the episodes,
but copies another fact in most: 15 % are solved (200 dev questions, temperature 1), so it need not
be taught mistakes.

The micro house of ScienceWorld has 193 training variations, which are read through within 500 small
steps; the starter then solves 38 % of the dev variations (temperature 1), reading on does not help.

Serving a customer takes five to ten actions, and one bad action spoils the episode. A reader that
reproduces 80 % of the dialogues is a good player without being taught mistakes (80 % of 200 test
tasks at temperature 1). The starter of shop and maths stops earlier and learns some mistakes, so
that there is more to unlearn: 29 % of the shop's test tasks; with 16 steps of mistakes it would be
60, with 32 steps 9 %.

Which sections of a paper lead to answers cannot be told from what PaperCrawler shows, so imitating
the expert alone teaches how often to open a section, and not to compare its heading with the
request. Its starter reads from the heuristic, which compares, and then learns PaSa's imitation data
(arXiv 2501.10120, section 4.1: sections that cite an answer, others with probability 0.1).
"""


def ensure_starter(
    env_id: str = "SearchQA-v0",
    *,
    settings: StarterSettings | BlankSettings | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    cache_dir: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Path:
    """The folder of the laptop model for a world, built when it is not cached.

    The same settings give the same weights on the same machine. The key of the cache covers the
    settings, the world's texts and what its expert does; a folder whose files do not match their
    checksums is built anew. Two processes at once build once.

    Args:
        env_id: A registered world with a scripted expert.
        settings: How it is made. The default is the demo's unless :data:`LESSONS` has the world's
            own, and for diagnostic worlds that are not in :data:`WORLDS` a blank model's
            (see :func:`~turngym.agents.blank.blank_model`).
        env_kwargs: Settings of the world; default :data:`WORLDS`.
        cache_dir: Default ``$TURNGYM_CACHE``, or ``~/.cache/turngym``.
        progress: Called as the building goes on; never when the folder is cached.

    Returns:
        A folder for ``AutoModelForCausalLM`` and ``AutoTokenizer``, with ``starter.json`` beside.

    Raises:
        UnknownNameError: No such world, or no such setting of it.
        BadValueError: The world has no expert, or the model did not learn to read.
        MissingExtraError: torch or transformers is not installed.
    """
    if settings is None:
        blank = find_world(env_id).hidden and env_id not in WORLDS
        settings = BlankSettings() if blank else LESSONS.get(env_id, StarterSettings())
    env, made_with = _world(env_id, env_kwargs)
    key = digest_of((VERSION, env_id, made_with, settings, _fingerprint(env, settings)))
    root = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    folder = root / "starters" / f"{env_id}-{key[:16]}"
    if _intact(folder):
        return folder
    try:
        from filelock import FileLock
    except ImportError as fault:
        raise MissingExtraError("the laptop model", "transformers", "train") from fault
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if _intact(folder):  # another process was faster
            return folder
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as scratch:
            draft = Path(scratch) / "starter"
            report = _build(draft, env, settings, progress or (lambda _: None))
            _sign(draft, env_id, made_with, settings, report)
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(draft, folder)
    return folder


def _build(
    folder: Path,
    env: TextEnv[Any, Any],
    settings: StarterSettings | BlankSettings,
    tell: Callable[[Progress], None],
) -> Mapping[str, Any]:
    if isinstance(settings, BlankSettings):
        return blank_model(env, folder, settings)
    try:
        from .starter_build import build
    except ImportError as fault:
        raise MissingExtraError("the laptop model", "transformers", "train") from fault
    return build(folder, env, settings, tell)


def _sign(
    folder: Path,
    env_id: str,
    made_with: Mapping[str, Any],
    settings: StarterSettings | BlankSettings,
    report: Mapping[str, Any],
) -> None:
    """Write how the model was made, how it did, and a checksum of every file."""
    manifest = {
        "version": VERSION,
        "env_id": env_id,
        "env_kwargs": dict(made_with),
        "settings": dataclasses.asdict(settings),
        **report,
        "files": {p.name: _checksum(p) for p in sorted(folder.iterdir())},
    }
    text = json.dumps(manifest, indent=2, default=str) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _world(
    env_id: str, env_kwargs: Mapping[str, Any] | None
) -> tuple[TextEnv[Any, Any], Mapping[str, Any]]:
    find_world(env_id)
    made_with = WORLDS.get(env_id, {"size": "micro"}) if env_kwargs is None else env_kwargs
    env = gym.make(env_id, **made_with).unwrapped
    if not isinstance(env, TextEnv):
        raise BadValueError(f"starter: {env_id} is no turngym world.")
    return env, made_with


def _fingerprint(env: TextEnv[Any, Any], settings: StarterSettings | BlankSettings) -> str:
    """What the world says and its teachers do, on a sample: another wording is another model."""
    reader, seed = getattr(settings, "reader", EXPERT), settings.seed
    clean = Teacher(env, "train", seed, policy=reader)
    errs = Teacher(env, "train", seed, mistakes=1.0)
    return digest_of((clean.texts(_SAMPLE), errs.texts(_SAMPLE)))


def _intact(folder: Path) -> bool:
    """True when every file is there as it was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        return all(_checksum(folder / name) == sum_ for name, sum_ in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
