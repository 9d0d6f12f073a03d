"""Rules of the tree: who imports whom, how long files and functions may be, who writes files."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import blockgreedy
import blockgreedy.base.names

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "blockgreedy"
MAY_IMPORT_CORE = {
    "backends/cpu.py",
    "backends/tiles/local.py",
    "problem/core_problem.py",
    "problem/passes.py",
    "partitions/partition.py",
    "partitions/theory.py",
    "data/generate.py",
    "data/svmlight.py",
    "data/encode.py",
}
EXTRAS = {"matplotlib", "plotly", "cupy", "dask", "mpi4py", "sklearn", "typer", "rich", "pandas"}
EXTRAS |= {"pyarrow", "pooch", "zstandard"}


def imports(path):
    """Names imported at module level (imports inside functions and for type checkers do not count)."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}


def test_only_the_named_files_import_the_core():
    assert {name for name, path in FILES.items() if "blockgreedy._core" in imports(path)} == MAY_IMPORT_CORE


def test_trace_imports_nothing_of_ours_but_how_files_are_written():
    ours = [name for name in imports(FILES["solvers/trace.py"]) if name.startswith("blockgreedy")]
    assert not [name for name in ours if not name.startswith("blockgreedy.base.files")]
    assert not [name for name in imports(FILES["base/files.py"]) if name.startswith("blockgreedy")]


LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"}


