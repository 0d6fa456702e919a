"""Transcripts: every episode as one JSON line, which can be read back and played again."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
from pydantic import (
    ConfigDict,
    InstanceOf,
    StrictBool,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)

from ..core.env import TextEnv
from ..core.errors import BadValueError, DataError

FORMAT = 1
Text = InstanceOf[str]
"""A text as it is: lone surrogates, which some models write, are no error."""
_WHOLE = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """One action and its results.

    Attributes:
        observation: The observation before the action.
        action: Text of the action.
        session: The context that ``observation`` belongs to.
        reward: Reward of the action.
        terms: Named parts of the reward.
        status: Status after the action.
        valid: Whether the action could be read.
        chain: Hash over all texts up to and including the observation that answered.
    """

    __pydantic_config__ = _WHOLE

    observation: Text
    action: Text
    session: StrictInt
    reward: StrictFloat
    terms: Mapping[str, float]
    status: Text
    valid: StrictBool
    chain: Text


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """One recorded episode.

    ``gym.make(env_id, **kwargs).reset(seed=seed, options={"split": split, "task": task_id})``
    starts it again, whether or not the recorded reset had a seed: the seed is the episode's own.

    Attributes:
        format: Version of this layout.
        env_id: Registered id.
        kwargs: Settings given to ``gym.make``.
        versions: Versions of turngym, gymnasium and numpy that played it.
        seed: Seed of the episode.
        reset: What the recorded reset was called with: ``seed`` and ``options``.
        split: Split of the task.
        task_id: Id of the task.
        task_digest: Hash of the task's content.
        instructions: The rules of the environment as they were.
        chain: Hash of instructions and first observation; each step continues it.
        steps: Every action.
        observation: What the last action was answered with.
        status: Status at the end; ``running`` for an episode that was abandoned.
        metrics: Metrics of a finished episode.
    """

    __pydantic_config__ = _WHOLE

    format: StrictInt
    env_id: Text
    kwargs: Mapping[str, Any]
    versions: Mapping[str, str]
    seed: StrictInt
    reset: Mapping[str, Any]
    split: Text
    task_id: Text
    task_digest: Text
    instructions: Text
    chain: Text
    steps: tuple[RecordedStep, ...]
    observation: Text
    status: Text
    metrics: Mapping[str, float]

    def to_json(self) -> str:
        """Return one line of JSON, without the line break."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Transcript:
        """Parse a line of :meth:`to_json`.

        Raises:
            ValueError: Not JSON.
            BadValueError: Another layout, or a field missing, unknown or of another type.
        """
        try:
            data = json.loads(line)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        found = data.get("format") if isinstance(data, dict) else None
        if found != FORMAT:
            raise BadValueError(f"not a transcript of format {FORMAT} (found {found!r})")
        try:
            return _READER.validate_python(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadValueError(f"{where}: {first['msg']}.") from error


_READER = TypeAdapter(Transcript)


def extend_chain(chain: str, *texts: str) -> str:
    """Return the next hash of a chain of texts (16 hex digits)."""
    h = hashlib.blake2b(chain.encode(), digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


class RecordEpisodes(gym.Wrapper[str, str, str, str], gym.utils.RecordConstructorArgs):
    """Records every episode; appends it to a JSON-lines file when it ends.

    :attr:`transcript` is the present episode so far. An episode that is given up (by ``reset`` or
    ``close``) after at least one action is written with status ``running``. Each line is written
    and flushed at once, so a killed run loses at most the line that it was writing; what it left of
    that line is cut off before the next one.

    Args:
        env: A :class:`TextEnv` made by ``gym.make``, or wrappers around one.
        path: The file; made with its folders when it does not exist. None writes none.

    Raises:
        BadValueError: Not a text environment, not a registered one, one that is cut into sessions,
            or settings that are not JSON.
    """

    def __init__(self, env: gym.Env[str, str], path: str | os.PathLike[str] | None) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, path=None if path is None else str(path))
        gym.Wrapper.__init__(self, env)
        inner = env.unwrapped
        if not isinstance(inner, TextEnv):
            raise BadValueError(f"RecordEpisodes: {inner} is not a TextEnv.")
        if inner.spec is None:
            raise BadValueError(
                f"RecordEpisodes: {type(inner).__name__} has no id, so its episodes could not be "
                "replayed; register_environment it and make it with gym.make."
            )
        if env.get_wrapper_attr("sessions") and not inner.sessions:
            raise BadValueError(
                "RecordEpisodes: goes inside AsSessions, not around it: it records the whole "
                "episode. Write AsSessions(RecordEpisodes(env, path), window)."
            )
        self.path = None if path is None else Path(path)
        self.inner = inner
        self._settings = _to_plain_settings(inner.spec.id, inner.spec.kwargs)
        self._reset: dict[str, Any] = {}
        self._steps: list[RecordedStep] = []
        self._metrics: Mapping[str, float] = {}
        self._first_chain = ""
        self._open = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode; one that was running is written as abandoned.

        It goes on, and is not written yet, where no other one can be started.
        """
        abandoned = self._unwritten()
        observation, info = self.env.reset(seed=seed, options=options)
        self._reset = {
            "seed": None if seed is None else int(seed),
            "options": _to_plain_values(options),
        }
        self._steps, self._metrics = [], {}
        self._first_chain = extend_chain("", self.inner.instructions, observation)
        self._open = True
        self._append(abandoned)
        return observation, info

    def open_session(self, key: str) -> tuple[str, dict[str, Any]]:
        """Refuse: a transcript has no place for sessions that are opened out of order.

        Raises:
            BadValueError: Always.
        """
        raise BadValueError(
            f"RecordEpisodes: session {key!r} is opened out of order, which no transcript tells; "
            "its replay would go another way. Play it without the recorder."
        )

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one action; the last one of an episode writes it."""
        episode = self.inner.episode
        seen, session = episode.observation, episode.session
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps.append(
            RecordedStep(
                observation=seen,
                action=action,
                session=session,
                reward=float(reward),
                terms=info["reward_terms"],
                status=info["status"],
                valid=info["valid_action"],
                chain=extend_chain(self.chain, action, observation),
            )
        )
        if terminated or truncated:
            self._metrics = info["metrics"]
            self._write()
        return observation, float(reward), terminated, truncated, info

    def close(self) -> None:
        """Write an episode that was running, and close the environment."""
        try:
            self._write()
        finally:
            super().close()

    def fork_wrapper(self, inner: gym.Env[str, str]) -> RecordEpisodes:
        """Return a recorder around the copy; both write whole episodes to the same file."""
        twin = RecordEpisodes(inner, self.path)
        twin._reset, twin._steps, twin._open = self._reset, self._steps.copy(), self._open
        twin._first_chain, twin._metrics = self._first_chain, self._metrics
        return twin

    @property
    def chain(self) -> str:
        """Hash over all texts of the present episode."""
        return self._steps[-1].chain if self._steps else self._first_chain

    @property
    def transcript(self) -> Transcript:
        """The present episode so far."""
        episode, spec = self.inner.episode, cast("Any", self.inner.spec)
        return Transcript(
            format=FORMAT,
            env_id=spec.id,
            kwargs=self._settings,
            versions=get_versions(),
            seed=episode.random.seed,
            reset=self._reset,
            split=episode.task.split,
            task_id=episode.task.id,
            task_digest=episode.task.digest,
            instructions=self.inner.instructions,
            chain=self._first_chain,
            steps=tuple(self._steps),
            observation=episode.observation,
            status=episode.status,
            metrics=dict(self._metrics),
        )

    def _write(self) -> None:
        self._append(self._unwritten())
        self._open = False

    def _unwritten(self) -> Transcript | None:
        return self.transcript if self._open and self._steps and self.path is not None else None

    def _append(self, transcript: Transcript | None) -> None:
        if transcript is not None and self.path is not None:
            append_line(self.path, transcript.to_json())


def read_transcripts(path: str | os.PathLike[str]) -> Iterator[Transcript]:
    """Read a file of transcripts; a last line that was cut off by a crash is left out.

    Raises:
        DataError: The file does not exist, or a line is not a transcript; names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file of transcripts.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield Transcript.from_json(line)
            except ValueError as error:
                if not line.endswith("\n"):
                    return
                raise DataError(f"{path}, line {number}: {error}") from error


def append_line(path: Path, text: str) -> None:
    """Append one line in one write, after cutting off what a crash left of the last one.

    Raises:
        DataError: The file's last line is none of JSON; nothing is changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _lock(file.fileno())
        size = file.seek(0, os.SEEK_END)
        if size and _read_last_byte(file, size) != b"\n":
            _end_last_line(file, size, path)
        file.write(text.encode("utf-8") + b"\n")
        file.flush()


@functools.cache
def get_versions() -> Mapping[str, str]:
    """Return the versions of what an episode depends on.

    That of turngym is ``0+source`` in a checkout that was never installed.
    """
    versions = {name: metadata.version(name) for name in ("gymnasium", "numpy")}
    try:
        own = metadata.version("turngym")
    except metadata.PackageNotFoundError:
        own = "0+source"
    return {"turngym": own, **versions}


def _lock(descriptor: int) -> None:
    """Hold the file against other writers until it is closed, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _read_last_byte(file: Any, size: int) -> bytes:
    file.seek(size - 1)
    return file.read(1)


def _end_last_line(file: Any, size: int, path: Path) -> None:
    """End a last line that is whole; cut off one of JSON that was not written to its end."""
    start = _find_last_line(file, size)
    file.seek(start)
    tail = file.read().rstrip(b"\0")  # of a disk that had made room for more
    try:
        json.loads(tail)
    except ValueError:
        if tail and not tail.startswith(b"{"):
            raise DataError(
                f"{path}: its last line is no transcript, so nothing was written. Choose another "
                "file."
            ) from None
        file.truncate(start)
    else:
        file.truncate(start + len(tail))
        file.write(b"\n")


def _find_last_line(file: Any, size: int) -> int:
    """Return the offset after the last line break."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _to_plain_values(options: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        key: value.item() if hasattr(value, "item") else value
        for key, value in (options or {}).items()
    }


def _to_plain_settings(env_id: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as JSON gives them back; paths as text."""
    try:
        return json.loads(json.dumps(settings, default=os.fspath))
    except (TypeError, ValueError) as error:
        raise BadValueError(
            f"RecordEpisodes: the settings of {env_id} are not plain values ({error}), so its "
            "episodes could not be replayed."
        ) from error
