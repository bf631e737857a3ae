"""MJCF reader: contact masks, actuators and tendons (E6, B16, B17)."""

from functools import partial

import numpy as np
import pytest
from asset_text import GEOM, load_mjcf, on_base

from isaacgym.engine import filters

POSITION, VELOCITY = 1, 2


@pytest.fixture
def load(tmp_path):
    """A loader of MJCF text written to tmp_path."""
    return partial(load_mjcf, tmp_path)


# ---- contact masks


def touching(robot):
    """Names of the pairs of shapes whose filters let them touch."""
    shapes = [shape for body in robot.bodies for shape in body.shapes]
    return {(a.name, b.name) for i, a in enumerate(shapes) for b in shapes[i + 1 :] if not a.filter & b.filter}


def star(*geoms):
    """A base with one arm for each geom, so that no two of them are neighbours."""
    arms = "".join(
        f'<body name="arm{i}"><joint/><geom name="g{i}" size="0.1" {g}/></body>' for i, g in enumerate(geoms)
    )
    return f'<body name="base"><geom name="hub" size="0.1" contype="0" conaffinity="0"/>{arms}</body>'


def test_equal_masks_need_no_filter_bits(load):
    robot = load(star("", "", ""))
    assert all(shape.filter == 0 for body in robot.bodies for shape in body.shapes)


def test_masks_become_filter_bits(load):
    robot = load(star('contype="1" conaffinity="2"', 'contype="2" conaffinity="1"', 'contype="1" conaffinity="2"'))
    assert touching(robot) == {("g0", "g1"), ("g1", "g2")}


def test_pairs_let_touch_what_the_masks_forbid(load):
    off = 'contype="0" conaffinity="4"'
    rest = '<contact><pair geom1="g0" geom2="g2"/></contact>'
    robot = load(star(off, off, off), rest)
    assert touching(robot) == {("g0", "g2")}


def test_excludes_are_body_pairs(load):
    rest = '<contact><exclude body1="arm2" body2="arm0"/><exclude body1="base" body2="arm0"/></contact>'
    robot = load(star("", "", ""), rest)
    assert robot.no_collide == [(1, 3)]


@pytest.mark.parametrize("seed", range(5))
def test_bits_keep_apart_exactly_the_forbidden_pairs(seed):
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(12) for b in range(a + 1, 12)]
    kinds = rng.integers(0, 3, len(pairs))
    forbidden = {pair for pair, kind in zip(pairs, kinds, strict=True) if kind == 0}
    free = {pair for pair, kind in zip(pairs, kinds, strict=True) if kind == 1}
    words, left = filters.assign_bits(12, forbidden, free)
    assert left == []
    for a, b in pairs:
        if (a, b) not in free:
            assert bool(words[a] & words[b]) == ((a, b) in forbidden)


def test_more_cliques_than_bits_are_reported():
    forbidden = {(2 * i, 2 * i + 1) for i in range(40)}
    words, left = filters.assign_bits(80, forbidden, set())
    assert len(left) == 40 - filters.MAX_BITS
    assert max(words) < 2**filters.MAX_BITS


# ---- actuators


def test_E6_motor_and_position_actuators(load):
    two = '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/>'
    robot = load(on_base(two), '<actuator><motor name="m" joint="a" gear="15"/><position joint="b" kp="5"/></actuator>')
    motor, position = robot.actuators
    assert (motor.name, motor.joint, motor.kind, motor.gear) == ("m", "a", "motor", 15)
    assert (position.joint, position.kind, position.kp) == ("b", "position", 5)
    first, second = robot.dof_properties()
    assert (first["driveMode"], first["stiffness"]) == (0, 0)
    assert first["effort"] == np.finfo(np.float32).max
    assert (second["driveMode"], second["stiffness"]) == (POSITION, 5)


