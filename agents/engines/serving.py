"""Build what an engine server holds: the engine, and a model that carries new weights to it."""

from __future__ import annotations

from pathlib import Path

from ...envs.core.errors import BadValueError
from ..models.loading import load_model, load_tokenizer, resolve_device, resolve_dtype
from .base import CopiedEngine
from .factory import EngineSettings, build_engine
from .hand_over.group import exact_device
from .http.host import EngineHost, Hosted


def host_engine(
    model: str, settings: EngineSettings, *, weights_folder: Path | None = None, sleep: bool = False
) -> EngineHost:
    """Build an engine and host it.

    Args:
        model: Folder or hub name of the starting model.
        settings: Which engine, and how it samples.
        weights_folder: Folder from which weights may be read; None refuses files.
        sleep: Whether the engine is to give its card's memory back when it is told to.

    Raises:
        BadValueError: A model that the engine cannot sample from, an engine that takes no weights
            or samples elsewhere, or one that cannot sleep.
        DataError: The folder does not exist.
        MissingExtraError: The engine's package is not installed.
    """
    if "weight_sync" not in settings.row().can or settings.engine == "http":
        raise BadValueError(
            f"engine serve: the engine {settings.engine!r} cannot be served; it must sample in "
            "this process and take new weights. Choose transformers or vllm."
        )
    device = resolve_device(settings.device)
    _check_sleep(settings, device.type, sleep)
    tokenizer = load_tokenizer(model)
    engine = build_engine(model, tokenizer, settings)
    dtype = resolve_dtype(settings.engine_dtype, device)
    shelf = load_model(model, dtype=dtype, device="cpu")
    if settings.engine == "vllm" and settings.vllm.prove_sync:
        engine.prove_sync(shelf)  # type: ignore[attr-defined]
    elif isinstance(engine, CopiedEngine):
        engine.settle(0, in_turn=sleep)
    hosted = Hosted(
        engine=engine,
        shelf=shelf,
        tokenizer=tokenizer,
        name=settings.engine,
        dtype=str(dtype).removeprefix("torch."),
        max_batch=settings.max_batch,
        can_sleep=settings.vllm.sleep if settings.engine == "vllm" else sleep,
        device=exact_device(device),
        receiver=engine.receiver() if settings.engine == "vllm" else None,  # type: ignore[attr-defined]
    )
    return EngineHost(hosted, weights_folder=weights_folder)


def _check_sleep(settings: EngineSettings, device: str, sleep: bool) -> None:
    """Refuse to promise memory that nobody can give back.

    Raises:
        BadValueError: The engine cannot sleep.
    """
    if sleep and device == "cpu":
        raise BadValueError("--sleep: the engine computes on a CPU, where nothing is given back.")
    if sleep and settings.engine == "vllm":
        raise BadValueError("--sleep: with --engine vllm the option is --vllm.sleep.")
