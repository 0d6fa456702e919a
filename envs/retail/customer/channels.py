"""How the customer's words reach the assistant: as text, as spoken words, or as sound."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import wave
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...core.errors import BadValueError, EnvFault, UnknownNameError
from ...core.fork import Shared

_DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_SIGNS = {"@": "at", ".": "dot", "_": "underscore", "#": "hash", "-": "dash"}
_EMAIL = re.compile(r"[\w.]+@[\w.]+\w")
_CODE = re.compile(r"#W\d+|\b\w*_\d+\b|\b\d{4,}\b")
_MONEY = re.compile(r"\$(\d+)\.(\d\d)\b")
_SLIPS = ("um, ", "uh, ", "well, ", "I mean, ", "you know, ", "er, ")
_MAX_SOUNDS = 256


class Channel(Protocol):
    """Carries the customer's words."""

    @property
    def blocking(self) -> bool:
        """Tell whether it waits for another program."""
        ...

    def deliver(self, text: str, key: int, turn: int) -> str:
        """Return what the assistant reads of ``text``; the same for the same three."""
        ...


class Written:
    """The words as they are."""

    blocking = False

    def deliver(self, text: str, key: int, turn: int) -> str:  # noqa: ARG002 - nothing is changed
        """Return the text itself."""
        return text


class Waveform(NamedTuple):
    """Sound.

    Attributes:
        samples: 16-bit signed mono samples, little endian.
        rate: Samples per second.
    """

    samples: bytes
    rate: int

    @property
    def seconds(self) -> float:
        """Return how long it lasts."""
        return len(self.samples) / 2 / self.rate


class Synthesiser(Protocol):
    """Speaks a text."""

    def speak(self, text: str) -> Waveform:
        """Return the sound of a text; raise :class:`EnvFault` where there is none."""
        ...


