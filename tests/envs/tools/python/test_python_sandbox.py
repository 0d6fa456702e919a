"""Code that wants out, or wants too much: it gets an error, and the machine keeps its own."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest
from helpers.sandboxes import FULL, STAND_IN, Sandbox

from turngym.envs.tools.python.filters import MACHINES, call_filter

# ---------------------------------------------------------------------- time, memory, output


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import os; r, w = os.pipe(); os.read(r, 1)",
        "import signal, time\nfor s in (1, 2, 15, 24): signal.signal(s, signal.SIG_IGN)\n"
        "time.sleep(60)",
        "import ctypes, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(60)",
        "import os, time; os.close(1); os.close(2); time.sleep(60)",
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ],
)
def test_what_runs_too_long_is_stopped(sandbox: Sandbox, code: str) -> None:
    assert sandbox(code, timeout_s=0.5).why == "timeout"
    assert sandbox.left_alive() == []


def test_processor_time_is_limited_beside_the_clock(sandbox: Sandbox) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    soft, hard = eval(sandbox.out(code, timeout_s=7.5))
    assert 9 <= soft <= 11
    assert hard == soft + 1


@pytest.mark.parametrize(
    "code",
    [
        "x = [0]\nwhile True: x += x",
        "x = bytearray(10**10)",
        "import mmap; mmap.mmap(-1, 10**9)",
        "x = 'a' * 10**8; y = x * 100",
    ],
)
def test_a_memory_bomb_gets_an_error(sandbox: Sandbox, code: str) -> None:
    assert sandbox.error(code).startswith(("MemoryError", "OSError: [Errno 12]"))


def test_deep_recursion_ends_by_itself(sandbox: Sandbox) -> None:
    assert sandbox.error("def f(): f()\nf()").startswith("RecursionError")
    unlimited = "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()"
    ended = sandbox(unlimited, memory_bytes=1 << 26)  # fills it in a second, 512 MiB in twenty
    assert ended.status != 0
    assert ended.why == "itself"
    assert sandbox("(" * 100_000).status != 0
    assert sandbox("x = " + "-" * 100_000 + "1").status != 0


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_is_stopped(sandbox: Sandbox, stream: str) -> None:
    ended = sandbox(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)")
    assert ended.why == "output"
    assert len(ended.out) + len(ended.err) < 1 << 21


def test_huge_files_are_refused(sandbox: Sandbox) -> None:
    code = "f = open('big', 'wb')\nwhile True: f.write(b'x' * 10**6); f.flush()"
    assert sandbox.error(code).startswith(("OSError: [Errno 27]", "OSError: [Errno 28]"))
    sparse = "f = open('big', 'wb'); f.truncate(10**10)"
    assert sandbox.error(sparse).startswith("OSError: [Errno 27]")


def test_many_files_do_not_fill_the_disk(full: Sandbox) -> None:
    many = "for i in range(10**6): open(str(i), 'wb').write(b'x' * 10**6)"
    assert full.error(many).startswith("OSError: [Errno 28]")
    empty = "for i in range(10**6): open(str(i), 'wb')"
    assert full.error(empty).startswith("OSError: [Errno 28]")


def test_open_files_are_limited(sandbox: Sandbox) -> None:
    code = "x = [open('/dev/null') for _ in range(10**4)]"
    assert sandbox.error(code).startswith("OSError: [Errno 24]")


# ---------------------------------------------------------------------- other processes


@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True: os.fork()",
        "import os; os.forkpty()",
        "import subprocess; subprocess.run(['/bin/sh', '-c', 'sleep 60'])",
        "import os; os.posix_spawn('/bin/sh', ['sh'], {})",
        "import os; os.execv('/bin/sh', ['sh'])",
        "import os; os.system('sleep 60 &') == 0 or 1 / 0",
        "import multiprocessing as m; p = m.Process(target=print); p.start()",
        "import threading; threading.Thread(target=print).start()",
    ],
)
def test_no_process_can_be_started(sandbox: Sandbox, code: str) -> None:
    assert sandbox(code).status > 0
    assert sandbox.left_alive() == []


def test_a_daemon_does_not_survive(sandbox: Sandbox) -> None:
    code = (
        "import os, time, ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "for number in (56, 57, 58, 435, 220):\n"  # clone, fork, vfork, clone3; clone on aarch64
        "    if libc.syscall(number, 0, 0, 0, 0, 0) == 0:\n"
        "        os.setsid(); time.sleep(60)\n"
        "os._exit(0)"
    )
    assert sandbox(code).why == "itself"
    assert sandbox.left_alive() == []


def test_no_other_process_gets_a_signal(sandbox: Sandbox) -> None:
    code = f"""
