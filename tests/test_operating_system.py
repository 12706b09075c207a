"""Simulates what Windows and macOS lack, such as `fcntl`, `/proc` and timers."""

import ast
import errno
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_seq import operating_system
from keras_seq.process.memory import free_memory
from keras_seq.storage import DirectoryLock, atomic_directory, write_file
from keras_seq.text import InputError
from keras_seq.training.stopping import SignalStop

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "keras_seq", ROOT / "cli")
# Attributes that exist on some systems only, and names that tell the system.
ONLY_HERE = re.compile(
    r"sys\.platform|os\.name|platform\.system|\bfcntl\b|\bmsvcrt\b|import resource$|/proc/"
    r"|O_NOFOLLOW|O_NONBLOCK|sched_getaffinity|statvfs|SIGALRM|SIGKILL|SIGBUS|SIGHUP|SO_REUSE"
    # Processes are started anew, as on Windows. A fork would copy the locks of threads.
    r"|os\.fork|multiprocessing|ProcessPool|getuid|killpg|sysconf",
    re.MULTILINE,
)


class MicrosoftLocks:
    """`msvcrt` for one process: locks of bytes, which are refused with EACCES."""

    LK_LOCK, LK_NBLCK = 1, 2

    def __init__(self):
        self.locked = set()

    def locking(self, handle, mode, count):
        assert mode in (self.LK_LOCK, self.LK_NBLCK) and count == 1
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) in self.locked:
            raise OSError(errno.EACCES, "Permission denied")
        self.locked.add((status.st_dev, status.st_ino))


@pytest.fixture
def windows(monkeypatch):
    """The modules, attributes and names of Windows, as far as `operating_system` sees them."""
    monkeypatch.setattr(operating_system, "fcntl", None)
    monkeypatch.setattr(operating_system, "resource", None)
    monkeypatch.setattr(operating_system, "msvcrt", MicrosoftLocks())
    names = ("sched_getaffinity", "statvfs", "sysconf", "O_NOFOLLOW", "O_NONBLOCK")
    existing = {name: getattr(os, name) for name in dir(os) if name not in names}
    without = SimpleNamespace(**existing)
    without.name = "nt"
    monkeypatch.setattr(operating_system, "os", without)
    monkeypatch.setattr(operating_system, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(operating_system, "_kilobytes", lambda file, name: None)


def test_windows_refuses_a_second_writer(windows, tmp_path):
    lock = DirectoryLock(tmp_path)
    with pytest.raises(InputError, match="another training is at work there"):
        DirectoryLock(tmp_path)
    lock.release()


def test_a_system_without_locks_has_no_second_writers(windows, tmp_path, monkeypatch):
    monkeypatch.setattr(operating_system, "msvcrt", None)
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.release()
    second.release()


def test_windows_writes_without_locks_on_directories_and_keeps_those_of_others(windows, tmp_path):
    other = tmp_path / ".tmp-made-0123456789abcdef"
    other.mkdir()
    with atomic_directory(tmp_path / "made") as directory:
        write_file(directory / "text", b"whole")
    assert (tmp_path / "made" / "text").read_bytes() == b"whole"
    assert other.is_dir()
    assert operating_system.lock_directory(tmp_path) is None


def test_windows_has_no_limits_that_it_lacks(windows):
    assert operating_system.raise_open_file_limit(4096) == 4096
    assert operating_system.usable_cores() == os.cpu_count()
    assert operating_system.free_memory() == float("inf")
    assert operating_system.free_address_space() == float("inf")
    assert operating_system.memory_of(os.getpid()) == 0
    assert not operating_system.is_read_only(Path())
    operating_system.keep_freed_memory()


def test_windows_does_not_share_the_port_of_a_server(windows):
    # On Windows the option has another meaning, so that nothing may be set.
    operating_system.reuse_address(None)


@pytest.mark.parametrize(
    ("name", "keeps"),
    [
        ("text.en", True),
        (".hidden", True),
        ("console.txt", True),
        ("com10", True),
        ("text.", False),
        ("text ", False),
        ("NUL", False),
        ("aux.txt", False),
        ("Con .tar.gz", False),
        ("lpt1", False),
        ("COM\u00b2.x", False),
    ],
)
def test_windows_does_not_keep_all_names(windows, name, keeps):
    """See "Naming Files, Paths, and Namespaces" in the documentation of Windows."""
    assert operating_system.keeps_name(name) == keeps


def test_other_systems_keep_all_names():
    assert operating_system.keeps_name("aux.txt") and operating_system.keeps_name("text.")


def test_a_deadline_needs_timers(monkeypatch):
    monkeypatch.setattr("keras_seq.training.stopping.ALARM", None)
    later = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(ValueError, match="needs a POSIX system"):
        SignalStop(later)


def test_macos_knows_its_memory_and_names_libraries_in_its_own_way(monkeypatch):
    monkeypatch.setattr(operating_system, "_kilobytes", lambda file, name: None)
    monkeypatch.setattr(operating_system, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.delenv("KERAS_SEQ_MAX_MEMORY", raising=False)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert operating_system.free_memory() == total
    assert 0 < free_memory() <= total
    assert operating_system.shared_library("tensorflow_cc", 2) == "libtensorflow_cc.2.dylib"
    assert operating_system.free_address_space() == float("inf")
    monkeypatch.setattr(operating_system.ctypes, "CDLL", None)
    operating_system.keep_freed_memory()


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("linux", "libtensorflow_cc.so.2"),
        ("darwin", "libtensorflow_cc.2.dylib"),
        ("win32", "tensorflow_cc.2.dll"),
    ],
)
def test_each_system_names_shared_libraries_in_its_own_way(monkeypatch, platform, name):
    """The names are those of the patterns in TensorFlow's tensorflow.bzl."""
    monkeypatch.setattr(operating_system, "sys", SimpleNamespace(platform=platform))
    assert operating_system.shared_library("tensorflow_cc", 2) == name


