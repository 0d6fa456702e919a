"""Sealed seasons over a real socket: remote environments, expiry, restarts, the reveal."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.http_servers import serve_app
from helpers.server_helpers import Place, wait_for

from turngym.agents.scripted import scripted
from turngym.envs.core.episode import Info
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from turngym.envs.wrappers.season_client import SeasonClient
from turngym.envs.wrappers.season_env import RemoteEnv
from turngym.leaderboard.ranking.index import read_index
from turngym.leaderboard.schema.suite import Slot, Suite
from turngym.leaderboard.server import (
    ServerSettings,
    new_token,
    reveal_and_replay,
    sealed_entry,
    verifier,
)
from turngym.leaderboard.server.app import make_app
from turngym.leaderboard.server.publishing import suite_files
from turngym.leaderboard.suites.digests import make_cell_env
from turngym.leaderboard.suites.files import load_suite
from turngym.leaderboard.suites.sealed import (
    SEALED,
    check_revealed,
    is_revealed,
    read_season,
    sealed_suite,
    suite_file,
)


@contextmanager
def served(settings: ServerSettings, background: bool = False) -> Iterator[str]:
    with serve_app(make_app(settings, background=background)) as address:
        yield address


@pytest.fixture
def address(place: Place) -> Iterator[str]:
    with served(place.settings) as address:
        yield address


def remote(address: str, place: Place, env_id: str = "WebShop-v0", **settings: Any) -> Any:
    return gym.make(env_id, server=address, token=place.token, **settings)


def secret_suite(place: Place, name: str = "spring") -> Suite:
    return load_suite(suite_file(place.settings.seasons, name))


def test_a_whole_season(place: Place) -> None:
    suite = secret_suite(place)
    with served(place.settings, background=True) as address:
        client = SeasonClient(address, place.token)
        fields = {"name": "ours", "organisation": "us", "licence": "MIT"}
        assert client.describe_entry(**fields) == {"described": "ours"}
        for cell in suite.cells:
            env = remote(address, place, cell.env_id, size="micro")
            assert isinstance(env, RemoteEnv)
            twin = make_cell_env(cell)
            assert (env.instructions, env.stop) == (twin.instructions, twin.stop)
            for index, task in [(i, t) for t in range(cell.trials) for i in range(len(cell.tasks))]:
                observation, info = env.reset()
                slot = Slot(cell.key, cell.tasks[index], task)
                options = {"split": cell.split, "task": slot.task}
                expected, known = twin.reset(seed=suite.seed_of(slot), options=options)
                assert observation == expected
                assert info["task_id"] == f"sealed/{index}"
                policy = scripted("expert", 0, twin)
                while info["status"] == "running":
                    action = policy(twin, expected, known)
                    expected, _, *ended, known = twin.step(action)
                    observation, reward, *told, info = env.step(action)
                    assert told == ended
                    over = known["status"] != "running"
                    assert observation == ("" if over else expected)
                    assert reward == 0.0
                    assert info["reward_terms"] == info["metrics"] == {}
                    assert info["status"] == ("ended" if over else "running")
            with pytest.raises(EpisodeError, match="one pass per task and trial"):
                env.reset()
        bob = SeasonClient(address, new_token(place.settings, "bob"))
        bob.start("MathWord-v0", None, None, "0" * 32)
        bob.describe_entry(**fields)
        submission = client.finish()
        assert submission["errors"] == 0
        assert client.finish()["id"] == submission["id"]
        with pytest.raises(EpisodeError, match="finished"):
            client.describe_entry(**(fields | {"name": "another"}))
        with place.client() as browser:
            told = wait_for(browser, submission["id"])
    assert (told["state"], told["score"]) == ("accepted", 1.0)
    assert told["entry_id"].startswith("spring-v1/ours-")
    check_the_reveal(place, told["entry_id"])


def check_the_reveal(place: Place, entry_id: str) -> None:
    site = place.settings.site
    assert not list(site.glob(f"entries/{entry_id}/*/*.html"))  # sealed texts are not shown
    outcome = reveal_and_replay(place.settings, "spring")
    assert (outcome.accepted, outcome.refused, outcome.unfinished) == (1, (), ("bob",))
    public = read_season(place.settings.seasons, "spring")
    assert check_revealed(public, outcome.folder).id == "spring-v1"
    assert all(one.verdict.accepted for one in read_index(place.settings.index))
    with place.client() as browser:
        assert browser.get("/seasons/spring/secret.json").status_code == 200
        assert "revealed" in browser.get("/season").text
        assert browser.get("/api/seasons/spring").status_code == 404


def test_a_server_shows_a_season_that_is_revealed_beside_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[str]] = []

    def note_site(settings: ServerSettings, cancel: object) -> None:
        read_index(settings.index)  # as the pages are written: it makes them no older
        written.append([path.name for path in suite_files(settings, public=True)])

    def wait_for_suites(*names: str) -> None:
        deadline = time.monotonic() + 60
        while not written or written[-1] != [*names]:
            assert time.monotonic() < deadline, written
            time.sleep(0.05)

    monkeypatch.setattr(verifier, "write_site", note_site)
    monkeypatch.setattr(verifier, "_POLL_S", 0.05)
    with place.client(background=True):
        wait_for_suites("tiny-v1.json")
        time.sleep(0.5)
        assert len(written) == 1
        reveal_and_replay(place.settings, "spring")
        wait_for_suites("tiny-v1.json", "spring-v1.json")


def test_a_step_in_a_season_that_was_revealed_is_refused(address: str, place: Place) -> None:
    env = remote(address, place, "MathWord-v0")
    env.reset()
    reveal_and_replay(place.settings, "spring")
    with pytest.raises(EpisodeError, match="the season spring is over, and its episodes with it"):
        env.step("a")


def test_commitment_catches_a_changed_secret(place: Place, base_suite: Suite) -> None:
    folder = place.settings.seasons / "spring" / SEALED
    public = read_season(place.settings.seasons, "spring")
    path = folder / "secret.json"
    data = json.loads(path.read_text())
    other = {"nonce": data["nonce"], "secret": "ab" * 32}
    path.write_text(json.dumps(other))
    with pytest.raises(ValueError, match="published was"):
        reveal_and_replay(place.settings, "spring")
    assert not is_revealed(place.settings.seasons, "spring")
    assert public.commitment not in json.dumps(data)
    assert sealed_suite(base_suite, "spring", data["secret"]) == secret_suite(place)
    assert sealed_suite(base_suite, "spring", other["secret"]) != secret_suite(place)


def test_secrets_are_readable_by_the_server_alone(place: Place, season_files: Path) -> None:
    folder = season_files / "spring" / SEALED
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    cell = secret_suite(place).by_key()["MathWord-v0"]
    assert cell.settings["world_seed"] > 0
    public = (season_files / "spring" / "season.json").read_text()
    assert "world_seed" not in public
    assert str(cell.settings["world_seed"]) not in public


def test_a_restart_and_a_full_memory_replay_what_ran(place: Place) -> None:
    small = place.changed(live_envs=1)
    with served(small.settings) as address:
        first, second = (remote(address, place) for _ in range(2))
        first.reset()
        second.reset()
        first.step("one")
        second.step("two")
        assert first.step("three")[4]["turn"] == 2
    with served(small.settings) as address:
        first.client.server = address
        info = first.step("four")[4]
        assert info["turn"] == 3
    twin = make_cell_env(secret_suite(place).by_key()["WebShop-v0"])
    slot = Slot("WebShop-v0", secret_suite(place).by_key()["WebShop-v0"].tasks[0], 0)
    options = {"split": "test", "task": slot.task}
    twin.reset(seed=secret_suite(place).seed_of(slot), options=options)
    for action in ("one", "three", "four"):
        observation, *_, known = twin.step(action)
    assert known["turn"] == 3
    assert first._texts[-1] == observation


def test_a_step_sent_twice_is_taken_once(address: str, place: Place) -> None:
    client = SeasonClient(address, place.token)
    begun = client.start("WebShop-v0", None, None, "0" * 32)
    assert client.start("WebShop-v0", None, None, "0" * 32)["session"] == begun["session"]
    with pytest.raises(BadValueError, match="started an episode of WebShop-v0; give a request for"):
        client.start("MathWord-v0", None, None, "0" * 32)
    said = client.step(begun["session"], 1, "a")
    assert client.step(begun["session"], 1, "a") == said
    with pytest.raises(EpisodeError, match="expected turn 2"):
        client.step(begun["session"], 1, "b")
    with pytest.raises(EpisodeError, match="expected turn 2"):
        client.step(begun["session"], 5, "b")


def test_an_episode_that_is_over_is_not_started_again(address: str, place: Place) -> None:
    client = SeasonClient(address, place.token)
    request = "0" * 32
    begun, turn = client.start("MathWord-v0", None, None, request), 0
    again = client.start("MathWord-v0", None, None, request)
    assert again["observation"] == begun["observation"]
    while begun["info"]["status"] == "running":
        turn += 1
        begun["info"] = client.step(begun["session"], turn, "<answer>1</answer>")["info"]
    with pytest.raises(EpisodeError, match=r"the episode is over \(ended\)\.$"):
        client.start("MathWord-v0", None, None, request)


def test_a_pass_that_is_finished_twice_at_a_time_has_one_submission(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    season = "/api/seasons/spring"
    write, answers = sealed_entry.write_entry, []
    with place.client() as client:

        def ask(method: str, what: str, **body: Any) -> Any:
            answer = client.request(method, f"{season}/{what}", json=body, headers=place.headers)
            assert answer.status_code in (200, 202), answer.text
            return answer.json()

        def late(*given: Any) -> None:
            monkeypatch.setattr(sealed_entry, "write_entry", write)
            answers.append(ask("POST", "finish", give_up=True))  # was here before
            write(*given)

        ask("PUT", "entry", name="ours", organisation="us", licence="MIT")
        ask("POST", "episodes", env="WebShop-v0", request="0" * 32)
        monkeypatch.setattr(sealed_entry, "write_entry", late)
        answers.append(ask("POST", "finish", give_up=True))
    assert answers[0]["id"] == answers[1]["id"]
    assert [folder.name for folder in place.settings.uploads.iterdir()] == [answers[0]["id"]]


def test_who_may_play_what(address: str, place: Place) -> None:
    env = remote(address, place)
    env.reset(options={"task": 1, "trial": 0})
    with pytest.raises(EpisodeError, match="one pass"):
        remote(address, place).reset(options={"task": 1, "trial": 0})
    mallory = SeasonClient(address, new_token(place.settings, "mallory"))
    with pytest.raises(BadValueError, match="no such episode"):
        mallory.step(env._session, 1, "a")
    with pytest.raises(BadValueError, match="token is missing or invalid"):
        SeasonClient(address, "tg_wrong").start("WebShop-v0", None, None, "0" * 32)
    with pytest.raises(BadValueError, match="holds no environment"):
        remote(address, place, size="full")
    with pytest.raises(BadValueError, match="holds no environment"):
        remote(address, place, "Game24-v0")
    with pytest.raises(UnknownNameError, match="setting 'hops'"):
        remote(address, place, hops=3)
    for options, match in (
        ({"task": 9}, "there is no task 9"),
        ({"trial": 9}, "there are 2"),
        ({"task": "x"}, "task is 'x'; expected an integer"),
        ({"split": "train"}, "the season plays"),
        ({"seed": 1}, "reset option"),
    ):
        with pytest.raises(ValueError, match=match):
            env.unwrapped.reset(options=options)


def test_a_task_comes_again_when_all_were_played(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.wrappers.season_client._BUSY_WAIT_S", 0.0)
    with served(place.settings) as address:
        first, second, third = (remote(address, place) for _ in range(3))
        with pytest.raises(EpisodeError, match="2 are not started"):
            first.reset(options={"task": 0, "trial": 1})
        first.reset()
        with pytest.raises(EpisodeError, match="1 are not started"):
            second.reset(options={"task": 0, "trial": 1})
        second.reset()
        for env, running in ((first, 2), (second, 1)):
            with pytest.raises((BadValueError, EnvFault), match=f"{running} are running"):
                third.reset()
            info = {"status": "running"}
            while info["status"] == "running":
                observation, *_, info = env.step("search[x]")
            assert (info["status"], observation) == ("ended", "")
            with pytest.raises(EpisodeError, match=r"over \(ended\)"):
                env.client.step(env._session, 30, "x")
        assert third.reset(options={"task": 0})[1]["task_id"] == "sealed/0"


def test_bad_actions_and_bad_order(address: str, place: Place) -> None:
    env = remote(address, place)
    with pytest.raises(EpisodeError, match="call reset first"):
        env.step("a")
    env.reset()
    with pytest.raises(TypeError, match="expected text"):
        env.step(3)
    with pytest.raises(BadValueError, match="characters"):
        env.step("x" * 100_001)
    with pytest.raises(BadValueError, match=r"surrogate|request"):
        env.step("\ud800")
    assert env.step("a")[4]["turn"] == 1


def test_expired_and_unplayed_episodes_count_as_errors(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.leaderboard.server.verifier.write_site", lambda settings: None)
    path = place.settings.seasons / "spring" / "season.json"
    data = json.loads(path.read_text())
    data["terms"]["session_s"] = 2.0
    path.write_text(json.dumps(data))
    with served(place.settings, background=True) as address:
        env = remote(address, place)
        env.reset()
        env.step("a")
        time.sleep(2.2)
        with pytest.raises(EpisodeError, match="no step came in time"):
            env.step("b")
        client = SeasonClient(address, place.token)
        with pytest.raises(EpisodeError, match="describe the entry first"):
            client.finish(give_up=True)
        with pytest.raises(BadValueError, match="name: is blank"):
            client.describe_entry(name="  ", organisation="us", licence="MIT")
        client.describe_entry(name="late", organisation="us", licence="MIT")
        with pytest.raises(EpisodeError, match="5 episodes are unplayed"):
            client.finish()
        submission = client.finish(give_up=True)
        assert submission["errors"] == 6
        with place.client() as browser:
            told = wait_for(browser, submission["id"])
    assert (told["state"], told["score"]) == ("accepted", 0.0)


def test_a_pass_is_not_finished_while_an_episode_runs(address: str, place: Place) -> None:
    client = SeasonClient(address, place.token)
    client.describe_entry(name="ours", organisation="us", licence="MIT")
    math, *shops = [remote(address, place, name) for name in ("MathWord-v0", *["WebShop-v0"] * 4)]
    for env, action in ((math, "<answer>1</answer>"), *((shop, "search[x]") for shop in shops)):
        info = env.reset()[1]
        while info["status"] == "running":
            info = env.step(action)[4]
    math.reset()
    with pytest.raises(EpisodeError, match="0 episodes are unplayed, 1 are running; play them to"):
        client.finish()
    assert math.step("<answer>1</answer>")[4]["status"] == "ended"
    assert client.finish()["errors"] == 0


def test_open_episodes_and_steps_are_limited(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.envs.wrappers.season_client._BUSY_WAIT_S", 0.0)
    narrow = place.changed(open_episodes=1, steps_per_minute=3)
    with served(narrow.settings) as address:
        env = remote(address, place)
        env.reset()
        other = SeasonClient(address, place.token)
        with pytest.raises(BadValueError, match="1 episodes are open"):
            other.start("MathWord-v0", None, None, "1" * 32)
        env.step("a")
        with pytest.raises(EnvFault, match="too many requests"):  # it names a wait beyond patience
            other.start("MathWord-v0", None, None, "1" * 32)


def test_rewards_are_told_when_the_season_says_so(place: Place, season_files: Path) -> None:
    shutil.rmtree(place.settings.seasons / "spring")
    shutil.copytree(season_files / "open", place.settings.seasons / "open")
    with served(place.settings) as address:
        env = remote(address, place, render_mode="ansi")
        observation, info = env.reset(seed=3)
        cell = secret_suite(place, "open").by_key()["WebShop-v0"]
        twin = make_cell_env(cell)
        slot = Slot(cell.key, cell.tasks[0], 0)
        seed = secret_suite(place, "open").seed_of(slot)
        first = twin.reset(seed=seed, options={"split": "test", "task": slot.task})
        policy = scripted("expert", 0, twin)
        while info["status"] == "running":
            action = policy(twin, *first)
            expected = twin.step(action)
            observation, reward, _, _, info = env.step(action)
            assert reward == expected[1]
            first = observation, expected[4]
        assert info["metrics"] == expected[4]["metrics"]
        assert info["metrics"]["success"] == 1.0
        assert env.render().endswith(observation)


@pytest.mark.parametrize("shown", [False, True])
def test_no_environment_tells_more_than_the_contract(
    place: Place, generated_season: Path, shown: bool
) -> None:
    season = place.settings.seasons / "every"
    shutil.copytree(generated_season, season)
    data = json.loads((season / "season.json").read_text())
    data["terms"]["show_rewards"] = shown
    (season / "season.json").write_text(json.dumps(data))
    keys = list(Info.__annotations__)
    with place.client() as browser:
        for number, cell in enumerate(secret_suite(place, "every").cells):
            form = {"env": cell.key, "request": f"{number:032x}"}
            path = "/api/seasons/every/episodes"
            begun = browser.post(path, json=form, headers=place.headers).json()
            assert (begun["env"], list(begun["info"])) == (cell.key, keys)
            path, step = f"/api/episodes/{begun['session']}/steps", {"turn": 1, "action": "a"}
            told = browser.post(path, json=step, headers=place.headers).json()
            assert list(told["info"]) == keys, cell.key
            if not shown:
                hidden = (told["info"][key] for key in ("reward_terms", "metrics", "verdict"))
                assert list(hidden) == [{}, {}, None]


@pytest.mark.parametrize("turn", [0, 10**6 + 1, 2**63, 2**80])
def test_a_turn_out_of_range_is_refused(place: Place, turn: int) -> None:
    with place.client() as browser:
        form = {"env": "WebShop-v0", "request": "0" * 32}
        begun = browser.post("/api/seasons/spring/episodes", json=form, headers=place.headers)
        path, step = f"/api/episodes/{begun.json()['session']}/steps", {"turn": turn, "action": "a"}
        answer = browser.post(path, json=step, headers=place.headers)
    assert answer.status_code == 422
    assert "turn" in answer.json()["error"]["message"]


@pytest.mark.parametrize("reproduces", ["a\nb", "a\n", "\x1b[2J", "x" * 401])
def test_a_description_that_no_entry_can_have_is_refused_at_once(
    place: Place, reproduces: str
) -> None:
    fields = {"name": "ours", "organisation": "us", "licence": "MIT", "reproduces": reproduces}
    with place.client() as browser:
        answer = browser.put("/api/seasons/spring/entry", json=fields, headers=place.headers)
    assert answer.status_code == 422
    assert "reproduces" in answer.json()["error"]["message"]


def test_a_lost_server_is_an_environment_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.wrappers.season_client._WAIT_S", 0.0)
    with served(place.settings) as address:
        env = remote(address, place)
        env.reset()
    observation, reward, terminated, truncated, info = env.step("a")
    assert observation.startswith("The environment broke")
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")
    with pytest.raises(EpisodeError, match="step after the end"):
        env.step("b")
    with pytest.raises(EnvFault, match="no answer"):
        env.reset()


@pytest.mark.parametrize("server", ["board", "ftp://x", "http://u@x", "http://x?y", 7, "http://"])
def test_addresses(server: Any) -> None:
    with pytest.raises(BadValueError, match="expected an address"):
        gym.make("WebShop-v0", server=server, token="t")


def test_a_token_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGYM_TOKEN", raising=False)
    with pytest.raises(BadValueError, match="no token"):
        gym.make("WebShop-v0", server="http://127.0.0.1:1")
    monkeypatch.setenv("TURNGYM_TOKEN", "tg_secret")
    assert "tg_secret" not in repr(SeasonClient("http://127.0.0.1:1"))