import os
def refused(do, *args):
    try: do(*args)
    except (PermissionError, ProcessLookupError): return True
    return False
tries = [(os.kill, n, s) for s in (0, 9) for n in (os.getppid(), {os.getpid()}, 1 if os.getpid() > 1
         else 2, 0, -1)]
tries += [(os.killpg, os.getpgrp(), 9), (os.setsid,), (os.setpgid, 0, 0)]
print(all(refused(*t) for t in tries))
"""
    assert sandbox.out(code) == "True\n"


def test_a_snippet_may_end_itself(sandbox: Sandbox) -> None:
    assert sandbox("import os; os.abort()").status < 0
    assert sandbox("import ctypes; ctypes.string_at(0)").status == -11


# ---------------------------------------------------------------------- files and secrets


def test_files_outside_cannot_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("TOP SECRET")
    secret.chmod(0o644)
    home = Path.home()
    paths = [
        secret,
        tmp_path,
        home,
        home / ".ssh",
        "/etc/passwd",
        "/etc/shadow",
        "/proc/self/environ",
    ]
    paths += [f"/proc/{os.getpid()}/environ", f"/proc/{os.getpid()}/mem", "/proc/1/cmdline", "/var"]
    paths += ["/proc/self/root", "../../../../etc/passwd", "/tmp/../etc/passwd", __file__, "/root"]
    code = f"""
import os
for path in {[str(path) for path in paths]}:
    for do in (open, os.listdir, lambda p: open(p, 'rb')):
        try: print(path, do(path))
        except OSError: pass
"""
    assert sandbox.out(code) == ""


def test_links_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOP SECRET")
    code = f"""
import os
os.symlink({str(secret)!r}, 'a'); os.symlink({str(tmp_path)!r}, 'd'); os.symlink('/', 'r')
for do in (lambda: open('a').read(), lambda: open('a', 'w'), lambda: open('d/secret').read(),
           lambda: os.listdir('d'), lambda: os.link({str(secret)!r}, 'b'),
           lambda: open('r' + {str(secret)!r}).read(), lambda: os.rename('a', {str(secret)!r}),
           lambda: os.open('..' , os.O_RDONLY) and open(os.path.join('..', '..', 'etc', 'passwd')),
           lambda: os.chroot('.'), lambda: os.mknod('n', 0o60666, os.makedev(8, 0))):
    try: print(do())
    except OSError: pass
"""
    assert sandbox.out(code) == ""
    assert secret.read_text() == "TOP SECRET"


def test_nothing_outside_can_be_written(sandbox: Sandbox, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    kept.chmod(0o666)
    tmp_path.chmod(0o777)
    library = Path(os.__file__).parent
    new = [tmp_path / "new", "/new", "/usr/lib/new", "/dev/new", "/dev/shm/new", library / "new.py"]
    new += ["/var/tmp/new", "/python/lib/new", Path.cwd() / "new", "../new"]
    code = f"""
import os
for path in {[str(path) for path in [kept, *new]]}:
    for do in (lambda: open(path, 'w'), lambda: open(path, 'a'), lambda: os.mkdir(path),
               lambda: os.remove(path), lambda: os.truncate(path, 0), lambda: os.chmod(path, 0),
               lambda: os.symlink('x', path)):
        try: do()
        except OSError: continue
        print(path)
"""
    assert sandbox.out(code) == ""
    assert kept.read_text() == "as it was"
    assert not any(Path(path).exists() for path in new if Path(path).is_absolute())
    assert kept.stat().st_mode & 0o777 == 0o666


def test_the_environment_stays_outside(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "sk-12345")
    code = (
        "import os, ctypes\n"
        "libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p\n"
        "print(dict(os.environ), libc.getenv(b'SECRET_API_KEY'))"
    )
    said = sandbox.out(code)
    assert "SECRET" not in said
    assert "sk-12345" not in said
    assert said.endswith("None\n")


def test_only_the_three_streams_are_open(sandbox: Sandbox) -> None:
    code = """
