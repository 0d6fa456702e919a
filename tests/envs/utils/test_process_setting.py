"""A setting of the process that several threads want."""

from __future__ import annotations

import threading

import pytest

from turngym.envs.utils.process_setting import ProcessSetting


def test_the_last_thread_puts_back_what_the_first_one_found() -> None:
    state, asked = ["before"], []

    def wanted() -> str:
        asked.append(state[0])
        return "within"

    setting = ProcessSetting(lambda: state[0], lambda value: state.__setitem__(0, value), wanted)
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with setting.held():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with setting.held():
        assert state == ["within"]
        thread.start()
        assert inside.wait(30)
    assert state == ["within"]  # the other one is still there
    leave.set()
    thread.join()
    assert (state, asked) == (["before"], ["before"])
    with pytest.raises(KeyError), setting.held():
        raise KeyError
    assert state == ["before"]
