"""What runs inside the sandbox's own process: closes the doors, then runs the code.

Never imported: :mod:`.process` compiles this file and hands it to a bare interpreter, together with
a job. So it stands alone, imports only what the interpreter brings along, and is short, because
its start is what a call costs. Two processes: the keeper waits and reports, its child is closed
off and runs the code. What they write to the job's ``report`` pipe: ``fault …`` when a door could
not be closed, ``ready`` before the code starts, ``exit N`` or ``signal N`` after it.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import signal
import sys
from typing import Any, NoReturn

CODE_NAME = "<python>"
NOBODY = 65534
_NEWUSER = 0x10000000
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""Of mounts, control groups, host name, System V objects, processes and networks."""
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 4096, 16384, 1 << 18, 2, 4
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_RDONLY, _NOSUID, _NODEV = 1, 2, 4
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_PDEATHSIG, _SET_SECCOMP, _CAPBSET_DROP, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 22, 24, 38, 47
_READ_ONLY_RIGHTS = (1 << 2) | (1 << 3)  # read files, list folders
_FILE_RIGHTS = (1 << 1) | (1 << 2)  # write and read a file

_libc = ctypes.CDLL(None, use_errno=True)


class Fault(Exception):
    """A door that could not be closed."""


def main(job: dict[str, Any]) -> NoReturn:
    """Keep the sandboxed child, and report how it ended."""
    report: int = job["report"]
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.umask(0o077)
    try:
        _die_with_parent()
        mapped = _enter_namespaces() if "namespaces" in job["layers"] else False
        alive, keep = os.pipe()
        child = _fork()
    except (Fault, OSError) as fault:
        _tell(report, f"fault {fault}")
        os._exit(1)
    if child == 0:
        os.close(keep)
        _child(job, alive, mapped)
    os.closerange(0, 3)  # the ends of the output pipes belong to the child alone
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        _tell(report, f"signal {os.WTERMSIG(status)}")
    else:
        _tell(report, f"exit {os.waitstatus_to_exitcode(status)}")
    os._exit(0)


def _fork() -> int:
    """Fork; SIGTERM makes the keeper kill its child, which it then waits for as ever."""
    child = -1

    def kill(number: int, frame: Any) -> None:  # noqa: ARG001 - the form of a signal handler
        if child > 0:
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, kill)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return child


def _child(job: dict[str, Any], alive: int, mapped: bool) -> NoReturn:
    """Close every door, then run the code."""
    report: int = job["report"]
    try:
        _close_doors(job, alive, mapped)
    except (Fault, OSError, ValueError) as fault:
        _tell(report, f"fault {fault}")
        os._exit(1)
    _tell(report, "ready")
    os.close(report)
    run(job["source"])


def _close_doors(job: dict[str, Any], alive: int, mapped: bool) -> None:
    layers = job["layers"]
    if "namespaces" in layers:
        _own_root(job)
        _move_library(job["prefix"])
        os.chdir("/tmp")
    else:
        os.chdir(job["folder"])
    folder = os.getcwd()
    if "landlock" in layers:
        _landlock([source for source, _ in job["readable"]], job["devices"], folder)
    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, TZ="UTC", LANG="C.UTF-8")
    sys.argv, sys.executable = ["-c"], ""
    _drop_rights(as_nobody="namespaces" in layers and not mapped)
    _die_with_parent()  # again: the kernel forgets it when rights change
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
    except BlockingIOError:  # nothing written, not closed: the keeper lives
        pass
    else:
        raise Fault("the keeper ended before its child was ready")
    _limit(job)
    os.closerange(3, job["report"])
    os.closerange(job["report"] + 1, 4096)
    if "seccomp" in layers:
        _filter_calls(job["filter"])


# ---------------------------------------------------------------------- the code


def run(source: str) -> NoReturn:
    """Run ``source`` as ``__main__``, print its last bare expression, exit as Python does."""
    main_module = type(sys)("__main__")
    sys.modules["__main__"] = main_module
    status = 0
    try:
        _execute(source, vars(main_module))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
        status = 1
        _explain(error, source)
    sys.exit(status)


