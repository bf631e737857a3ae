# ruff: noqa: I001, N801, D106
"""Settings as nested classes; scripts derive from them and change what differs."""

import inspect


class RobotCfg:
    class env:
        num_envs = 4
        spacing = 3.0
        episode_length_s = 20

    class terrain:
        mesh_type = "plane"  # plane, heightfield
        static_friction = 1.0
        dynamic_friction = 1.0
        restitution = 0.0

    class init_state:
        pos = [0.0, 0.0, 1.0]
        rot = [0.0, 0.0, 0.0, 1.0]
        lin_vel = [0.0, 0.0, 0.0]
        ang_vel = [0.0, 0.0, 0.0]
        default_joint_angles = {}

    class control:
        stiffness = {}  # part of a joint's name: N m/rad
        damping = {}
        action_scale = 0.25
        decimation = 4

    class asset:
        folder = ""
        file = ""
        name = "robot"
        fix_base_link = False
        self_collisions = 0  # bit-wise filter: 0 lets the robot's own bodies collide
        default_dof_drive_mode = 3  # effort

    class sim:
        dt = 0.005
        substeps = 1
        gravity = [0.0, 0.0, -9.81]
        up_axis = 1  # z

        class physx:
            num_threads = 10
            solver_type = 1
            num_position_iterations = 4
            num_velocity_iterations = 0
            contact_offset = 0.01
            rest_offset = 0.0
            bounce_threshold_velocity = 0.5
            max_depenetration_velocity = 1.0
            max_gpu_contact_pairs = 2**23
            default_buffer_size_multiplier = 5
            contact_collection = 2


class AnymalCfg(RobotCfg):
    class init_state(RobotCfg.init_state):
        pos = [0.0, 0.0, 0.6]
        default_joint_angles = {
            "LF_HAA": 0.03, "LH_HAA": 0.03, "RF_HAA": -0.03, "RH_HAA": -0.03,
            "LF_HFE": 0.4, "LH_HFE": -0.4, "RF_HFE": 0.4, "RH_HFE": -0.4,
            "LF_KFE": -0.8, "LH_KFE": 0.8, "RF_KFE": -0.8, "RH_KFE": 0.8,
        }  # fmt: skip

    class control(RobotCfg.control):
        stiffness = {"HAA": 80.0, "HFE": 80.0, "KFE": 80.0}
        damping = {"HAA": 2.0, "HFE": 2.0, "KFE": 2.0}

    class asset(RobotCfg.asset):
        file = "anymal_c/anymal_minimal.urdf"
        name = "anymal_c"


def class_to_dict(obj):
    if not hasattr(obj, "__dict__"):
        return obj
    result = {}
    for key in dir(obj):
        if key.startswith("_"):
            continue
        value = getattr(obj, key)
        result[key] = class_to_dict(value) if inspect.isclass(value) else value
    return result
