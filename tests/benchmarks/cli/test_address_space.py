"""A limit on the address space, as batch systems set it."""

from __future__ import annotations

import resource

import pytest

from turngym.benchmarks.cli.main import REFUSED, main


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("x.so: failed to map segment from shared object"),
        OSError("x.so: failed to map segment from shared object"),
    ],
)
def test_a_limit_on_the_address_space_ends_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ulimit -v` sets it; without one the traceback says where the memory went."""

    def fail(command: object) -> None:
        raise error

    monkeypatch.setattr("turngym.benchmarks.cli.envs.run", fail)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (400 << 20, resource.RLIM_INFINITY))
    assert main(["envs"]) == REFUSED
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: there is no memory left for this process")
    assert "limited to 400 MiB (`ulimit -v`" in said
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    with pytest.raises(type(error)):
        main(["envs"])