def _execute(source: str, names: dict[str, Any]) -> None:
    import _ast  # the parser's own nodes: importing ast would cost more than most snippets

    if "\0" in source:
        raise SyntaxError("source code string cannot contain null bytes")
    names["__builtins__"] = sys.modules["builtins"]
    tree: Any = compile(source, CODE_NAME, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    exec(compile(tree, CODE_NAME, "exec", dont_inherit=True), names)
    if last is not None:
        value = eval(
            compile(_ast.Expression(last.value), CODE_NAME, "eval", dont_inherit=True), names
        )
        if value is not None:
            print(value)


def _explain(error: BaseException, source: str) -> None:
    """Write the traceback to stderr, with the code's own lines and without this file's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != CODE_NAME:
        trace = trace.tb_next
    error.__traceback__ = trace
    try:
        import linecache
        import traceback

        lines = source.splitlines(keepends=True)
        linecache.cache[CODE_NAME] = (len(source), None, lines, CODE_NAME)
        traceback.print_exception(error)
    except BaseException:  # noqa: BLE001 - too little memory, or a sabotaged module
        sys.__excepthook__(type(error), error, trace)


# ---------------------------------------------------------------------- the doors


def _check(done: int, what: str) -> int:
    if done < 0:
        number = ctypes.get_errno()
        raise Fault(f"{what}: {os.strerror(number)} (errno {number})")
    return done


def _enter_namespaces() -> bool:
    """Take new namespaces for this process's children; True when a user namespace was needed."""
    if os.geteuid() == 0 and _libc.unshare(_NAMESPACES) == 0:
        return False
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEWUSER | _NAMESPACES), "unshare")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    return True


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    done = _libc.mount(
        source.encode(),
        target.encode(),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _check(done, f"mount {target}")


def _read_only(target: str, *, devices: bool = False, deep: bool = True) -> None:
    """Make a mount, with all below it, read-only, without set-uid and without devices."""
    rights = (ctypes.c_uint64 * 4)(_RDONLY | _NOSUID | (0 if devices else _NODEV), 0, 0, 0)
    flags = _AT_RECURSIVE if deep else 0
    done = _libc.syscall(
        _MOUNT_SETATTR, _AT_FDCWD, target.encode(), flags, rights, ctypes.c_size_t(32)
    )
    _check(done, f"mount_setattr {target}")


def _own_root(job: dict[str, Any]) -> None:
    """Mount a root of its own: the standard library, shared libraries, a few devices, and /tmp."""
    size = f"size={job['disk_bytes']},nr_inodes=4096"
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", job["base"], "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    os.chdir(job["base"])
    os.umask(0o022)
    os.mkdir("new")
    os.mkdir("old")
    _mount("new", "new", None, _MS_BIND)
    _check(_libc.pivot_root(b".", b"old"), "pivot_root")
    os.chdir("/")
    for path, target in job["links"]:
        os.makedirs(f"/new{os.path.dirname(path)}", exist_ok=True)
        os.symlink(target, f"/new{path}")
    for source, path in job["readable"]:
        os.makedirs(f"/new{path}")
        _mount(f"/old{source}", f"/new{path}", None, _MS_BIND | _MS_REC)
        _read_only(f"/new{path}")
    for path in job["emptied"]:
        _mount("tmpfs", f"/new{path}", "tmpfs", _MS_NOSUID | _MS_NODEV, "size=4k,mode=755")
        _read_only(f"/new{path}")
    os.makedirs("/new/dev")
    for path in job["devices"]:
        os.close(os.open(f"/new{path}", os.O_CREAT | os.O_WRONLY))
        _mount(f"/old{path}", f"/new{path}", None, _MS_BIND)
    os.mkdir("/new/tmp")
    _mount("tmpfs", "/new/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, f"{size},mode=1777")
    os.chdir("/new")
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")
    _read_only("/", deep=False)
    os.umask(0o077)


def _move_library(prefix: str) -> None:
    """Import from where the library is mounted now: tracebacks show no path of the machine."""
    old = sys.base_prefix
    sys.path[:] = [prefix + path.removeprefix(old) for path in sys.path if path.startswith(old)]
    sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = prefix
    sys.orig_argv, sys._base_executable = ["-c"], ""  # pyright: ignore
    sys._stdlib_dir = prefix + str(sys._stdlib_dir).removeprefix(old)  # pyright: ignore
    sys.path_importer_cache.clear()
    taken = set()
    for name, module in list(sys.modules.items()):
        _move_module(module, old, prefix)
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if str(origin).endswith(".py") and not name.startswith("encodings"):
            del sys.modules[name]  # its code holds old paths; who needs it imports it anew
            taken.add(name)
    for name in list(sys.modules):  # collections.abc is another module, without a path of its own
        if name.rpartition(".")[0] in taken:
            del sys.modules[name]  # left here it would not be set in the package anew
    _check(_libc.sethostname(b"python", 6), "sethostname")


def _move_module(module: Any, old: str, prefix: str) -> None:
    """Name where an imported module is now, else nothing is found in its package any more."""

    def moved(path: Any) -> Any:
        return prefix + path.removeprefix(old) if str(path).startswith(f"{old}/") else path

    spec = getattr(module, "__spec__", None)
    for owner, names in (
        (module, ("__file__", "__cached__")),
        (spec, ("origin", "cached")),
        (getattr(module, "__loader__", None), ("path",)),
    ):
        for name in names:
            if isinstance(path := getattr(owner, name, None), str):
                setattr(owner, name, moved(path))
    places = getattr(module, "__path__", None)
    if isinstance(places, list):
        places[:] = [moved(path) for path in places]  # the specification's list is the same one
    if module.__name__.startswith("encodings"):  # the interpreter keeps its functions
        classes = [one for one in vars(module).values() if isinstance(one, type)]
        for one in [v for owner in (module, *classes) for v in vars(owner).values()]:
            if (code := getattr(one, "__code__", None)) is not None:
                one.__code__ = code.replace(co_filename=moved(code.co_filename))


def _drop_rights(*, as_nobody: bool) -> None:
    """Give up all capabilities, the ways to gain one, and the machine's root user."""
    _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    _libc.prctl(_CAP_AMBIENT, 4, 0, 0, 0)  # clears all; kernels without it have none
    if as_nobody:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    head, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(head, none), "capset")


def _die_with_parent() -> None:
    _check(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def _limit(job: dict[str, Any]) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + job["cpu_s"]
    for limit, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 1, 1),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_FSIZE, job["disk_bytes"], job["disk_bytes"]),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, job["memory_bytes"], job["memory_bytes"]),
    ):
        resource.setrlimit(limit, (soft, hard))