def spell_out(code: str) -> str:
    """Return an id, number or address as it is read out: digits one by one, signs by name."""
    pieces: list[str] = re.findall(r"[A-Za-z]+|\d|[^\w]|_", code)
    text = " ".join(_DIGITS[int(p)] if p.isdigit() else _SIGNS.get(p, p) for p in pieces)
    return re.sub(r"(?<=[a-z]) (?=(?:" + "|".join(_DIGITS) + r")\b)", ", ", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Words as a recogniser writes them down: ids spelled, slips of the tongue, lost letters.

    Attributes:
        slips: Share of the sentences that begin with a filler.
        noise: Share of the words that lose a letter.
    """

    slips: float = 0.3
    noise: float = 0.0
    blocking: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.slips <= 1 and 0 <= self.noise <= 1):
            raise BadValueError("Spoken: slips and noise must be shares from 0 to 1.")

    def deliver(self, text: str, key: int, turn: int) -> str:
        """Return the spoken form of a message."""
        text = _MONEY.sub(lambda m: f"{m[1]} dollars {m[2]}", text)
        text = _EMAIL.sub(lambda m: spell_out(m[0]), text)
        text = _CODE.sub(lambda m: spell_out(m[0]), text)
        sentences = re.split(r"(?<=[.!?]) ", text)
        return " ".join(
            self._add_slip(self._drop_letters(s, key, turn), key, turn, at)
            for at, s in enumerate(sentences)
        )

    def _add_slip(self, sentence: str, key: int, turn: int, at: int) -> str:
        number = zlib.crc32(f"{key}.{turn}.slip{at}".encode())
        if not sentence or number % 1000 >= self.slips * 1000:
            return sentence
        return f"{_SLIPS[(number >> 10) % len(_SLIPS)]}{sentence[:1].lower()}{sentence[1:]}"

    def _drop_letters(self, sentence: str, key: int, turn: int) -> str:
        if not self.noise:
            return sentence
        words = sentence.split(" ")
        for at, word in enumerate(words):
            number = zlib.crc32(f"{key}.{turn}.loss{at}.{word}".encode())
            if len(word) > 3 and number % 1000 < self.noise * 1000:
                cut = (number >> 10) % len(word)
                words[at] = word[:cut] + word[cut + 1 :]
        return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Espeak:
    """The program espeak-ng.

    Attributes:
        program: Its name or path.
        voice: Voice.
        words_per_minute: Speed.
        timeout_s: Seconds for one message.

    Raises:
        BadValueError: The program is not there.
    """

    program: str = "espeak-ng"
    voice: str = "en"
    words_per_minute: int = 160
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if shutil.which(self.program) is None:
            raise BadValueError(
                f"Retail: channel 'speech' needs the program {self.program!r}, which is not "
                "installed. Install it (Debian: apt install espeak-ng), use channel='spoken', or "
                "pass channel=Speech(synthesiser=...)."
            )

    def speak(self, text: str) -> Waveform:
        """Return the sound of a text."""
        command = [self.program, "--stdout", "-v", self.voice, "-s", str(self.words_per_minute)]
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                capture_output=True,
                timeout=self.timeout_s,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EnvFault(f"{self.program} could not speak: {error}") from error
        return read_wave(done.stdout)


def read_wave(data: bytes) -> Waveform:
    """Read a RIFF/WAVE file of 16-bit mono samples, as a program writes it to a pipe.

    Raises:
        EnvFault: It is something else.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            if (file.getnchannels(), file.getsampwidth()) != (1, 2):
                raise EnvFault("the synthesiser gave no 16-bit mono sound")
            samples = file.readframes(min(file.getnframes(), len(data)))
            return Waveform(samples, file.getframerate())
    except (wave.Error, EOFError) as error:
        raise EnvFault(f"the synthesiser gave no sound: {error}") from error


class Speech(Shared):
    """Only the sound reaches the assistant: the observation holds a mark, the transcript is hidden.

    ``env.unwrapped.sound()`` is the waveform of the customer's last message.

    Args:
        synthesiser: What speaks; espeak-ng by default.
        spoken: How words become spoken words.
    """

    blocking = True

    def __init__(
        self, synthesiser: Synthesiser | None = None, spoken: Spoken | None = None
    ) -> None:
        self.synthesiser = Espeak() if synthesiser is None else synthesiser
        self.spoken = Spoken() if spoken is None else spoken
        self._sounds: OrderedDict[str, Waveform] = OrderedDict()

    def __reduce__(self) -> Any:
        return Speech, (self.synthesiser, self.spoken)

    def deliver(self, text: str, key: int, turn: int) -> str:
        """Return a mark that stands for the sound."""
        sound = self.sound(text, key, turn)
        digest = hashlib.blake2b(sound.samples, digest_size=6).hexdigest()
        return f"<speech {digest} {sound.seconds:.1f} s>"

    def sound(self, text: str, key: int, turn: int) -> Waveform:
        """Return the sound of a message."""
        spoken = self.spoken.deliver(text, key, turn)
        if (known := self._sounds.get(spoken)) is None:
            known = self._sounds[spoken] = self.synthesiser.speak(spoken)
            while len(self._sounds) > _MAX_SOUNDS:
                self._sounds.popitem(last=False)
        return known


CHANNELS = {"text": Written, "spoken": Spoken, "speech": Speech}


def build_channel(channel: Any) -> Channel:
    """Return the channel of a setting.

    Raises:
        UnknownNameError: An unknown name.
        BadValueError: Something that is no channel.
    """
    if isinstance(channel, str):
        if channel not in CHANNELS:
            raise UnknownNameError("channel", channel, CHANNELS, "Retail")
        return CHANNELS[channel]()
    if not callable(getattr(channel, "deliver", None)):
        raise BadValueError(
            f"Retail: channel is {channel!r}; expected one of {list(CHANNELS)}, or an object with "
            "deliver(text, key, turn)."
        )
    return channel
