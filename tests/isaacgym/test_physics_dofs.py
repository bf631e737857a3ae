"""Joints and drives: F12-F19 of the API notes, the drive table of section 10, the pendulum."""

from __future__ import annotations

import math

import pytest
import torch
from scenes import GRAVITY, joint, link, slider, urdf

from isaacgym import gymapi

PGS, TGS = 0, 1
EFFORT, POS, VEL, NONE = gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_POS, gymapi.DOF_MODE_VEL, gymapi.DOF_MODE_NONE


def slider_world(world, path, **dofs):
    """A slider on a fixed base; keywords are its DOF properties. Returns the DOF state (1, 2)."""
    env = world.env()
    actor = world.actor(env, world.load(path, fix_base_link=True), (0.0, 0.0, 1.0))
    world.set_dofs(env, actor, **dofs)
    return world.prepare("dof")


@pytest.mark.parametrize("mode", ["DOF_MODE_EFFORT", "DOF_MODE_NONE"])
def test_F12_effort_slider_keeps_its_force(make_world, tmp_path, mode):
    world = make_world(substeps=1)
    dof = slider_world(world, slider(tmp_path), driveMode=getattr(gymapi, mode), stiffness=0.0, damping=0.0)
    world.write_dof("actuation_force", torch.tensor([6.0]))
    speeds = []
    for _ in range(3):
        world.step()
        speeds.append(dof[0, 1].item())
    assert speeds == pytest.approx([0.1, 0.2, 0.3], abs=1e-4)


@pytest.mark.parametrize(
    ("solver", "q1", "v1", "q10"), [(PGS, 0.011628, 0.697674, 0.334714), (TGS, 0.007960, 0.747020, 0.344590)]
)
def test_F13_position_drive_is_implicit(make_world, tmp_path, solver, q1, v1, q10):
    world = make_world(substeps=1, solver_type=solver)
    dof = slider_world(world, slider(tmp_path), driveMode=POS, stiffness=100.0, damping=10.0)
    world.write_dof("position_target", torch.tensor([0.5]))
    world.step()
    assert dof[0].tolist() == pytest.approx([q1, v1], abs=1e-3)
    world.step(9)
    assert dof[0, 0].item() == pytest.approx(q10, abs=1e-3)


def test_section10_velocity_drive(make_world, tmp_path):
    world = make_world(substeps=1, solver_type=PGS)
    dof = slider_world(world, slider(tmp_path), driveMode=VEL, stiffness=0.0, damping=10.0)
    world.write_dof("velocity_target", torch.tensor([1.0]))
    world.step()
    assert dof[0, 1].item() == pytest.approx(10 / 60 / (1 + 10 / 60), abs=1e-4)
    world.step(120)
    assert dof[0, 1].item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("mode", ["DOF_MODE_EFFORT", "DOF_MODE_NONE"])
def test_section10_gains_act_passively_without_a_drive(make_world, tmp_path, mode):
    world = make_world(substeps=1, solver_type=PGS)
    dof = slider_world(world, slider(tmp_path), driveMode=getattr(gymapi, mode), stiffness=100.0, damping=0.0)
    world.write_dof("position_target", torch.tensor([5.0]))  # no drive reads it
    world.write_dof("state", torch.tensor([[0.1, 0.0]]))
    world.step()
    expected = -100 * 0.1 / 60 / (1 + 100 / 3600)
    assert dof[0].tolist() == pytest.approx([0.1 + expected / 60, expected], abs=1e-4)


def test_section10_damping_of_the_file_acts_in_effort_mode(make_world, tmp_path):
    world = make_world(substeps=1, solver_type=PGS)
    dof = slider_world(world, slider(tmp_path, damping=3.0), driveMode=EFFORT)
    world.write_dof("state", torch.tensor([[0.0, 1.0]]))
    world.step()
    assert dof[0, 1].item() == pytest.approx(1 / (1 + 3 / 60), abs=1e-4)


