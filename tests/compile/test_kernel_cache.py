"""The cache of compiled kernels on disk: what others could have written is not run, and it stays below its bound."""

import os
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest

import fad
from fad import config
from fad.compile.runtime import jit_engine, kernel_cache
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")
KEY, OTHER = "ab" + "0" * 62, "cd" + "1" * 62
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, owners, links and pipes are those of POSIX")
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
X = np.linspace(0.1, 0.9, 37)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernel_cache, "_refused", {})
    monkeypatch.setattr(kernel_cache, "_written", {})
    monkeypatch.setattr(jit_engine, "_addresses", {})
    return tmp_path / "kernels"


@pytest.fixture
def mask():
    """Let a test set the process's mask, and set it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def place(folder, key=KEY):
    return folder / key[:2] / key


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def first(x):
    return np.exp(np.sin(x) * 0.321) - np.sqrt(x + 0.654)


def second(x):
    return np.log(x * x + 0.987) * x


def run(f):
    """Return what a process that starts now would compute, and how many functions it compiles and loads."""
    jit_engine._addresses.clear()
    before = dict(jit_engine.statistics)
    with using("llvm"):
        fast = fad.jit(f)
        fast(X)
        found = fast(X)
    np.testing.assert_allclose(found, f(X), rtol=1e-14)
    return tuple(jit_engine.statistics[how] - before[how] for how in ("compiled", "loaded"))


def names(folder):
    """Return the entries that name objects, and the objects."""
    entries = [p for p in folder.glob("??/*") if p.is_file()]
    return [p for p in entries if p.stat().st_size < 200], [p for p in entries if p.stat().st_size >= 200]


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_an_entry_is_read_back_and_a_broken_one_is_ignored(folder):
    assert kernel_cache.read(KEY) is None
    assert kernel_cache.write(KEY, b"code")
    assert kernel_cache.read(KEY) == b"code"
    whole = place(folder).read_bytes()
    for broken in (whole[:-1], whole[:20], b"", whole + b"x", b"fad1" + whole[4:]):
        place(folder).write_bytes(broken)
        assert kernel_cache.read(KEY) is None


def test_an_entry_in_the_place_of_another_is_ignored(folder):
    for key in (KEY, OTHER):
        kernel_cache.write(key, key.encode())
    place(folder).replace(place(folder, "cd" + KEY[2:]))
    place(folder, OTHER).replace(place(folder))
    assert kernel_cache.read(KEY) is None
    assert kernel_cache.read("cd" + KEY[2:]) is None


@pytest.mark.parametrize("name", ["", "x", "../" + KEY, "ab/../../secret", KEY.upper(), KEY + "\n"])
def test_what_is_no_key_is_no_path(folder, name):
    (folder.parent / "secret").write_bytes(b"secret")
    assert kernel_cache.read(name) is None


def test_nothing_half_written_is_left_behind(folder):
    kernel_cache.write(KEY, b"code")
    assert [p.name for p in (folder / "ab").iterdir()] == [KEY]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_costs_nothing(folder):
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert not kernel_cache.write(KEY, b"code")


def test_a_place_that_is_no_folder_costs_nothing(folder):
    folder.write_text("a file")
    assert not kernel_cache.write(KEY, b"code")
    assert kernel_cache.read(KEY) is None


PROGRAM = """
import numpy as np, fad
from fad.compile.runtime import jit_engine as engine
f = fad.jit(lambda x: np.sum(np.sin(x) * x))
x = np.arange(5.0)
f(x)
assert abs(f(x) - np.sum(np.sin(x) * x)) < 1e-12
print(engine.statistics["compiled"], engine.statistics["loaded"])
"""


def test_a_second_process_loads_what_the_first_compiled(folder):
    env = {**os.environ, "FAD_CACHE_DIR": str(folder)}
    runs = [subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True) for _ in range(2)]
    first, second = (tuple(map(int, r.stdout.split())) for r in runs)
    assert first[0] > 0
    assert second == (0, first[0])


# --- who may write it -------------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277, 0o777])
def test_what_is_made_is_this_users_alone_whatever_the_mask(folder, mask, umask, monkeypatch):
    monkeypatch.setenv("FAD_CACHE_DIR", str(folder / "further" / "down"))
    mask(umask)
    assert kernel_cache.write(KEY, b"code")
    assert kernel_cache.read(KEY) == b"code"
    made = [folder, *folder.rglob("*")]
    assert {mode(p) for p in made if p.is_dir()} == {0o700}
    assert {mode(p) for p in made if p.is_file()} == {0o600}
    assert len(made) == 5


@POSIX
def test_a_folder_of_caches_that_all_may_write_to_serves_if_ones_own_folder_there_does(folder, monkeypatch, mask):
    base = folder.parent / "caches"
    base.mkdir()
    base.chmod(0o777)
    monkeypatch.delenv("FAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    mask(0)
    assert kernel_cache.write(KEY, b"code")
    assert kernel_cache.read(KEY) == b"code"
    assert mode(base / "fad") == 0o700
    (base / "fad").chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"others may write to .*fad \(its mode is 777\)"):
        assert kernel_cache.read(KEY) is None


def linked(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path):
    path.unlink()
    os.mkfifo(path)


def emptied(path):
    path.unlink()
    path.mkdir()


UNSAFE = {
    "writable for the group": (lambda path: path.chmod(0o720), "folder inner entry"),
    "writable for all": (lambda path: path.chmod(0o702), "folder inner entry"),
    "writable for all but sticky": (lambda path: path.chmod(0o1777), "folder inner"),
    "a symbolic link": (linked, "folder inner entry"),
    "a pipe": (piped, "entry"),
    "a folder": (emptied, "entry"),
}


def places(folder):
    return {"folder": folder, "inner": folder / "ab", "entry": place(folder)}


def is_refused_with_one_warning(reason):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kernel_cache.read(KEY) is None
        assert kernel_cache.read(KEY) is None
        assert not kernel_cache.write(KEY, b"other")
        assert not kernel_cache.write(OTHER, b"other")
        assert kernel_cache.read(OTHER) is None
        kernel_cache.trim()
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert reason in str(warning.message)
    assert "FAD_CACHE_DIR" in str(warning.message)


@POSIX
@pytest.mark.parametrize(("what", "where"), [(what, where) for what in UNSAFE for where in UNSAFE[what][1].split()])
def test_what_others_could_have_made_is_not_read_and_the_folder_not_used(folder, what, where):
    kernel_cache.write(KEY, b"code")
    UNSAFE[what][0](places(folder)[where])
    is_refused_with_one_warning(str(places(folder)[where]))
    assert not place(folder, OTHER).exists()


@ROOT
@pytest.mark.parametrize("where", ["folder", "inner", "entry"])
def test_what_belongs_to_another_user_is_not_read_and_the_folder_not_used(folder, where):
    kernel_cache.write(KEY, b"code")
    os.chown(places(folder)[where], 12345, 12345)
    is_refused_with_one_warning("belongs to another user (number 12345)")


@POSIX
def test_a_file_is_checked_after_it_was_opened(folder, monkeypatch):
    """Another puts his own in its place just before."""
    kernel_cache.write(KEY, b"code")
    opened = os.open

    def exchanged(path, *args, **kwargs):
        if os.path.basename(path) == KEY:
            os.chmod(path, 0o666)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", exchanged)
    is_refused_with_one_warning("others may write to")


@ROOT
def test_an_object_under_a_kernels_public_key_by_another_user_is_not_run(folder):
    assert run(first)[0] > 0
    (*_, entry), (*_, code) = names(folder)
    for path in (entry, code):
        os.chown(path, 12345, 12345)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        compiled, loaded = run(first)
    assert compiled > 0
    assert not loaded
    assert run(first)[1] == 0  # no second warning, which would be an error here


@POSIX
@pytest.mark.parametrize("where", ["entries", "objects"])
def test_a_program_does_not_wait_for_a_pipe(folder, where):
    run(first)
    for path in names(folder)[where == "objects"]:
        piped(path)
    with pytest.warns(RuntimeWarning, match="is no regular file"):
        assert run(first)[0] > 0


def test_where_users_have_no_numbers_the_cache_works(folder, monkeypatch):
    for name in ("getuid", "geteuid"):
        monkeypatch.delattr(os, name, raising=False)
    assert kernel_cache.write(KEY, b"code")
    assert kernel_cache.read(KEY) == b"code"
    kernel_cache.trim()
    assert kernel_cache.read(KEY) == b"code"


@POSIX
def test_the_report_says_why_kernels_are_not_kept(folder):
    assert kernel_cache.describe() == str(folder)
    kernel_cache.write(KEY, b"code")
    assert kernel_cache.describe() == str(folder)
    folder.chmod(0o777)
    assert "memory only (others may write to" in fad.doctor()


# --- entries that point elsewhere -------------------------------------------------------------------------------------


def keys_of(f, folder):
    """Compile a program; return the keys that are new on disk: of its functions, and of their object."""
    before = {p.name for p in folder.glob("??/*")}
    run(f)
    entries, objects = ([p.name for p in found if p.name not in before] for found in names(folder))
    assert entries
    assert objects
    return entries, objects


ELSEWHERE = {
    "another kernel's object": lambda mine, others: others[1][0],
    "another kernel's entry": lambda mine, others: others[0][0],
    "itself": lambda mine, others: mine[0][0],
    "nothing": lambda mine, others: OTHER,
    "no text": lambda mine, others: b"\xff\xfe",
    "a path": lambda mine, others: "../../" + OTHER,
    "an empty name": lambda mine, others: "",
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_an_entry_that_points_elsewhere_means_compiling_again(folder, what):
    mine, others = keys_of(first, folder), keys_of(second, folder)
    wrong = ELSEWHERE[what](mine, others)
    for key in mine[0]:
        assert kernel_cache.write(key, wrong if isinstance(wrong, bytes) else wrong.encode())
    compiled, _ = run(first)
    assert compiled == len(mine[0])
    assert run(first) == (0, len(mine[0]))  # and is right from then on


@pytest.mark.parametrize("what", [b"", b"garbage", b"\x7fELF" + bytes(300)])
def test_an_object_that_is_none_means_compiling_again(folder, what):
    entries, objects = keys_of(first, folder)
    for key in objects:
        assert kernel_cache.write(key, what)
    assert run(first)[0] == len(entries)


def test_files_that_were_cut_or_exchanged_mean_compiling_again(folder):
    keys_of(first, folder)
    keys_of(second, folder)
    paths = [*names(folder)[0], *names(folder)[1]]
    contents = [p.read_bytes() for p in paths]
    for shift in range(1, len(paths), 2):
        for p, data in zip(paths, contents[shift:] + contents[:shift], strict=True):
            p.write_bytes(data)
        assert run(first)[0] > 0
        assert run(second)[0] > 0
    for length in (0, 3, 40, 150, 1000):
        for p, data in zip(paths, contents, strict=True):
            p.write_bytes(data[: min(length, len(data) - 1)])
        assert run(first)[0] > 0
        assert run(second)[0] > 0


# --- its size ---------------------------------------------------------------------------------------------------------


def test_the_oldest_entries_are_removed_beyond_the_limit(folder):
    keys = [f"{n:02x}" * 32 for n in range(6)]
    for n, key in enumerate(keys):
        kernel_cache.write(key, b"x" * 64)  # 100 bytes in all
        os.utime(place(folder, key), (n, n))
    with config.use(kernel_cache_bytes=350):
        kernel_cache.trim()
    assert [kernel_cache.read(key) is not None for key in keys] == [False] * 3 + [True] * 3


def test_a_process_stays_near_the_limit_however_much_it_writes(folder):
    with config.use(kernel_cache_bytes=16000):
        for n in range(200):
            assert kernel_cache.write(f"{n:064x}", b"x" * 964)
            kernel_cache.trim()
    assert 16000 <= sum(p.stat().st_size for p in folder.glob("??/*")) + 1000 <= 18000


@pytest.fixture
def scans(monkeypatch):
    """Count how often the folder is measured."""
    found, measure = [], kernel_cache._entries
    monkeypatch.setattr(kernel_cache, "_entries", lambda where: (found.append(where), measure(where))[1])
    return found


def test_a_process_that_writes_little_does_not_measure_the_folder(folder, scans, monkeypatch):
    monkeypatch.setattr(kernel_cache, "_draw", lambda: 0.99)
    assert run(first)[0] + run(second)[0] > 0
    assert len(scans) == 0


def test_a_process_measures_the_folder_once_in_a_sixteenth_of_the_limit(folder, scans, monkeypatch):
    monkeypatch.setattr(kernel_cache, "_draw", lambda: 0.0)
    with config.use(kernel_cache_bytes=160_000):
        for n in range(100):
            assert kernel_cache.write(f"{n:064x}", b"x" * 964)  # 1000 bytes in all
            kernel_cache.trim()
    assert len(scans) == 10


def test_processes_that_write_little_stay_near_the_limit_together(folder, scans, monkeypatch):
    draws = np.random.default_rng(0).random(400).tolist()
    monkeypatch.setattr(kernel_cache, "_draw", draws.pop)
    largest = 0
    with config.use(kernel_cache_bytes=16_000):
        for n in range(400):
            kernel_cache._written.clear()  # as in another process
            assert kernel_cache.write(f"{n:064x}", b"x" * 64)  # 100 bytes in all
            kernel_cache.trim()
            largest = max(largest, sum(p.stat().st_size for p in folder.glob("??/*")))
    assert 20 <= len(scans) <= 60  # 40 sixteenths were written
    assert 16_000 <= largest <= 20_000


@POSIX
def test_without_a_home_no_folder_is_made(tmp_path):
    program = "import os; os.getuid = os.geteuid = lambda: 99999\n" + PROGRAM + "print(engine.kernel_cache.folder())"
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "FAD_CACHE_DIR", "XDG_CACHE_HOME")}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = subprocess.run([sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.split()[2:] == ["None"], run.stderr
    assert list(tmp_path.iterdir()) == []


def test_with_a_limit_of_zero_nothing_is_kept(folder):
    run(first)
    with config.use(kernel_cache_bytes=0):
        assert run(second)[0] > 0
    assert not [p for p in folder.rglob("*") if p.is_file()]


def test_what_is_no_entry_is_not_removed_but_what_killed_processes_left(folder):
    kernel_cache.write(KEY, b"code")
    kept = [folder / "ab" / "notes.txt", folder / "xy" / "1", folder / "README", folder / "ab" / "part-new"]
    left = folder / "ab" / "part-old"
    for path in (*kept, left):
        path.parent.mkdir(exist_ok=True)
        path.write_text("text")
    for path in (*kept[:3], left):
        os.utime(path, (0, 0))
    kernel_cache._written[folder] = config.kernel_cache_bytes.get()
    kernel_cache.trim()
    assert kernel_cache.read(KEY) == b"code"
    assert not left.exists()
    assert all(path.exists() for path in kept)


@pytest.mark.parametrize("wrong", [-1, 1.5, "1 MB", True, None])
def test_a_limit_is_a_number_of_bytes(wrong):
    before = config.default_dtype.get()
    with (
        pytest.raises(ValueError, match="kernel_cache_bytes must be an integer, 0 or more, not "),
        config.use(default_dtype="float32", kernel_cache_bytes=wrong),
    ):
        pass
    assert config.default_dtype.get() == before


WRITER = """
import random, sys
from fad import config
from fad.compile.runtime import kernel_cache as cache
r = random.Random(int(sys.argv[1]))
with config.use(kernel_cache_bytes=20_000):
    for _ in range(400):
        key = f"{r.randrange(40):02x}" * 32
        if r.random() < 0.5:
            cache.write(key, key.encode() * 20)
            cache.trim()
        assert cache.read(key) in (None, key.encode() * 20)
"""


def test_many_processes_write_read_and_trim_at_once(folder):
    command = [sys.executable, "-W", "error", "-c", WRITER]
    runs = [subprocess.Popen([*command, str(n)], env={**os.environ, "FAD_CACHE_DIR": str(folder)}) for n in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert not [*folder.rglob("part-*")]
    assert sum(p.stat().st_size for p in folder.glob("??/*")) <= 20_000 * (1 + 5 / 16)