def _landlock(readable: list[str], devices: list[str], folder: str) -> None:
    """Restrict reading to these folders and writing to ``folder``.

    Names, sizes and dates of other files can still be seen.
    """
    abi = _check(
        _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1), "landlock_create_ruleset"
    )
    if abi < 3:
        raise Fault(f"landlock: version {abi} of the kernel's rules does not stop truncation")
    handled = (1 << 15) - 1  # all rights to files that version 3 knows
    rules = (ctypes.c_uint64 * 1)(handled)
    ruleset = _check(
        _libc.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(8), 0), "landlock_create_ruleset"
    )
    allowed = [(path, _READ_ONLY_RIGHTS) for path in readable]
    allowed += [(path, _FILE_RIGHTS) for path in devices]
    allowed += [(folder, handled & ~1)]  # all but running files
    for path, rights in allowed:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = rights.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        _check(_libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(opened)
    _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    _check(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _filter_calls(program: list[tuple[int, int, int, int]]) -> None:
    """Install a seccomp filter; an operand of -1 stands for this process's own number."""
    own = os.getpid()
    packed = b"".join(
        code.to_bytes(2, sys.byteorder)
        + bytes((yes, no))
        + (own if operand < 0 else operand).to_bytes(4, sys.byteorder)
        for code, yes, no, operand in program
    )

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    whole = Program(len(program), packed)
    _check(_libc.prctl(_SET_SECCOMP, 2, ctypes.byref(whole), 0, 0), "prctl(PR_SET_SECCOMP)")


def _tell(report: int, what: str) -> None:
    os.write(report, f"{what}\n".encode())


if __name__ == "sandbox":
    main(marshal.load(sys.stdin.buffer))
