"""Rules of the tree: which package may import which, and how long files and functions may be."""

import ast
import re
from pathlib import Path

from test_architecture import FILES, ROOT, imports

# What the modules of each package may import of the others when they are imported themselves.
_PROBLEM = {"base", "problem"}
_SOLVERS = _PROBLEM | {"partitions", "backends"}
_MODELS = _SOLVERS | {"data", "solvers"}
_REPORTS = _MODELS | {"models"}
_TOP = _REPORTS | {"reports", "family"}
LAYERS = {
    "base": set(),
    "problem": {"base"},
    "partitions": _PROBLEM,
    "backends": _PROBLEM | {"partitions"},
    "solvers": _SOLVERS,
    "family": _SOLVERS | {"solvers"},
    "data": _PROBLEM | {"partitions"},
    "models": _MODELS,
    "reports": _REPORTS,
    "estimators": _TOP,
    "experiments": _TOP,
    "cli": _TOP | {"estimators", "experiments"},
}
# Imports inside functions that go upwards, where no import at the top could: (file, package).
DEFERRED = {
    ("problem/null_model.py", "solvers"),  # unpenalised features are fitted by the default solver
    ("partitions/partition.py", "reports"),  # plot() and what notebooks show
    ("partitions/diagnose.py", "reports"),
    ("data/dataset.py", "reports"),
    ("solvers/solution.py", "reports"),
    ("solvers/solution_path.py", "reports"),
    ("models/model.py", "reports"),
}


def packages_imported(nodes):
    """Our packages that these statements import."""
    for node in nodes:
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for root, *parts in (name.split(".") for name in names):
            if root == "blockgreedy" and parts and parts[0] in LAYERS:
                yield parts[0]


def upward_imports(*, deferred):
    """(file, package) of imports at the top of files, or of those inside functions."""
    for name, path in FILES.items():
        package, slash, _ = name.partition("/")
        if not slash:  # the root's own modules may import anything
            continue
        assert package in LAYERS, f"{name}: give the new package its place in LAYERS"
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        nodes = [node for function in functions for node in ast.walk(function)] if deferred else tree.body
        yield from ((name, other) for other in set(packages_imported(nodes)) - LAYERS[package] - {package})


def test_imports_go_from_higher_layers_to_lower_ones():
    assert not set(upward_imports(deferred=False)), "these imports go upwards"


def test_only_the_named_functions_import_upwards():
    found = set(upward_imports(deferred=True))
    assert not found - DEFERRED, "these imports inside functions go upwards"
    assert not DEFERRED - found, "these are gone: take them off the list"


def test_base_imports_nothing_of_ours():
    for name in FILES:
        if name.startswith("base/"):
            ours = {module for module in imports(FILES[name]) if module.startswith("blockgreedy")}
            assert all(module.startswith("blockgreedy.base") for module in ours), name


LONGEST = {".py": 400, ".cpp": 450, ".hpp": 450}  # lines of a file
LONGEST_FUNCTION = 70  # lines of code, in Python; parameters documented at length do not count


def sources():
    folders = ("src", "cpp", "tests", "hunt", "benchmarks", "examples", "fuzz", "tools")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in LONGEST and "site-packages" not in path.parts:
                yield str(path.relative_to(ROOT)), path


def long_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[0] if ast.get_docstring(node) is not None else None
            comment = 0 if docstring is None else docstring.end_lineno - docstring.lineno + 1
            if node.end_lineno - node.lineno + 1 - comment > LONGEST_FUNCTION:
                yield node.name


def test_files_and_functions_are_short():
    texts = {name: path.read_text() for name, path in sources()}
    assert len(texts) > 200
    files = {name for name, text in texts.items() if text.count("\n") > LONGEST[Path(name).suffix]}
    functions = {
        f"{name}: {function}"
        for name, text in texts.items()
        if name.endswith(".py")
        for function in long_functions(text)
    }
    assert not files | functions, "divide these by what they are about"


def test_the_search_for_long_functions_finds_them():
    longest = "def f():\n" + "    pass\n" * (LONGEST_FUNCTION - 1)
    assert not list(long_functions(longest))
    assert list(long_functions(longest + "    pass\n")) == ["f"]
    assert not list(long_functions('def f():\n    """A\n    docstring."""\n' + "    pass\n" * (LONGEST_FUNCTION - 1)))


def test_nothing_is_left_unimplemented():
    """Abstract methods are marked as such, and what cannot work says why in an error of its own."""
    raising = re.compile(r"raise NotImplementedError")
    found = [str(path) for path in FILES.values() if raising.search(path.read_text(encoding="utf-8"))]
    assert found == []
