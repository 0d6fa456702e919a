"""The engines by name: their settings as one value, and the one place that builds them.

Reading this imports neither torch nor an engine. A new engine is a module of its own and a row of
:data:`ENGINES`; a plugin adds its row with :func:`register_engine`. Only an engine of this library
may have settings of its own: a field of :class:`EngineSettings` under the engine's name.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Literal

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.settings import check_choices, check_integers
from .base import EngineSource, Requirement, TrainingEngine, check_engine
from .http.settings import HttpSettings
from .vllm.settings import PACKAGE, VllmSettings

Ability = Literal["weight_sync", "top_logprobs", "cache_handles"]


@dataclass(frozen=True, kw_only=True)
class EngineRow:
    """What the rest of the library knows about an engine.

    Attributes:
        about: One line on it.
        entry_point: ``"module:function"`` that makes it from an
            :class:`~turngym.agents.engines.base.EngineSource`.
        needs: The package that it samples through; None where turngym alone is enough.
        settings: Class of the settings that it alone has; None for none.
        can: ``weight_sync`` (it follows a learner), ``top_logprobs`` (it reports the likeliest
            tokens), ``cache_handles`` (a request names the keys and values that it continues; an
            engine without finds shared prefixes by itself, or computes them anew).
    """

    about: str
    entry_point: str
    needs: Requirement | None = None
    settings: type[Any] | None = None
    can: frozenset[Ability] = frozenset()


ENGINES: dict[str, EngineRow] = {
    "transformers": EngineRow(
        about="samples in this process from a copy of the weights",
        entry_point="turngym.agents.engines.local.engine:build",
        needs=Requirement("transformers", "transformers", "train"),
        can=frozenset({"weight_sync", "top_logprobs", "cache_handles"}),
    ),
    "vllm": EngineRow(
        about="samples through vLLM",
        entry_point="turngym.agents.engines.vllm.engine:build",
        needs=PACKAGE,
        settings=VllmSettings,
        can=frozenset({"weight_sync", "top_logprobs"}),
    ),
    "http": EngineRow(
        about="has servers sample, those of `turngym engine serve`",
        entry_point="turngym.agents.engines.http.engine:build",
        settings=HttpSettings,
        can=frozenset({"weight_sync", "top_logprobs", "cache_handles"}),
    ),
}


def register_engine(name: str, row: EngineRow) -> None:
    """Add an engine to :data:`ENGINES`; adding the same row again changes nothing.

    The row of a script's or a notebook's own engine may come again changed, as after a cell is run
    again.

    Raises:
        BadValueError: The name is taken, the entry point is not ``"module:function"``, or the
            engine has settings that :class:`EngineSettings` does not know.
    """
    known = ENGINES.get(name, row)
    if known != row and not known.entry_point.startswith("__main__:"):
        raise BadValueError(f"engine: {name!r} is registered already; choose another name.")
    if not isinstance(row, EngineRow):
        raise BadValueError(
            f"engine: the row of {name!r} is {row!r:.100}; expected EngineRow(about=..., "
            'entry_point="module:function").'
        )
    if not isinstance(row.entry_point, str) or not all(row.entry_point.partition(":")):
        raise BadValueError(
            f"engine: the entry point of {name!r} is {row.entry_point!r}; expected "
            '"module:function".'
        )
    if row.settings and name not in {f.name for f in dataclasses.fields(EngineSettings)}:
        raise BadValueError(
            f"engine: {name!r} has settings of its own, but EngineSettings has no field {name!r}. "
            "Leave them out, and let the engine read them from elsewhere."
        )
    ENGINES[name] = row


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Which engine samples a model's actions, and how.

    Attributes:
        engine: What samples: transformers in this process from a copy of the weights, vllm (extra
            vllm), http (servers of `turngym engine serve`), or an engine that a plugin registered.
        engine_dtype: Number format of sampling.
        max_batch: Maximum number of actions that are sampled at a time.
        max_context: Maximum tokens of context and action together; left out: the model's own
            limit.
        device: Where the model runs: auto, cpu or cuda.
        cache_gib: Memory that the engine transformers takes for keys and values at most, for
            several programs on one card or a small machine; left out: on CUDA what the learner
            leaves, on a CPU 2.
        cuda_graphs: Let the engine transformers capture decode steps as CUDA graphs, where its
            model runs on CUDA; off, every kernel is launched on its own.
        vllm: Settings of the engine vllm.
        http: Settings of the engine http, whose servers decide batch and device themselves.
    """

    # a text, which `row` looks up: a plugin may run after the command line was read
    engine: str = "transformers"
    engine_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_batch: int = 64
    max_context: int | None = None
    device: str = "auto"
    cache_gib: float | None = None
    cuda_graphs: bool = True
    vllm: VllmSettings = field(default_factory=VllmSettings)
    http: HttpSettings = field(default_factory=HttpSettings)

    def __post_init__(self) -> None:
        check_choices(self)  # with the fields that a subclass adds
        check_integers(self)
        if self.max_batch < 1:
            raise BadValueError(f"engine: max_batch is {self.max_batch}; expected at least 1.")
        if self.cache_gib is not None:
            if not self.cache_gib > 0:
                raise BadValueError(
                    f"engine: cache_gib is {self.cache_gib}; expected more than 0 (--cache-gib)."
                )
            if self.engine != "transformers":
                raise BadValueError(
                    f"engine: cache_gib is {self.cache_gib}, which is a setting of the engine "
                    f"'transformers', and the engine is {self.engine!r}. Leave it out (vLLM's: "
                    "--vllm.cache-gib on a CPU, --vllm.gpu-memory-frac on CUDA)."
                )
        if not self.cuda_graphs and self.engine != "transformers":
            raise BadValueError(
                f"engine: cuda_graphs is off, which is a setting of the engine 'transformers', and "
                f"the engine is {self.engine!r}. Leave it out (vLLM's graphs: --vllm.eager)."
            )
        for name, row in ENGINES.items():
            if name != self.engine and row.settings and getattr(self, name) != row.settings():
                raise BadValueError(
                    f"engine: settings of {name} were given, but the engine is {self.engine!r}; "
                    f"choose engine={name!r} (--engine {name}) or leave them out."
                )

    def row(self) -> EngineRow:
        """Return the row of the engine.

        Raises:
            UnknownNameError: No engine has this name.
        """
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        return ENGINES[self.engine]