def shared_locks(path):
    """Lines that make a lock when the module or a class is made; one inside a function belongs to its caller."""
    waiting = list(ast.parse(path.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOCKS:
            yield node.lineno
        waiting += ast.iter_child_nodes(node)


@pytest.mark.parametrize("name", FILES)
def test_locks_that_all_threads_share_are_free_in_a_forked_child(name):
    assert list(shared_locks(FILES[name])) == [], "make it by base.forks.ModuleLock"
    of_functools = {"functools.cached_property", "functools.singledispatchmethod"}
    assert not imports(FILES[name]) & of_functools, "take base.cached.cached_property, which has no lock"


def test_the_search_for_locks_finds_them(tmp_path):
    lines = ["A = threading.Lock()", "class B:", "    c = RLock()", "if A:", "    D = [Condition()]"]
    lines += ["def f():", "    return threading.Lock()"]
    (tmp_path / "a.py").write_text("\n".join(lines))
    assert sorted(shared_locks(tmp_path / "a.py")) == [1, 3, 5]


def test_the_core_makes_nothing_at_the_first_call_which_would_have_a_lock():
    first_call = re.compile(
        r"^\s+static (?!constexpr|constinit)(?:const |thread_local )*[\w:<>*& ]+(?:=|\{|;)", re.MULTILINE
    )
    for file in [*(ROOT / "cpp").rglob("*.cpp"), *(ROOT / "cpp").rglob("*.hpp")]:
        if file.parent.name != "tests":
            found = first_call.search(file.read_text())
            assert found is None, f"{file.name}: {found.group().strip()}"


PLAIN_REPORTS = ("reports/page.py", "reports/page_style", "reports/figures")


@pytest.mark.parametrize("name", [n for n in FILES if n.startswith(PLAIN_REPORTS)])
def test_report_knows_only_traces_and_plain_data(name):
    ours = {module for module in imports(FILES[name]) if module.startswith("blockgreedy")}
    allowed = (
        "blockgreedy.solvers.trace",
        "blockgreedy.reports.page",
        "blockgreedy.reports.figures",
        "blockgreedy.base.files",
        "blockgreedy.base.cached",
    )
    assert not [module for module in ours if not module.startswith(allowed)]


@pytest.mark.parametrize("name", [n for n in FILES if not n.startswith(("estimators/", "cli/"))])
def test_extras_are_imported_where_they_are_needed(name):
    assert not {module.split(".")[0] for module in imports(FILES[name])} & EXTRAS


WRITERS = {"write_text", "write_bytes", "tofile", "savetxt", "mkstemp", "NamedTemporaryFile", "TemporaryFile"}
WRITERS |= {"copyfile", "copy2", "rename", "touch", "symlink_to", "hardlink_to", "memmap"}
OPENERS = {"open", "fdopen", "FileIO", "GzipFile", "BZ2File", "LZMAFile", "ZipFile"}


def writes(path):
    """Lines that open a file to write to it. Whoever calls np.savez or savefig gives them a file of ``files``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        owner = getattr(getattr(node.func, "value", None), "id", "")
        words = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        modes = [w for w in words if isinstance(w, str) and set(w) <= set("rwxabt+") and set(w) & set("wxa+")]
        # an archive's member and a file that `files` opened are no new files
        is_open = owner == "archive" or (node.args and getattr(node.args[0], "id", "") == "file")
        system = owner == "os" and name in {"open", "replace"} and "os.devnull" not in ast.unparse(node)
        copies = owner == "shutil" and name in {"copy", "move"}
        if name in WRITERS or (name in OPENERS and modes and not is_open) or system or copies:
            yield node.lineno


@pytest.mark.parametrize(
    ("enumeration", "names"),
    [
        ("LossKind", blockgreedy.base.names.LOSS_NAMES),
        ("UpdateRule", blockgreedy.base.names.UPDATES),
        ("GreedyRule", blockgreedy.base.names.GREEDY_RULES),
        ("ScanMode", blockgreedy.base.names.SCAN_MODES),
    ],
)
def test_the_core_numbers_names_as_python_lists_them(enumeration, names):
    declared = re.compile(rf"enum class {enumeration}\b[^{{]*\{{([^}}]*)\}}")
    found = [found[1] for file in (ROOT / "cpp").rglob("*.hpp") if (found := declared.search(file.read_text()))]
    assert [name.strip().replace("_", "-") for name in found[0].split(",")] == [
        name.replace("_", "-") for name in names
    ]


def test_every_name_of_an_option_has_what_it_stands_for():
    from blockgreedy.partitions.partition import KINDS
    from blockgreedy.problem.losses import LOSSES
    from blockgreedy.solvers.options import PRESETS

    names = blockgreedy.base.names
    assert tuple(LOSSES) == names.LOSS_NAMES
    assert [loss().code for loss in LOSSES.values()] == list(range(len(LOSSES)))
    assert tuple(PRESETS) == names.FAMILY_METHODS
    assert tuple(KINDS) == names.PARTITION_KINDS


def test_solvers_ask_what_a_loss_can_do_never_which_it_is():
    named = re.compile(r"loss\.name\s*(==|!=|in\b|not in\b)|LossKind::")
    own = {"losses.py", "losses.hpp", "bindings.cpp"}
    core = ROOT / "cpp"
    sources = [*SOURCE.rglob("*.py"), *core.rglob("*.cpp"), *core.rglob("*.hpp")]
    for file in [path for path in sources if path.parent.name != "tests"]:
        if file.name not in own:
            found = named.search(file.read_text())
            assert found is None, f"{file.name}: {found.group()} compares a loss by name: ask a trait of losses.py"


@pytest.mark.parametrize("name", [n for n in FILES if n != "base/files.py"])
def test_only_files_py_opens_files_for_writing(name):
    assert list(writes(FILES[name])) == [], "write through base.files.replacing, so that no file is ever torn"


def test_the_search_for_writers_finds_them(tmp_path):
    lines = ["open(p, 'w')", "p.open(mode='ab')", "p.write_text('')", "np.savetxt(p, y)", "gzip.open(p, 'wb')"]
    lines += ["zipfile.ZipFile(p, 'a')", "os.open(p, os.O_WRONLY)", "shutil.copy(p, q)", "tempfile.mkstemp()"]
    (tmp_path / "a.py").write_text("\n".join(["open(p)", "p.open('rb')", "X.copy()", *lines]))
    assert list(writes(tmp_path / "a.py")) == list(range(4, 4 + len(lines)))


def test_files_that_the_code_names_are_there():
    named = re.compile(r"(?<![\w/.])(?:cpp|docs|tests|tools)/[\w/]+\.(?:hpp|cpp|py|md|sh)\b")
    sources = [*SOURCE.rglob("*.py"), *(ROOT / "cpp").rglob("*.hpp"), *(ROOT / "cpp").rglob("*.cpp")]
    found = {(name, path.name) for path in sources for name in named.findall(path.read_text())}
    assert ("cpp/base/random.hpp", "random.py") in found
    there = (ROOT, ROOT / "cpp")  # where includes are looked for
    assert not {(name, where) for name, where in found if not any((root / name).exists() for root in there)}


def test_code_speaks_of_no_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    for name in tracked.stdout.split():
        path = ROOT / name
        if (
            path.suffix in {".py", ".md", ".hpp", ".cpp", ".toml", ".txt", ""}
            and path.is_file()
            and path != Path(__file__)
        ):
            text = path.read_text(errors="ignore")
            assert "/ro" + "ot/" not in text, name


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_gives_the_same_solution(isa):
    code = (
        "import numpy as np, blockgreedy as bg; from blockgreedy import _core; "
        "d = bg.data.text_like(500, 800, 30.0, seed=1); "
        "s = bg.solve(bg.Problem(d.X, d.y, loss='logistic', alpha=1e-3), tol=1e-9, max_iter=5000); "
        "print(_core.isa(), repr(s.objective), s.nonzeros)"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **extra},
        ).stdout.split()
        for extra in ({"BLOCKGREEDY_ISA": isa}, {})
    ]
    best = outputs[1][0]  # what this processor offers
    order = ["baseline", "avx2", "avx512"]
    assert outputs[0][0] == min(isa, best, key=order.index)
    assert outputs[0][2] == outputs[1][2]
    assert float(outputs[0][1]) == pytest.approx(float(outputs[1][1]), rel=1e-9)