def test_B16_force_limits_of_joint_and_actuator_hold_together(load):
    joint = '<joint name="a" actuatorfrcrange="-3 3"/>'
    motor = '<actuator><motor joint="a" gear="15" ctrlrange="-1 1" {}/></actuator>'
    robot = load(on_base(joint), motor.format(""))
    assert robot.dof_properties()["effort"] == 3
    assert robot.actuators[0].ctrl_limited
    assert robot.actuators[0].ctrl_range == (-1, 1)
    assert load(on_base(joint), motor.format('forcerange="-0.1 0.1"')).dof_properties()["effort"] == pytest.approx(1.5)
    free = on_base('<joint name="a"/>')
    assert load(free, motor.format('forcerange="-0.1 0.1"')).dof_properties()["effort"] == pytest.approx(1.5)


def test_velocity_and_general_actuators(load):
    robot = load(
        on_base('<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0" damping="1"/><joint name="c"/>'),
        '<actuator><velocity joint="a" kv="4"/>'
        '<general joint="b" biastype="affine" gainprm="20" biasprm="0 -20 -2" forcerange="-7 7"/>'
        '<general joint="c" gear="2"/></actuator>',
    )
    velocity, affine, motor = robot.dof_properties()
    assert (velocity["driveMode"], velocity["damping"]) == (VELOCITY, 4)
    assert (affine["driveMode"], affine["stiffness"], affine["damping"], affine["effort"]) == (POSITION, 20, 3, 7)
    assert motor["driveMode"] == 0
    assert [actuator.kind for actuator in robot.actuators] == ["velocity", "general", "general"]


def test_actuator_defaults_and_inheritrange(load):
    rest = (
        '<default><motor ctrlrange="-2 2"/><position kp="8" inheritrange="1"/></default>'
        '<actuator><motor joint="a"/><position joint="b"/></actuator>'
    )
    robot = load(on_base('<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0" range="0 90"/>'), rest)
    assert robot.actuators[0].ctrl_range == (-2, 2)
    assert robot.actuators[1].kp == 8
    assert robot.actuators[1].ctrl_range == pytest.approx((0, np.pi / 2))


def test_other_actuators_are_noted(load):
    robot = load(
        on_base('<joint name="a"/>'), '<actuator><muscle joint="a"/><motor site="s"/><motor tendon="t"/></actuator>'
    )
    assert robot.actuators == []
    assert len([note for note in robot.notes if "dropped" in note]) == 3


# ---- tendons


def test_B17_tendons_keep_their_joints_by_name_behind_a_collapsed_mount(load):
    joints = [f'<body name="b{i}"><joint name="j{i}"/>{GEOM}' for i in range(4)]
    text = f'<body name="base">{GEOM}<body name="mount">{GEOM}{"".join(joints)}{"</body>" * 4}</body></body>'
    rest = """<tendon><fixed name="t" range="-0.1 0.2" stiffness="3" damping="4" springlength="0.5">
      <joint joint="j3" coef="1"/><joint joint="j1" coef="-2"/><joint joint="j0" coef="0"/>
      <joint joint="j2" coef="0.5"/>
    </fixed><spatial/></tendon>"""
    robot = load(text, rest, collapse_fixed_joints=True, tendon_limit_stiffness=30.0)
    (tendon,) = robot.tendons
    assert (tendon.joints, tendon.coefs) == (["j3", "j1", "j2"], [1, -2, 0.5])
    assert (tendon.limited, tendon.lower, tendon.upper) == (True, -0.1, 0.2)
    assert (tendon.stiffness, tendon.damping, tendon.spring_length, tendon.limit_stiffness) == (3, 4, 0.5, 30)
    assert robot.spatial_tendons == 1


def test_references_to_another_actor_are_dropped_with_a_note(load):
    rest = """<actuator><motor joint="there"/></actuator>
    <tendon><fixed><joint joint="there" coef="1"/></fixed></tendon>
    <contact><pair geom1="g" geom2="there"/><exclude body1="base" body2="there"/></contact>"""
    robot = load(on_base('<joint name="here"/>'), rest)
    assert (robot.actuators, robot.tendons, robot.no_collide) == ([], [], [])
    assert len([note for note in robot.notes if "'there' is no" in note or "'g' is no" in note]) == 4
