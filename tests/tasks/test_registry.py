"""Names, look-up and the rules that tasks keep."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks import registry

REPO = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPO / "tasks").rglob("*.py"))

GYM_CALLS = json.loads((REPO / "tests" / "data" / "gym_methods.json").read_text())["methods"]


def test_names_are_sorted_and_every_task_can_be_found():
    assert {"Ant", "Cartpole"} <= set(registry.names())
    assert registry.names() == sorted(registry.names())
    for name in registry.names():
        assert name.startswith(registry.get(name).__name__)


def test_a_misspelt_name_gets_a_suggestion():
    message = r"^unknown task 'Antt'; did you mean Ant\? \(known: .*Ant.*\)$"
    with pytest.raises(registry.UnknownTaskError, match=message):
        registry.get("Antt")
    assert issubclass(registry.UnknownTaskError, KeyError)


def test_names_need_no_torch():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tasks.registry as r; r.names(); "
    code += "sys.exit('torch' in sys.modules or 'isaacgym' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(REPO)], check=False).returncode == 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(REPO)))
def test_tasks_parse_on_python_38_and_import_isaacgym_before_torch(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    assert isinstance(tree, ast.Module)
    first = {}
    for node in tree.body:
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names] if isinstance(node, ast.Import) else []
        ):  # fmt: skip
            first.setdefault(name.split(".")[0], node.lineno)
    assert not {"ppo", "hydra", "omegaconf"} & set(first)
    if "isaacgym" in first and "torch" in first:
        assert first["isaacgym"] < first["torch"]


def test_tasks_make_only_calls_that_isaac_gym_has():
    called = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name == "gym":
                    called.add(node.func.attr)
    assert called
    assert called <= set(GYM_CALLS)
