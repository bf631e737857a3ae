"""``python -m isaacgym --check``: which Isaac Gym functions a project uses, read from its syntax trees."""

from __future__ import annotations

import ast
import importlib
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isaacgym._capabilities import Capability, capability

MODULES = ("gymapi", "gymtorch", "gymutil", "torch_utils", "terrain_utils")
GYM_NAMES = ("gym", "_gym")
"""What variables and attributes that hold the Gym object are usually called."""
SKIPPED_FOLDERS = {"site-packages", "node_modules", "__pycache__", "build", "dist", "venv", "env"}
SHOWN_PLACES = 3


@dataclass
class Findings:
    """What was found, each with its places ``file:line``."""

    functions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Functions of the Gym object."""
    absent: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Names of the isaacgym modules, and modules, that do not exist here."""
    unreadable: list[str] = field(default_factory=list)
    """Files that are not Python 3."""
    files: int = 0
    """Files that use isaacgym."""


class _File(ast.NodeVisitor):
    """Reads one file. Assignments of ``acquire_gym()`` tell under which names it holds the Gym object."""

    def __init__(self, tree: ast.Module, place: str, attributes: set[str], findings: Findings) -> None:
        self.place = place
        self.findings = findings
        self.modules = dict(_module_aliases(tree))
        self.attributes = attributes | set(GYM_NAMES)
        self.variables = {target.id for target in _gym_targets(tree) if isinstance(target, ast.Name)}
        self.variables |= set(GYM_NAMES) - ({"gym"} if _imports_other_gym(tree) else set())
        self.visit(tree)

    def _at(self, node: ast.AST) -> str:
        return f"{self.place}:{getattr(node, 'lineno', 0)}"

    def _is_gym(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return _called(node) == "acquire_gym"
        if isinstance(node, ast.Attribute):
            return node.attr in self.attributes
        return isinstance(node, ast.Name) and node.id in self.variables

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802 - the name that ast calls
        """Check names taken from isaacgym and its modules."""
        if node.level == 0 and node.module is not None:
            package, _, module = node.module.partition(".")
            if package == "isaacgym":
                names = [alias.name for alias in node.names if alias.name != "*"]
                for name in names if module else ():
                    self._expect(f"{module}.{name}", node)
                for name in () if module else names:
                    self._expect(name, node)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802 - the name that ast calls
        """Check ``import isaacgym.x``."""
        for alias in node.names:
            package, _, module = alias.name.partition(".")
            if package == "isaacgym" and module:
                self._expect(module, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802 - the name that ast calls
        """Record ``gym.function`` and check ``gymapi.NAME``."""
        chain = _dotted(node)
        if chain is not None and chain[0] in self.modules:
            self._expect(".".join([self.modules[chain[0]], *chain[1:]]), node)
        elif self._is_gym(node.value):
            self._use(node.attr, node)
        if chain is None:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802 - the name that ast calls
        """Record ``getattr(gym, "function")``."""
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if self._is_gym(node.args[0]) and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._use(name.value, node)
        self.generic_visit(node)

    def _use(self, name: str, node: ast.AST) -> None:
        if not name.startswith("__"):
            self.findings.functions[name].append(self._at(node))

    def _expect(self, dotted: str, node: ast.AST) -> None:
        """Record ``module.name...`` (of isaacgym) unless it exists; only classes are looked into further."""
        module, *names = dotted.split(".")
        if module not in MODULES:
            self.findings.absent[f"isaacgym.{module}"].append(self._at(node))
            return
        found: object = importlib.import_module(f"isaacgym.{module}")
        for depth, name in enumerate(names, 1):
            if depth > 1 and not isinstance(found, type):
                return
            if not hasattr(found, name):
                self.findings.absent[".".join([module, *names[:depth]])].append(self._at(node))
                return
            found = getattr(found, name)


def _called(node: ast.Call) -> str:
    """Last part of the name of the called function."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _dotted(node: ast.expr) -> list[str] | None:
    """``a.b.c`` as a list of names, None for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else None


def _module_aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (name in the file, module of isaacgym)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "isaacgym":
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname and alias.name.startswith("isaacgym."):
                    yield alias.asname, alias.name.partition(".")[2]


def _imports_other_gym(tree: ast.Module) -> bool:
    """Whether ``gym`` is OpenAI's gym or gymnasium in this file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) == "gym":
                    return True
        elif isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == "gym" for alias in node.names):
            return True
    return False


def _gym_targets(tree: ast.Module) -> Iterator[ast.Attribute | ast.Name]:
    """Yield the variables and attributes that ``acquire_gym()`` is assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) == "acquire_gym":
            for target in node.targets:
                if isinstance(target, (ast.Attribute, ast.Name)):
                    yield target


def read(path: Path) -> Findings:
    """Read a script, or all Python files below a folder."""
    findings = Findings()
    root = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    trees: list[tuple[str, ast.Module]] = []
    for file in files:
        inside = file.relative_to(root)
        if any(part in SKIPPED_FOLDERS or part.startswith(".") for part in inside.parts[:-1]):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trees.append((str(inside), ast.parse(file.read_bytes(), str(file))))
        except (SyntaxError, ValueError) as error:
            findings.unreadable.append(f"{inside}:{getattr(error, 'lineno', None) or 0}: {error.args[0]}")
    attributes = {
        target.attr for _, tree in trees for target in _gym_targets(tree) if isinstance(target, ast.Attribute)
    }
    for place, tree in trees:
        before = _size(findings)
        uses = _File(tree, place, attributes, findings).modules
        findings.files += bool(uses) or _size(findings) > before
    return findings


def _size(findings: Findings) -> int:
    return sum(map(len, findings.functions.values())) + sum(map(len, findings.absent.values()))


def report(path: Path) -> int:
    """Print what was found in ``path``; return 0 if everything is supported, 1 if not."""
    findings = read(path)
    rows = [(capability(name), places) for name, places in findings.functions.items()]
    order = {True: 0, False: 1}
    for entry, places in sorted(rows, key=lambda row: (order[row[0].supported], row[0].name)):
        print(_line(entry, places))
    for name, places in sorted(findings.absent.items()):
        print(f"{name:<44} --  does not exist    {', '.join(places)}")
    for problem in findings.unreadable:
        print(f"cannot be read: {problem}")
    refused = [entry.name for entry, _ in rows if not entry.supported]
    print(
        f"files that use isaacgym: {findings.files}; functions: {len(rows)}, supported {len(rows) - len(refused)}, "
        f"not supported {len(refused)}; names that do not exist: {len(findings.absent)}"
    )
    return 1 if refused or findings.absent or findings.unreadable else 0


def _line(entry: Capability, places: list[str]) -> str:
    """One line of the list: all places of what is not supported, the first few of what is."""
    shown = places if not entry.supported else places[:SHOWN_PLACES]
    more = f" and {len(places) - len(shown)} more" if len(shown) < len(places) else ""
    verdict = "supported" if entry.supported else "NOT SUPPORTED"
    note = f" ({entry.note})" if entry.note else ""
    return f"{entry.name:<44} {entry.tier or '--':<3} {verdict}{note}    {', '.join(shown)}{more}"