def test_section10_actuation_is_ignored_by_a_position_drive(make_world, tmp_path):
    world = make_world(substeps=1)
    dof = slider_world(world, slider(tmp_path), driveMode=POS, stiffness=100.0, damping=10.0)
    world.write_dof("actuation_force", torch.tensor([6.0]))
    world.step(10)
    assert dof[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_section10_mode_changed_at_run_time(make_world, tmp_path):
    world = make_world(substeps=1, solver_type=PGS)
    dof = slider_world(world, slider(tmp_path), driveMode=EFFORT, stiffness=0.0, damping=0.0)
    world.write_dof("position_target", torch.tensor([0.5]))
    world.step()
    assert dof[0].tolist() == [0.0, 0.0]
    world.set_dofs(world.envs[0], 0, driveMode=POS, stiffness=100.0, damping=10.0)
    world.write_dof("position_target", torch.tensor([0.5]))
    world.step()
    assert dof[0].tolist() == pytest.approx([0.011628, 0.697674], abs=1e-3)


def test_F14_velocity_limit(make_world, tmp_path):
    world = make_world()
    dof = slider_world(world, slider(tmp_path), driveMode=EFFORT, stiffness=0.0, damping=0.0, velocity=0.5)
    world.write_dof("actuation_force", torch.tensor([6.0]))
    world.step(30)
    assert dof[0, 1].item() == pytest.approx(0.5, abs=1e-3)


def test_F15_armature_adds_to_the_mass(make_world, tmp_path):
    world = make_world(substeps=1)
    dof = slider_world(world, slider(tmp_path), driveMode=EFFORT, stiffness=0.0, damping=0.0, armature=1.0)
    world.write_dof("actuation_force", torch.tensor([6.0]))
    world.step()
    assert dof[0, 1].item() == pytest.approx(0.05, abs=1e-4)


def test_F16_effort_limit_clamps_the_drive(make_world, tmp_path):
    world = make_world(substeps=1)
    dof = slider_world(world, slider(tmp_path), driveMode=POS, stiffness=100.0, damping=0.0, effort=3.0)
    world.write_dof("position_target", torch.tensor([10.0]))
    world.step()
    assert dof[0, 1].item() == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_F17_joint_limit_is_a_hard_stop(make_world, tmp_path, kind, sign):
    world = make_world()
    parts = [link("base"), link("arm"), joint("j", kind, "base", "arm", lower=-0.3, upper=0.3)]
    dof = slider_world(world, urdf(tmp_path, "stop", *parts), driveMode=EFFORT, stiffness=0.0, damping=0.0)
    world.write_dof("actuation_force", torch.tensor([sign * 0.5]))
    world.step(120)
    for _ in range(30):
        world.step()
        assert dof[0, 0].item() == pytest.approx(sign * 0.3, abs=0.005)


def ball_joint_xml(axes) -> str:
    limits = 'range="-1.5 1.5" limited="true"'
    hinges = "".join(f'<joint name="h{i}" type="hinge" axis="{axis}" {limits}/>' for i, axis in enumerate(axes))
    return (
        '<mujoco><compiler angle="radian"/><worldbody><body name="base"><geom type="box" size=".05 .05 .05"/>'
        f'<body name="limb">{hinges}<geom type="sphere" size=".05"/></body></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize(
    ("axes", "q", "expected"),
    [
        (["1 0 0", "0 1 0", "0 0 1"], [0.3, 0.4, -0.5], [0.14689, 0.19586, -0.24482, 0.93815]),
        (["0 1 0", "0 0 1"], [0.4, -0.5], [0.0, 0.19660, -0.24575, 0.94919]),
        (["0 0 1", "0 1 0", "1 0 0"], [-0.5, 0.4, 0.3], [0.14689, 0.19586, -0.24482, 0.93815]),
        (["0 0 1", "0 1 0"], [-0.5, 0.4], [0.0, 0.19660, -0.24575, 0.94919]),
    ],
)
def test_F18_several_hinges_are_a_rotation_vector(make_world, tmp_path, axes, q, expected):
    (tmp_path / "ball.xml").write_text(ball_joint_xml(axes))
    world = make_world(gravity=(0.0, 0.0, 0.0))
    asset = world.load(tmp_path / "ball.xml")
    assert world.gym.get_asset_dof_names(asset) == [f"h{i}" for i in range(len(axes))]
    world.actor(world.env(), asset, (0.0, 0.0, 1.0))
    dof, body = world.prepare("dof", "body")
    assert tuple(body.shape) == (2, 13)
    world.write_dof("state", torch.tensor([[value, 0.0] for value in q]))
    world.step()
    assert dof[:, 0].tolist() == pytest.approx(q, abs=1e-4)
    rotation = body[1, 3:7] * body[1, 6].sign()
    assert rotation.tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["single body", "articulation"])
def test_F19_linear_velocity_is_that_of_the_centre_of_mass(make_world, tmp_path, kind):
    parts = [link("base", 4.0, 0.1, com=(0.5, 0.0, 0.0))]
    if kind == "articulation":
        parts += [link("tip", 1e-3, 1e-5), joint("j", "revolute", "base", "tip", axis=(0, 0, 1))]
    world = make_world(gravity=(0.0, 0.0, 0.0))
    world.actor(world.env(), world.load(urdf(tmp_path, "rock", *parts)), (0.0, 0.0, 1.0))
    root = world.prepare("root")
    root[0, 12] = 1.0
    world.write_root(root)
    world.step()
    assert root[0, 7:10].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)
    assert root[0, :2].tolist() == pytest.approx([0.0, -0.5 / 60], abs=1e-4)
    assert root[0, 12].item() == pytest.approx(1.0, abs=1e-4)


def test_pendulum_period_from_zero_crossings(make_world, tmp_path):
    length, inertia, mass, dt = 0.5, 0.01, 1.0, 1 / 120
    world = make_world(dt=dt)
    parts = [
        link("base"),
        link("bob", mass, inertia, com=(0.0, 0.0, -length)),
        joint("j", "revolute", "base", "bob", axis=(0, 1, 0)),
    ]
    dof = slider_world(world, urdf(tmp_path, "pendulum", *parts), driveMode=NONE, stiffness=0.0, damping=0.0)
    world.write_dof("state", torch.tensor([[0.05, 0.0]]))
    angles = []
    for _ in range(600):
        world.step()
        angles.append(dof[0, 0].item())
    pairs = enumerate(zip(angles[:-1], angles[1:], strict=True))
    crossings = [dt * (i + a / (a - b)) for i, (a, b) in pairs if a * b < 0]
    period = 2 * math.pi * math.sqrt((inertia + mass * length**2) / (mass * GRAVITY * length))
    assert len(crossings) == round(600 * dt / period * 2)
    assert 2 * (crossings[-1] - crossings[0]) / (len(crossings) - 1) == pytest.approx(period, rel=0.005)
    assert max(abs(angle) for angle in angles[-200:]) == pytest.approx(0.05, rel=0.02)
