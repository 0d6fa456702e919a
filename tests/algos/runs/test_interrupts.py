"""Handlers of signals, and who had them before."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from turngym.algos.runs.interrupts import held_interrupts, terminate_as_interrupt, uninterrupted


def test_handlers_of_a_program_around_python_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in R's reticulate or a C program: Python says None, and takes None from nobody."""
    real, touched = signal.signal, []

    def install(number: int, handler: Any) -> Any:
        if number == signal.SIGTERM:
            if handler is None:
                raise TypeError("signal handler must be signal.SIG_IGN, ...")
            touched.append(handler)
            return None
        return real(number, handler)

    found = signal.getsignal
    monkeypatch.setattr(signal, "signal", install)
    monkeypatch.setattr(signal, "getsignal", lambda n: None if n == signal.SIGTERM else found(n))
    before = found(signal.SIGINT)
    for context in (terminate_as_interrupt, held_interrupts, uninterrupted):
        with context():
            pass
    assert touched == []
    assert found(signal.SIGINT) == before
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_a_termination_does_not_replace_ctrl_c_of_a_program_around_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R has Ctrl-C for itself and leaves SIGTERM alone."""
    real, found, touched = signal.signal, signal.getsignal, []

    def install(number: int, handler: Any) -> Any:
        touched.append(number)
        return real(number, handler)

    monkeypatch.setattr(signal, "getsignal", lambda n: None if n == signal.SIGINT else found(n))
    monkeypatch.setattr(signal, "signal", install)
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    assert signal.SIGINT not in touched