import os
def is_open(n):
    try: os.fstat(n)
    except OSError: return False
    return True
print([n for n in range(64) if is_open(n)])
"""
    assert sandbox.out(code) == "[0, 1, 2]\n"


def test_the_folder_is_its_own_and_goes_away(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir(mode=0o755)
    code = f"""
import os, tempfile
print(os.listdir('.'))
open('a', 'w').write('b')
os.makedirs('x/y/z'); os.symlink({str(outside)!r}, 'x/link')
print(open('a').read(), tempfile.gettempdir() == os.getcwd() == os.environ['HOME'])
os.umask(0o777)
os.makedirs('closed'); open('closed/in', 'w') if os.access('closed', os.W_OK) else None
if os.access('/python', os.R_OK): os.chmod('x/y/z', 0); os.chmod('x/y', 0); os.chmod('x', 0)
"""
    assert sandbox.out(code) == "[]\nb True\n"
    assert list(tmp_path.iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o755
    sandbox("open('a', 'w').write('b'); import time; time.sleep(60)", timeout_s=0.3)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- network and system calls


def test_no_network(sandbox: Sandbox) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
        assert "Error" in sandbox.error(code)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        code = f"import socket; socket.socket(socket.{family})"
        assert sandbox.error(code).startswith("PermissionError: [Errno 1]")
    assert "Error" in sandbox.error("import urllib.request as u; u.urlopen('http://127.0.0.1')")


def test_asyncio_works_without_sockets(sandbox: Sandbox) -> None:
    code = (
        "import asyncio\nasync def f():\n  await asyncio.sleep(0.01)\n  return 5\nasyncio.run(f())"
    )
    assert sandbox.out(code) == "5\n"


REFUSED = {
    "socket": 41, "connect": 42, "sendmsg": 46, "bind": 49, "clone": 56, "fork": 57, "vfork": 58,
    "execve": 59, "shmget": 29, "msgget": 68, "setuid": 105, "setpgid": 109, "setsid": 112,
    "setresuid": 117, "capset": 126, "personality": 135, "mknod": 133, "ptrace": 101,
    "pivot_root": 155, "prctl": 157, "arch_prctl": 158, "setrlimit": 160, "chroot": 161,
    "mount": 165, "umount2": 166, "reboot": 169, "sethostname": 170, "init_module": 175,
    "add_key": 248, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "seccomp": 317,
    "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323,
    "io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "pidfd_open": 434, "pidfd_getfd": 438,
    "mount_setattr": 442, "landlock_create_ruleset": 444, "memfd_secret": 447, "unknown": 9999,
    "x32 socket": 0x40000000 + 41, "x32 execve": 0x40000000 + 520,
}  # fmt: skip


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
def test_raw_system_calls_are_refused(sandbox: Sandbox) -> None:
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in {REFUSED}.items():
    done = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if (done, ctypes.get_errno()) != (-1, 1): print(name, done, ctypes.get_errno())
"""
    assert sandbox.out(code) == ""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of x86_64")
def test_calls_of_another_machine_end_it(sandbox: Sandbox) -> None:
    code = """
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex('b8 14 00 00 00 cd 80 c3'))  # getpid as 32-bit programs call it
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
print('survived')
"""
    ended = sandbox(code)
    assert ended.status < 0
    assert ended.out == b""


def test_rights_are_gone(sandbox: Sandbox) -> None:
    code = "import os; print(os.getuid(), os.geteuid(), os.getgroups())"
    uid, euid, *_ = sandbox.out(code).split()
    assert uid == euid
    if sandbox.layers == FULL:
        assert uid == "65534"
    for what in ("os.setuid(0)", "os.setgroups([0])", "os.nice(-5)", "os.chown('.', 0, 0)"):
        ended = sandbox(f"import os; {what}")
        assert ended.status > 0 or (what.startswith("os.chown") and sandbox.layers == STAND_IN)


def test_the_filter_is_made_for_each_known_machine() -> None:
    for machine in MACHINES:
        program = call_filter(machine)
        assert program is not None
        assert len(program) < 4096
        for place, (_, yes, no, _) in enumerate(program):
            assert place + 1 + max(yes, no) < len(program) or (yes, no) == (0, 0)
    assert call_filter("pdp11") is None
