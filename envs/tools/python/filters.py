"""The system calls that sandboxed code may make, as a seccomp program.

A list of what is allowed; all else, and every call that a later kernel brings, fails with EPERM.
Missing on purpose: new processes and threads, other programs, sockets that reach anything,
tracing, mounting, rights, keys, shared memory segments, io_uring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

Line = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_ARCH, _NUMBER = 4, 0  # offsets in what the kernel shows to the program
OWN_NUMBER = -1
"""Operand that the sandboxed process replaces by its own process number."""

_X86_64: Mapping[str, int] = {
    # calls that run often come first
    "read": 0, "write": 1, "futex": 202, "clock_gettime": 228, "mmap": 9, "munmap": 11, "brk": 12,
    "lseek": 8, "newfstatat": 262, "openat": 257, "close": 3, "fstat": 5, "stat": 4, "lstat": 6,
    "poll": 7, "mprotect": 10, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22,
    "select": 23, "sched_yield": 24, "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28,
    "dup": 32, "dup2": 33, "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37,
    "setitimer": 38, "getpid": 39, "sendfile": 40, "recvfrom": 45, "shutdown": 48, "exit": 60,
    "wait4": 61, "uname": 63, "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75,
    "truncate": 76, "ftruncate": 77, "getcwd": 79, "chdir": 80, "fchdir": 81, "rename": 82,
    "mkdir": 83, "rmdir": 84, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89, "chmod": 90,
    "fchmod": 91, "umask": 95, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99,
    "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110,
    "getpgrp": 111, "getgroups": 115, "getresuid": 118, "getresgid": 120, "getpgid": 121,
    "getsid": 124, "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130,
    "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "gettid": 186, "time": 201,
    "sched_getaffinity": 204, "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219,
    "fadvise64": 221, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "epoll_wait": 232, "epoll_ctl": 233, "waitid": 247, "mkdirat": 258, "unlinkat": 263,
    "renameat": 264, "linkat": 265, "symlinkat": 266, "readlinkat": 267, "fchmodat": 268,
    "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "utimensat": 280,
    "epoll_pwait": 281, "fallocate": 285, "eventfd2": 290, "epoll_create1": 291, "dup3": 292,
    "pipe2": 293, "renameat2": 316, "getcpu": 309, "getrandom": 318, "membarrier": 324,
    "copy_file_range": 326, "statx": 332, "rseq": 334, "close_range": 436, "faccessat2": 439,
    # calls with rules
    "ioctl": 16, "sendto": 44, "socketpair": 53, "kill": 62, "tkill": 200, "tgkill": 234,
    "prlimit64": 302,
    # calls that C libraries expect to be absent rather than refused
    "clone3": 435, "openat2": 437,
}  # fmt: skip
_AARCH64: Mapping[str, int] = {
    "read": 63, "write": 64, "futex": 98, "clock_gettime": 113, "mmap": 222, "munmap": 215,
    "brk": 214, "lseek": 62, "newfstatat": 79, "openat": 56, "close": 57, "fstat": 80,
    "mprotect": 226, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139,
    "pread64": 67, "pwrite64": 68, "readv": 65, "writev": 66, "sched_yield": 124, "mremap": 216,
    "msync": 227, "mincore": 232, "madvise": 233, "dup": 23, "nanosleep": 101, "getitimer": 102,
    "setitimer": 103, "getpid": 172, "sendfile": 71, "recvfrom": 207, "shutdown": 210, "exit": 93,
    "wait4": 260, "uname": 160, "fcntl": 25, "flock": 32, "fsync": 82, "fdatasync": 83,
    "truncate": 45, "ftruncate": 46, "getcwd": 17, "chdir": 49, "fchdir": 50, "fchmod": 52,
    "umask": 166, "gettimeofday": 169, "getrlimit": 163, "getrusage": 165, "sysinfo": 179,
    "times": 153, "getuid": 174, "getgid": 176, "geteuid": 175, "getegid": 177, "getppid": 173,
    "getgroups": 158, "getresuid": 148, "getresgid": 150, "getpgid": 155, "getsid": 156,
    "rt_sigpending": 136, "rt_sigtimedwait": 137, "rt_sigsuspend": 133, "sigaltstack": 132,
    "statfs": 43, "fstatfs": 44, "gettid": 178, "sched_getaffinity": 123, "getdents64": 61,
    "set_tid_address": 96, "restart_syscall": 128, "fadvise64": 223, "clock_getres": 114,
    "clock_nanosleep": 115, "exit_group": 94, "epoll_ctl": 21, "waitid": 95, "mkdirat": 34,
    "unlinkat": 35, "renameat": 38, "linkat": 37, "symlinkat": 36, "readlinkat": 78,
    "fchmodat": 53, "faccessat": 48, "pselect6": 72, "ppoll": 73, "set_robust_list": 99,
    "utimensat": 88, "epoll_pwait": 22, "fallocate": 47, "eventfd2": 19, "epoll_create1": 20,
    "dup3": 24, "pipe2": 59, "renameat2": 276, "getcpu": 168, "getrandom": 278, "membarrier": 283,
    "copy_file_range": 285, "statx": 291, "rseq": 293, "close_range": 436, "faccessat2": 439,
    "ioctl": 29, "sendto": 206, "socketpair": 199, "kill": 129, "tkill": 130, "tgkill": 131,
    "prlimit64": 261,
    "clone3": 435, "openat2": 437,
}  # fmt: skip
MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _AARCH64),
}
"""Audit number and system call numbers, by what the machine calls itself."""


class Argument(NamedTuple):
    """A rule: argument ``place`` of a call is one of ``values`` (``high``: its upper half)."""

    place: int
    values: tuple[int, ...]
    high: bool = False


_NULL_AT_4 = (Argument(4, (0,)), Argument(4, (0,), high=True))
_RULES: Mapping[str, Sequence[Argument]] = {
    # terminal size and settings, bytes waiting, blocking, close on exec
    "ioctl": (Argument(1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),),
    "sendto": _NULL_AT_4,  # to no address: only along a pair
    "socketpair": (Argument(0, (1,)),),  # local pairs; asyncio wakes itself with one
    "kill": (Argument(0, (OWN_NUMBER,)),),
    "tkill": (Argument(0, (OWN_NUMBER,)),),
    "tgkill": (Argument(0, (OWN_NUMBER,)),),
    "prlimit64": (  # reading one's own limits
        Argument(0, (0,)),
        Argument(2, (0,)),
        Argument(2, (0,), high=True),
    ),
}
_ABSENT = ("clone3", "openat2")
OF_MODES = frozenset(("chmod", "fchmod", "fchmodat", "utimensat"))
"""Calls that change files which landlock lets nobody open: its rules are about content."""


@cache
def call_filter(machine: str, without: frozenset[str] = frozenset()) -> list[Line] | None:
    """Return the program for a machine; None if its system calls are not known here.

    Args:
        machine: What the machine calls itself.
        without: Calls that are refused too.
    """
    if machine not in MACHINES:
        return None
    audit, numbers = MACHINES[machine]
    lines = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL)]
    lines.append((_LOAD, 0, 0, _NUMBER))
    for name, number in numbers.items():
        if name in without:
            continue
        if name in _ABSENT:
            block = [(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
        else:
            block = _checked(_RULES.get(name, ()))
        lines += [(_EQUAL, 0, len(block), number), *block]
    return [*lines, (_RETURN, 0, 0, _ERRNO | _EPERM)]


def _checked(rules: Sequence[Argument]) -> list[Line]:
    """Allow when every rule holds; both known machines keep the lower half first."""
    lines: list[Line] = []
    for place, values, high in rules:
        lines.append((_LOAD, 0, 0, 16 + 8 * place + 4 * high))
        rest = len(values)
        for value in values:
            lines.append((_EQUAL, rest, 0, value))
            rest -= 1
        lines.append((_RETURN, 0, 0, _ERRNO | _EPERM))
    return [*lines, (_RETURN, 0, 0, _ALLOW)]
