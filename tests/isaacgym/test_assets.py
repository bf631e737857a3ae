"""Questions about assets (API notes 9.4), asked of a robot with every kind of joint, actuator and tendon."""

from __future__ import annotations

import pytest
from scenes import World, joint, link, urdf

from isaacgym import gymapi

MJCF = """<mujoco model="finger"><compiler angle="radian"/><worldbody><body name="palm">
<inertial pos="0 0 0" mass="2" diaginertia=".1 .1 .1"/><geom size=".1"/>
<body name="proximal"><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/><geom size=".1"/><geom size=".05"/>
<joint name="knuckle" axis="0 1 0" range="0 1" limited="true"/>
<body name="distal"><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
<joint name="tip" axis="0 1 0" range="0 1" limited="true"/></body></body>
<body name="drawer"><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/><joint name="rail" type="slide"/></body>
</body></worldbody>
<tendon><fixed name="cord"><joint joint="knuckle" coef="1"/><joint joint="tip" coef="-1"/></fixed></tendon>
<actuator><position name="A1" joint="tip" kp="5" ctrlrange="0 1" ctrllimited="true" forcerange="-2 3"
forcelimited="true"/><motor name="A0" joint="rail" gear="15"/></actuator></mujoco>"""


@pytest.fixture
def finger(make_world, tmp_path):
    path = tmp_path / "finger.xml"
    path.write_text(MJCF)
    world: World = make_world()
    return world, world.load(path, fix_base_link=True)


def test_bodies_of_an_asset(finger):
    gym, asset = finger[0].gym, finger[1]
    names = ["palm", "proximal", "distal", "drawer"]
    assert gym.get_asset_rigid_body_count(asset) == 4
    assert gym.get_asset_rigid_body_names(asset) == names
    assert [gym.get_asset_rigid_body_name(asset, i) for i in range(4)] == names
    assert gym.get_asset_rigid_body_dict(asset) == {name: i for i, name in enumerate(names)}
    assert gym.find_asset_rigid_body_index(asset, "distal") == 2
    assert gym.find_asset_rigid_body_index(asset, "thumb") == -1
    assert gym.get_asset_rigid_shape_count(asset) == 3
    assert gym.get_asset_soft_body_count(asset) == 0


def test_shapes_of_each_body(finger):
    world, asset = finger
    env = world.env()
    actor = world.actor(env, asset)
    for ranges in (
        world.gym.get_asset_rigid_body_shape_indices(asset),
        world.gym.get_actor_rigid_body_shape_indices(env, actor),
    ):
        assert [(part.start, part.count) for part in ranges] == [(0, 1), (1, 2), (3, 0), (3, 0)]


def test_several_hinges_of_a_body_are_a_ball_joint(make_world, tmp_path):
    path = tmp_path / "ball.xml"
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>'
    hinges = '<joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/>'
    slide = f'<body name="c">{inertial}<joint name="z" type="slide"/></body>'
    tree = f'<body name="a">{inertial}<body name="b">{inertial}{hinges}</body>{slide}</body>'
    path.write_text(f"<mujoco><worldbody>{tree}</worldbody></mujoco>")
    world = make_world()
    gym, asset = world.gym, world.load(path)
    kinds = [gym.get_asset_joint_type(asset, i) for i in range(gym.get_asset_joint_count(asset))]
    assert kinds == [gymapi.JOINT_BALL, gymapi.JOINT_PRISMATIC]


def test_joints_and_dofs_of_an_asset(finger):
    gym, asset = finger[0].gym, finger[1]
    names = ["knuckle", "tip", "rail"]
    assert gym.get_asset_dof_count(asset) == gym.get_asset_joint_count(asset) == 3
    assert gym.get_asset_dof_names(asset) == names
    assert [gym.get_asset_dof_name(asset, i) for i in range(3)] == names
    assert gym.get_asset_dof_dict(asset) == {"knuckle": 0, "tip": 1, "rail": 2}
    assert gym.find_asset_dof_index(asset, "rail") == 2
    assert gym.find_asset_dof_index(asset, "A0") == -1
    kinds = [gym.get_asset_dof_type(asset, i) for i in range(3)]
    assert kinds == [gymapi.DOF_ROTATION, gymapi.DOF_ROTATION, gymapi.DOF_TRANSLATION]
    assert [gym.get_dof_type_string(kind) for kind in kinds] == ["Rotation", "Rotation", "Translation"]
    assert gym.get_dof_type_string(gymapi.DOF_INVALID) == "Invalid"