def build_engine(
    model: str,
    tokenizer: Any,
    settings: EngineSettings,
    *,
    learner: Any = None,
    device: Any = None,
) -> TrainingEngine:
    """Build the engine that samples from a model.

    Args:
        model: Folder or hub name.
        tokenizer: Its tokenizer.
        settings: Which engine, and how it samples.
        learner: The model in training whose weights the engine follows; None where nothing is
            trained, and the engine loads what it needs.
        device: Where the engine samples, where that is not where the learner's model is.

    Raises:
        UnknownNameError: No engine has this name.
        BadValueError: A model that the engine cannot sample from, an engine that cannot follow a
            learner, or an entry point that is not there.
        MissingExtraError: The engine's package is not installed.
    """
    row = settings.row()
    if row.needs is not None:
        row.needs.check(f"the engine {settings.engine!r}")
    if learner is not None and "weight_sync" not in row.can:
        able = [name for name, other in ENGINES.items() if "weight_sync" in other.can]
        raise BadValueError(
            f"engine: {settings.engine!r} cannot take a learner's weights. Train with one of: "
            f"{', '.join(able)}."
        )
    source = EngineSource(
        model=model,
        tokenizer=tokenizer,
        learner=learner,
        dtype=settings.engine_dtype,
        max_batch=settings.max_batch,
        max_context=settings.max_context,
        device=settings.device if device is None else str(device),
        elsewhere=device is not None,
        cache_gib=settings.cache_gib,
        cuda_graphs=settings.cuda_graphs,
        own=None if row.settings is None else getattr(settings, settings.engine),
    )
    try:
        build = resolve_name(row.entry_point)
    except (AttributeError, ImportError) as fault:
        raise BadValueError(
            f"engine: the entry point of {settings.engine!r}, {row.entry_point!r}, cannot be "
            f"loaded ({fault}); expected a function that makes an engine of an EngineSource."
        ) from fault
    engine = build(source)
    check_engine(engine, row.entry_point)
    return engine
