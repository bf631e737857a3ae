"""Names, look-up and the rules that tasks keep."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tasks import registry

REPO = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPO / "tasks").rglob("*.py"))

# Calls that exist in the Isaac Gym API and that tasks may therefore make.
GYM_CALLS = """
    acquire_actor_root_state_tensor acquire_dof_force_tensor acquire_dof_state_tensor acquire_force_sensor_tensor
    acquire_net_contact_force_tensor acquire_rigid_body_state_tensor add_ground add_triangle_mesh create_actor
    create_asset_force_sensor create_env create_sim create_viewer destroy_sim destroy_viewer draw_viewer
    enable_actor_dof_force_sensors
    fetch_results find_actor_handle find_actor_rigid_body_handle find_asset_rigid_body_index get_actor_count
    get_actor_dof_properties get_actor_name get_actor_rigid_body_properties get_actor_rigid_shape_properties
    get_actor_tendon_properties get_asset_actuator_joint_name get_asset_actuator_properties get_asset_dof_count
    get_asset_dof_names get_asset_dof_properties get_asset_rigid_body_count get_asset_rigid_body_names
    get_asset_rigid_shape_properties get_actor_rigid_body_count get_actor_rigid_shape_count get_env_count
    get_frame_count get_sim_params load_asset poll_viewer_events prepare_sim query_viewer_action_events
    query_viewer_has_closed refresh_actor_root_state_tensor refresh_dof_force_tensor refresh_dof_state_tensor
    refresh_force_sensor_tensor refresh_net_contact_force_tensor set_actor_dof_properties
    set_actor_rigid_body_properties set_actor_rigid_shape_properties set_actor_root_state_tensor
    set_actor_root_state_tensor_indexed set_actor_scale set_actor_tendon_properties
    set_asset_rigid_shape_properties set_dof_actuation_force_tensor set_dof_position_target_tensor
    set_dof_state_tensor set_dof_state_tensor_indexed set_rigid_body_color set_sim_params simulate step_graphics
    subscribe_viewer_keyboard_event sync_frame_time viewer_camera_look_at write_viewer_image_to_file"""


def test_names_are_sorted_and_every_task_can_be_found():
    assert {"Ant", "Cartpole"} <= set(registry.names())
    assert registry.names() == sorted(registry.names())
    for name in registry.names():
        assert registry.get(name).__name__ == name


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
    assert called <= set(GYM_CALLS.split())