def test_actuators_of_an_asset_and_of_its_actors(finger):
    world, asset = finger
    gym = world.gym
    assert gym.get_asset_actuator_count(asset) == 2
    assert [gym.get_asset_actuator_joint_name(asset, i) for i in range(2)] == ["tip", "rail"]
    assert [gym.get_asset_actuator_name(asset, i) for i in range(2)] == ["A1", "A0"]
    position, motor = gym.get_asset_actuator_properties(asset)
    assert (position.kp, position.motor_effort) == (5, 0)
    assert (position.control_limited, position.lower_control_limit, position.upper_control_limit) == (True, 0, 1)
    assert (position.force_limited, position.lower_force_limit, position.upper_force_limit) == (True, -2, 3)
    assert (motor.motor_effort, motor.kp, motor.control_limited) == (15, 0, False)
    env = world.env()
    actor = world.actor(env, asset)
    assert gym.get_actor_actuator_count(env, actor) == 2
    assert [props.kp for props in gym.get_actor_actuator_properties(env, actor)] == [5, 0]
    # An asset edit does not reach into the list that was handed out.
    motor.motor_effort = 1.0
    assert gym.get_asset_actuator_properties(asset)[1].motor_effort == 15


def test_tendons_of_an_asset_and_of_its_actors(finger):
    world, asset = finger
    gym = world.gym
    assert gym.get_asset_tendon_count(asset) == 1
    assert gym.get_asset_tendon_name(asset, 0) == "cord"
    assert gym.find_asset_tendon_index(asset, "cord") == 0
    assert gym.find_asset_tendon_index(asset, "rope") == -1
    (cord,) = gym.get_asset_tendon_properties(asset)
    assert (cord.type, cord.num_joints) == (gymapi.TENDON_FIXED, 2)
    cord.stiffness = 7.0
    assert gym.set_asset_tendon_properties(asset, [cord])
    env = world.env()
    actor = world.actor(env, asset)
    assert gym.get_actor_tendon_count(env, actor) == 1
    assert gym.get_actor_tendon_properties(env, actor)[0].stiffness == 7.0
    assert gym.get_actor_soft_body_count(env, actor) == 0


def test_a_kept_fixed_joint_is_a_joint_without_a_dof(make_world, tmp_path):
    path = urdf(
        tmp_path, "arm", link("base"), link("hand"), link("tool"), joint("turn", "revolute", "base", "hand"),
        joint("weld", "fixed", "hand", "tool"),
    )  # fmt: skip
    world = make_world()
    asset = world.load(path, fix_base_link=True)
    gym, env = world.gym, world.env()
    actor = world.actor(env, asset)
    assert gym.get_asset_joint_count(asset) == gym.get_actor_joint_count(env, actor) == 2
    assert [gym.get_asset_joint_name(asset, i) for i in range(2)] == ["turn", "weld"]
    assert gym.get_actor_joint_names(env, actor) == ["turn", "weld"]
    assert gym.get_actor_joint_dict(env, actor) == {"turn": 0, "weld": 1}
    assert gym.get_asset_dof_count(asset) == gym.get_actor_dof_count(env, actor) == 1
    assert gym.get_asset_joint_names(asset) == ["turn", "weld"]
    assert gym.get_asset_joint_dict(asset) == {"turn": 0, "weld": 1}
    assert [gym.find_asset_joint_index(asset, name) for name in ("weld", "base")] == [1, -1]
    kinds = [gym.get_asset_joint_type(asset, i) for i in range(2)]
    assert kinds == [gymapi.JOINT_REVOLUTE, gymapi.JOINT_FIXED]
    assert [gym.get_joint_type_string(kind) for kind in kinds] == ["Revolute", "Fixed"]
    world.actor(world.env(), asset)
    assert gym.get_env_joint_count(env) == 2
    assert gym.get_sim_joint_count(world.sim) == 4


def test_summary_of_an_asset(finger, tmp_path, capsys):
    gym, asset = finger[0].gym, finger[1]
    gym.debug_print_asset(asset)
    printed = capsys.readouterr().out
    assert "finger" in printed.splitlines()[0]
    assert "4 bodies, 3 DOFs" in printed.splitlines()[0]
    assert "body 1 proximal: parent 0, mass 1 kg, 2 shapes, joints knuckle (revolute)" in printed
    gym.debug_print_asset(asset, str(tmp_path / "asset.txt"))
    assert (tmp_path / "asset.txt").read_text() == printed
    assert capsys.readouterr().out == ""
