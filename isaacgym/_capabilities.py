"""Which functions of Isaac Gym are supported: for ``--check`` and for the table in docs/isaacgym.md.

After a change: ``python -m isaacgym._capabilities docs/isaacgym.md`` writes the table anew.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from isaacgym import _gym_unsupported
from isaacgym.gymapi import Gym

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

TIERS: dict[str, frozenset[str]] = {
    "T1": frozenset(
        (
            "acquire_actor_root_state_tensor", "acquire_dof_force_tensor", "acquire_dof_state_tensor",
            "acquire_force_sensor_tensor", "acquire_net_contact_force_tensor", "acquire_rigid_body_state_tensor",
            "add_ground", "add_heightfield", "add_lines", "add_triangle_mesh", "apply_rigid_body_force_tensors",
            "attach_camera_to_body", "clear_lines", "create_actor", "create_asset_force_sensor", "create_box",
            "create_camera_sensor", "create_env", "create_sim", "create_viewer", "draw_viewer",
            "enable_actor_dof_force_sensors", "fetch_results", "find_actor_handle", "find_actor_rigid_body_handle",
            "find_asset_rigid_body_index", "get_actor_dof_properties", "get_actor_index",
            "get_actor_rigid_body_count", "get_actor_rigid_body_properties", "get_actor_rigid_shape_properties",
            "get_asset_dof_count", "get_asset_dof_names", "get_asset_dof_properties", "get_asset_rigid_body_count",
            "get_asset_rigid_body_names", "get_asset_rigid_shape_properties", "get_camera_image", "get_frame_count",
            "get_sim_dof_count", "get_sim_params", "get_viewer_camera_transform", "load_asset", "poll_viewer_events",
            "prepare_sim", "query_viewer_action_events", "query_viewer_has_closed", "refresh_actor_root_state_tensor",
            "refresh_dof_force_tensor", "refresh_dof_state_tensor", "refresh_force_sensor_tensor",
            "refresh_net_contact_force_tensor", "refresh_rigid_body_state_tensor", "render_all_camera_sensors",
            "set_actor_dof_properties", "set_actor_rigid_body_properties", "set_actor_rigid_shape_properties",
            "set_actor_root_state_tensor", "set_actor_root_state_tensor_indexed", "set_actor_scale",
            "set_asset_rigid_shape_properties", "set_camera_location", "set_dof_actuation_force_tensor",
            "set_dof_position_target_tensor", "set_dof_position_target_tensor_indexed",
            "set_dof_state_tensor_indexed", "set_rigid_body_color", "set_sim_params", "simulate",
            "start_access_image_tensors", "step_graphics", "subscribe_viewer_keyboard_event", "sync_frame_time",
            "viewer_camera_look_at", "write_viewer_image_to_file",
        )
    ),
    "T2": frozenset(
        (
            "acquire_jacobian_tensor", "acquire_mass_matrix_tensor", "apply_actor_dof_efforts",
            "apply_rigid_body_force_at_pos_tensors", "begin_aggregate", "create_rigid_body_attractor",
            "create_sphere", "create_texture_from_file", "create_usd_exporter", "debug_print_asset", "destroy_sim",
            "destroy_viewer", "draw_env_rigid_contacts", "end_access_image_tensors", "end_aggregate",
            "export_usd_sim", "find_actor_dof_handle", "find_actor_index", "find_actor_rigid_body_index",
            "find_asset_dof_index", "get_actor_actuator_count", "get_actor_count", "get_actor_dof_count",
            "get_actor_dof_dict", "get_actor_dof_handle", "get_actor_dof_names", "get_actor_dof_states",
            "get_actor_handle", "get_actor_joint_count", "get_actor_joint_dict", "get_actor_name",
            "get_actor_rigid_body_dict", "get_actor_rigid_body_handle", "get_actor_rigid_body_index",
            "get_actor_rigid_body_names", "get_actor_rigid_body_states", "get_actor_rigid_shape_count",
            "get_actor_root_rigid_body_handle", "get_actor_soft_body_count", "get_actor_tendon_count",
            "get_actor_tendon_properties", "get_asset_actuator_count", "get_asset_actuator_joint_name",
            "get_asset_actuator_properties", "get_asset_dof_dict", "get_asset_dof_type", "get_asset_joint_count",
            "get_asset_rigid_body_dict", "get_asset_rigid_body_name", "get_asset_rigid_shape_count",
            "get_asset_tendon_count", "get_asset_tendon_name", "get_asset_tendon_properties",
            "get_camera_image_gpu_tensor", "get_camera_proj_matrix", "get_camera_transform", "get_camera_view_matrix",
            "get_dof_frame", "get_dof_type_string", "get_elapsed_time", "get_env_count", "get_env_dof_count",
            "get_env_joint_count", "get_env_origin", "get_env_rigid_body_count", "get_env_rigid_contacts",
            "get_rigid_contacts", "get_rigid_transform", "get_sim_actor_count", "get_sim_force_sensor_count",
            "get_sim_joint_count", "get_sim_rigid_body_count", "get_sim_time", "get_viewer_camera_handle",
            "refresh_jacobian_tensors", "refresh_mass_matrix_tensors", "set_actor_dof_position_targets",
            "set_actor_dof_states", "set_actor_tendon_properties", "set_asset_tendon_properties",
            "set_camera_transform", "set_dof_actuation_force_tensor_indexed", "set_dof_state_tensor",
            "set_dof_velocity_target_tensor", "set_rigid_body_texture", "subscribe_viewer_mouse_event",
        )
    ),
}
"""Of 36 public projects, at least 30 % call the functions of T1 and at least 5 % those of T2; all others are T3."""

_SENSORS = "approximate, see Force sensors"
_NO_PICTURES = "no renderer: does nothing"
_SHAPES = "filters only before prepare_sim; torsion and rolling friction, compliance and thickness are only stored"
_TENDONS = "see Tendons"
_CONTACTS = "slow, for debugging; friction fields are 0"

NOTES: dict[str, str] = {
    "acquire_force_sensor_tensor": _SENSORS,
    "add_heightfield": "becomes a triangle mesh",
    "attach_camera_to_body": "the camera's matrices follow the body",
    "begin_aggregate": "a hint about sizes, without effect on collisions",
    "create_asset_force_sensor": _SENSORS,
    "create_camera_sensor": "has a pose and matrices, no pictures; warns once",
    "create_sim": "SIM_PHYSX only; raises for SIM_FLEX, which is the default of `type`",
    "create_texture_from_file": _NO_PICTURES,
    "create_viewer": "returns None: no renderer",
    "end_aggregate": "warns when the aggregate holds more than announced",
    "fetch_results": "nothing to do: simulate has waited already",
    "get_actor_tendon_properties": _TENDONS,
    "get_asset_tendon_properties": _TENDONS,
    "get_env_rigid_contacts": _CONTACTS,
    "get_rigid_contacts": _CONTACTS,
    "get_viewer_camera_transform": "the identity",
    "load_asset": "URDF and MJCF; raises AssetError where the original returns None",
    "load_urdf": "raises AssetError where the original returns None",
    "refresh_force_sensor_tensor": _SENSORS,
    "set_actor_dof_properties": "friction acts as a torque or force, see Approximations",
    "set_actor_rigid_shape_properties": _SHAPES,
    "set_actor_scale": "only before prepare_sim",
    "set_actor_tendon_properties": _TENDONS,
    "set_asset_rigid_shape_properties": "for actors created from then on",
    "set_asset_tendon_properties": "for actors created from then on; see Tendons",
    "set_sim_params": "after prepare_sim: gravity, dt and substeps; the rest is ignored with a warning",
    "write_viewer_image_to_file": "writes nothing and warns: no renderer",
}
"""What to know about supported functions."""


@dataclass(frozen=True)
class Capability:
    """What is known about one function."""

    name: str
    tier: str
    """T1, T2 or T3; empty for a name that Isaac Gym does not have."""
    supported: bool
    note: str


def capability(name: str) -> Capability:
    """Tell whether a function of the Gym object is supported; any name may be asked for."""
    tier = next((tier for tier, names in TIERS.items() if name in names), "T3")
    if hasattr(Gym, name):
        nothing = (getattr(Gym, name).__doc__ or "").startswith("Do nothing") and not NOTES.get(name)
        return Capability(name, tier, True, _NO_PICTURES if nothing else NOTES.get(name, ""))
    if name in _gym_unsupported.NAMES:
        return Capability(name, tier, False, _gym_unsupported.HINTS.get(name, ""))
    return Capability(name, "", False, "Isaac Gym has no such function")


def all_names() -> list[str]:
    """Return all functions of Isaac Gym, sorted."""
    ours = {name for name in dir(Gym) if not name.startswith("_")}
    return sorted(ours | _gym_unsupported.NAMES)


def table() -> str:
    """Return the table in Markdown: T1 first, within a tier by name."""
    rows = sorted((capability(name) for name in all_names()), key=lambda entry: (entry.tier, entry.name))
    counts = []
    for tier in ("T1", "T2", "T3"):
        own = [entry for entry in rows if entry.tier == tier]
        counts.append(f"{tier}: {sum(entry.supported for entry in own)} of {len(own)}")
    lines = [f"Supported: {', '.join(counts)}.", "", "| function | tier | supported | notes |", "|---|---|---|---|"]
    for entry in rows:
        lines.append(f"| `{entry.name}` | {entry.tier} | {'yes' if entry.supported else 'no'} | {entry.note} |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """Return ``text`` with what stands between the two marks replaced by the table."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_table(document.read_text(encoding="utf-8")), encoding="utf-8")