# Sets a limit 1 GiB above the address space in use, and fills 512 MiB of it.
UNDER_A_LIMIT = """
import resource
from keras_seq import operating_system
from keras_seq.process.memory import free_memory
assert operating_system.free_address_space() == float("inf")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
before = free_memory()
filled = bytearray(2**29)
print(int(before), int(free_memory()))
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads files of Linux")
def test_a_limit_on_the_address_space_counts_as_free_memory():
    """As `ulimit -v` sets it."""
    command = [sys.executable, "-c", UNDER_A_LIMIT]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    before, after = map(int, ended.stdout.split())
    assert 0.9 * 2**30 < before <= 2**30
    assert before - after == pytest.approx(2**29, rel=0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="reads files of Linux")
def test_linux_knows_the_memory_of_the_machine_and_of_a_process():
    import resource

    assert 2**20 < operating_system.free_memory() < 2**50
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak / 20 < operating_system.memory_of(os.getpid()) <= peak * 1.1
    assert operating_system.memory_of(2**30) == 0


def test_exit_codes_are_those_of_signals():
    assert -signal.SIGKILL == operating_system.KILLED
    assert operating_system.CRASHED == (-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV)


def code_of(path):
    """Returns the code of a module without docstrings and comments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(getattr(body[0], "value", None), ast.Constant):
                body[0].value = ast.Constant(None)
    return ast.unparse(tree)


def test_no_other_module_knows_the_operating_system():
    allowed = {"keras_seq/operating_system.py"}
    found = {
        str(path.relative_to(ROOT)): ONLY_HERE.findall(code_of(path))
        for folder in PACKAGES
        for path in folder.rglob("*.py")
    }
    wrong = {name: words for name, words in found.items() if words and name not in allowed}
    assert wrong == {}
    assert found["keras_seq/operating_system.py"]


def test_all_text_files_are_written_with_the_same_line_ends():
    """Text mode would write CRLF on Windows, and checksums would differ between systems."""
    missing = []
    for folder in PACKAGES:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _writes_text(node):
                    if not any(word.arg == "newline" for word in node.keywords):
                        missing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert missing == []


def _writes_text(node):
    name = ast.unparse(node.func)
    if name.endswith("write_text"):
        return True
    if name == "open" or name.endswith(".open"):
        modes = [
            value.value
            for value in (*node.args, *(word.value for word in node.keywords))
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        ]
        return any(re.fullmatch(r"[wax]\+?t?", mode) for mode in modes)
    return False
