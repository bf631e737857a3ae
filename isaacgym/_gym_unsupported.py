"""Names of Gym methods that are not supported: calling one raises NotImplementedError with its name (API notes 16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

DEFAULT_HINT = "see docs/isaacgym.md for what is supported"

HINTS: dict[str, str] = {
    "apply_body_force_at_pos": "use apply_rigid_body_force_at_pos_tensors",
    "apply_body_forces": "use apply_rigid_body_force_tensors",
    "apply_dof_effort": "use apply_actor_dof_efforts or set_dof_actuation_force_tensor",
    "create_cloth_grid": "soft bodies are not supported",
    "create_force_sensor": "use create_asset_force_sensor",
    "create_rigid_body_attractor": "apply a spring force with apply_rigid_body_force_at_pos_tensors",
    "create_tet_grid": "soft bodies are not supported",
    "create_usd_exporter": "USD export is not supported",
    "export_usd_asset": "USD export is not supported",
    "export_usd_sim": "USD export is not supported",
    "get_actor_dof_forces": "use acquire_dof_force_tensor",
    "get_camera_image": "gymscale has no renderer",
    "get_camera_image_gpu_tensor": "gymscale has no renderer",
    "get_camera_proj_matrix": "gymscale has no renderer",
    "get_camera_view_matrix": "gymscale has no renderer",
    "get_env_rigid_contact_forces": "use acquire_net_contact_force_tensor",
    "get_env_rigid_contacts": "use acquire_net_contact_force_tensor",
    "get_rigid_contact_forces": "use acquire_net_contact_force_tensor",
    "get_rigid_contacts": "use acquire_net_contact_force_tensor",
    "load_mjcf": "use load_asset",
    "load_opensim": "load a URDF or MJCF file with load_asset",
    "load_usd": "load a URDF or MJCF file with load_asset",
    "set_actor_rigid_body_states": "use set_actor_root_state_tensor_indexed and set_dof_state_tensor_indexed",
    "set_attractor_target": "apply a spring force with apply_rigid_body_force_at_pos_tensors",
    "set_rigid_body_state_tensor": "body states are read-only under PhysX; use set_actor_root_state_tensor_indexed and set_dof_state_tensor_indexed",
    "set_rigid_transform": "use set_actor_root_state_tensor_indexed",
    "write_camera_image_to_file": "gymscale has no renderer",
}
"""What to do instead, where there is something."""

NAMES: frozenset[str] = frozenset(
    """
    acquire_particle_state_tensor
    acquire_pneumatic_pressure_tensor acquire_pneumatic_target_tensor apply_body_force_at_pos apply_body_forces
    apply_dof_effort attach_sim create_aggregate create_cloth_grid create_force_sensor create_performance_timers
    create_rigid_body_attractor create_tet_grid create_texture_from_buffer create_usd_exporter destroy_env
    destroy_performance_timers destroy_usd_exporter draw_env_soft_contacts export_usd_asset export_usd_sim
    find_actor_actuator_index find_actor_fixed_tendon_joint_index find_actor_joint_handle find_actor_joint_index
    find_actor_tendon_index find_asset_actuator_index find_asset_joint_index free_texture
    get_actor_actuator_joint_name get_actor_actuator_name get_actor_dof_forces get_actor_dof_frames
    get_actor_dof_position_targets get_actor_dof_velocity_targets get_actor_fixed_tendon_joint_coefficients
    get_actor_fixed_tendon_joint_name get_actor_force_sensor get_actor_joint_handle get_actor_joint_index
    get_actor_joint_transforms get_actor_rigid_body_shape_indices get_actor_soft_materials get_actor_tendon_name
    get_actor_tendon_offset get_actor_tetrahedra_range get_actor_triangle_range
    get_asset_fixed_tendon_joint_coefficients get_asset_fixed_tendon_joint_name get_asset_joint_dict
    get_asset_joint_names get_asset_joint_type get_asset_rigid_body_shape_indices get_asset_soft_materials
    get_attractor_properties get_camera_image get_camera_image_gpu_tensor get_camera_proj_matrix
    get_camera_view_matrix get_dof_position get_dof_target_position get_dof_target_velocity get_dof_velocity
    get_env get_env_rigid_body_states get_env_rigid_contact_forces get_env_rigid_contacts get_joint_handle
    get_joint_name get_joint_position get_joint_target_position get_joint_target_velocity get_joint_transform
    get_joint_type_string get_joint_velocity get_performance_timers get_pneumatic_pressure get_pneumatic_target
    get_rigid_angular_velocity get_rigid_body_color get_rigid_body_segmentation_id get_rigid_body_texture
    get_rigid_contact_forces get_rigid_contacts get_rigid_handle get_rigid_linear_velocity get_rigid_name
    get_sensor get_sim_rigid_body_states get_sim_tetrahedra get_sim_tetrahedra_count get_sim_triangle_count
    get_sim_triangles get_soft_contacts get_usd_export_root get_vec_actor_dof_states
    get_vec_env_rigid_contact_forces get_vec_rigid_angular_velocity get_vec_rigid_linear_velocity
    get_vec_rigid_transform get_version get_viewer_mouse_position get_viewer_size load_mjcf load_opensim
    load_sim load_usd omni_connect omni_disconnect 
    refresh_particle_state_tensor refresh_pneumatic_pressure_tensor refresh_pneumatic_target_tensor
    reset_actor_particles_to_rest set_actor_fixed_tendon_joint_coefficients set_actor_rigid_body_states
    set_actor_soft_materials set_actor_tendon_offset set_asset_fixed_tendon_joint_coefficients
    set_attractor_properties set_attractor_target set_dof_target_position set_dof_target_velocity
    set_env_rigid_body_states set_joint_target_position set_joint_target_velocity set_particle_state_tensor
    set_particle_state_tensor_indexed set_pneumatic_pressure set_pneumatic_pressure_tensor
    set_pneumatic_pressure_tensor_indexed set_pneumatic_target set_pneumatic_target_tensor
    set_pneumatic_target_tensor_indexed set_rigid_angular_velocity set_rigid_body_state_tensor
    set_rigid_linear_velocity set_rigid_transform set_sim_device set_sim_rigid_body_states set_usd_export_root
    write_camera_image_to_file
    """.split()
)


def refuse(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises NotImplementedError naming ``Gym.<name>``."""

    def unsupported(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"gymapi.Gym.{name} is not supported: {HINTS.get(name, DEFAULT_HINT)}")

    unsupported.__name__ = name
    return unsupported
