"""Fixed tendons: lengths, limits, torques (docs/isaacgym.md, "Tendons"), with the Shadow hand and small chains.

With the tendon force F, joint i gets the torque ``-F * coef_i / mean(coef**2)``; beyond a limit,
``F = limit_stiffness * excess``. The torques of the chains are read from joint springs of 1 N m/rad: at rest
``q = applied torque + tendon torque``. The PGS solver with a small step settles without the small in-step motion that
TGS keeps under a constant effort.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from scenes import World

from isaacgym import gymapi
from isaacgym.engine.asset import AssetError

ASSETS = Path(__file__).parents[2] / "assets"
COEFS = {"J0": 0.00705, "J1": -0.00805}
MEAN_SQUARE = sum(coef**2 for coef in COEFS.values()) / 2
LIMIT = 0.001
FINE = {"solver_type": 0, "dt": 1 / 240}
INERTIA = '<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'


class Hand:
    """One Shadow hand without gravity, tendons as the Shadow hand task sets them."""

    def __init__(self, make_world, limit_stiffness=30.0, **params) -> None:
        self.world = make_world(gravity=(0.0, 0.0, 0.0), **params)
        path = ASSETS / "shadow_hand" / "shadow_hand.xml"
        asset = self.world.load(path, fix_base_link=True, disable_gravity=True, angular_damping=0.01)
        tendons = self.world.gym.get_asset_tendon_properties(asset)
        for tendon in tendons:
            tendon.limit_stiffness, tendon.damping = limit_stiffness, 0.1
        assert self.world.gym.set_asset_tendon_properties(asset, tendons)
        self.env = self.world.env()
        self.actor = self.world.actor(self.env, asset, mask=-1)
        self.names = self.world.gym.get_actor_dof_names(self.env, self.actor)
        self.dofs = self.world.prepare("dof")

    def settle(self, seconds=3.0, torque: dict[str, float] | None = None, target: dict[str, float] | None = None):
        """Hold torques and position targets (of joints without the prefix robot0:) until nothing moves."""
        for kind, values in (("actuation_force", torque), ("position_target", target)):
            full = torch.zeros(len(self.names))
            for name, value in (values or {}).items():
                full[self.names.index(f"robot0:{name}")] = value
            self.world.write_dof(kind, full)
        self.world.step(round(seconds / self.world.gym.get_sim_params(self.world.sim).dt))

    def position(self, name: str) -> float:
        return float(self.dofs[self.names.index(f"robot0:{name}"), 0])

    def length(self, finger: str) -> float:
        return sum(coef * self.position(f"{finger}{joint}") for joint, coef in COEFS.items())


def expected_excess(torque_on_j0: float, limit_stiffness: float) -> float:
    return abs(torque_on_j0) * MEAN_SQUARE / (COEFS["J0"] * limit_stiffness)


def test_B25_all_tendons_of_the_hand_are_built(make_world):
    hand = Hand(make_world)
    (group,) = hand.world.sim.groups
    assert group.binding("ROOT_POSE").num_tendons == 4
    assert hand.world.gym.get_actor_tendon_count(hand.env, hand.actor) == 4


def test_B25_a_dropped_tendon_is_an_error(make_world, monkeypatch):
    monkeypatch.setattr("isaacgym.engine.tendons.write", lambda *_: None)
    with pytest.raises(RuntimeError, match=r"shadow_hand\.xml: PhysX built 0 of 4 tendons"):
        Hand(make_world)


@pytest.mark.parametrize("finger", ["FF", "MF", "RF", "LF"])
def test_the_last_joint_follows_the_driven_one(make_world, finger):
    hand = Hand(make_world)
    hand.settle(target={f"{finger}J1": 1.0})
    assert hand.position(f"{finger}J1") == pytest.approx(1.0, abs=1e-3)
    assert hand.length(finger) == pytest.approx(-LIMIT, abs=1e-6)
    others = {"FF", "MF", "RF", "LF"} - {finger}
    assert all(abs(hand.position(f"{other}J0")) < 1e-3 for other in others)


@pytest.mark.parametrize("params", [FINE, {"num_position_iterations": 8}], ids=["PGS", "TGS as in the task"])
@pytest.mark.parametrize(("load", "target"), [(0.1, 0.3), (-0.1, 0.6)])
def test_length_exceeds_its_limit_by_load_over_limit_stiffness(make_world, params, load, target):
    hand = Hand(make_world, **params)
    hand.settle(torque={"FFJ0": load}, target={"FFJ1": target})
    length = hand.length("FF")
    assert math.copysign(1.0, length) == math.copysign(1.0, load)
    assert abs(length) - LIMIT == pytest.approx(expected_excess(load, 30.0), rel=0.1)
    assert abs(length) - LIMIT < 3e-5


def test_the_other_joint_carries_the_load_by_the_ratio_of_the_coefficients(make_world):
    hand = Hand(make_world, **FINE)
    hand.settle(torque={"FFJ0": 0.1}, target={"FFJ1": 0.3})
    drive_torque = 1.0 * (0.3 - hand.position("FFJ1"))  # stiffness 1 N m/rad
    assert drive_torque == pytest.approx(0.1 * COEFS["J1"] / COEFS["J0"], rel=0.02)


def test_limit_stiffness_changes_at_run_time(make_world):
    hand = Hand(make_world, **FINE)
    props = hand.world.gym.get_actor_tendon_properties(hand.env, hand.actor)
    for tendon in props:
        tendon.limit_stiffness = 10.0
    assert hand.world.gym.set_actor_tendon_properties(hand.env, hand.actor, props)
    hand.settle(torque={"FFJ0": 0.1}, target={"FFJ1": 0.3})
    assert hand.length("FF") - LIMIT == pytest.approx(expected_excess(0.1, 10.0), rel=0.05)


def test_each_tendon_of_the_hand_gets_its_own_properties(make_world):
    hand = Hand(make_world, **FINE)
    props = hand.world.gym.get_actor_tendon_properties(hand.env, hand.actor)
    for number, tendon in enumerate(props):  # in file order: FF, MF, RF, LF
        tendon.limit_stiffness = 10.0 + 5.0 * number
    assert hand.world.gym.set_actor_tendon_properties(hand.env, hand.actor, props)
    fingers = ("FF", "MF", "RF", "LF")
    hand.settle(torque={f"{finger}J0": 0.05 for finger in fingers}, target={f"{finger}J1": 0.3 for finger in fingers})
    for number, finger in enumerate(fingers):
        excess = expected_excess(0.05, 10.0 + 5.0 * number)
        assert hand.length(finger) - LIMIT == pytest.approx(excess, rel=0.05)


def body(name: str, inner="", kind="hinge", axis="0 1 0") -> str:
    joint = f'<joint name="{name}" type="{kind}" axis="{axis}" range="-3 3" limited="true" damping=".5" stiffness="1"/>'
    return f'<body name="body_{name}">{joint}{INERTIA}{inner}</body>'


def fixed(name: str, attributes="", **coefs: float) -> str:
    parts = "".join(f'<joint joint="{joint}" coef="{coef}"/>' for joint, coef in coefs.items())
    return f'<fixed name="{name}" {attributes}>{parts}</fixed>'


def settle(make_world, folder: Path, bodies: str, tendons: str, torques: list[float], seconds=12.0):
    """Rest positions and tendon torques under constant torques."""
    path = folder / "chain.xml"
    tree = f'<worldbody><body name="base">{INERTIA}{bodies}</body></worldbody><tendon>{tendons}</tendon>'
    path.write_text(f'<mujoco><compiler angle="radian"/>{tree}</mujoco>')
    world: World = make_world(gravity=(0.0, 0.0, 0.0), **FINE)
    env = world.env()
    world.actor(env, world.load(path))
    dofs = world.prepare("dof")
    applied = torch.tensor(torques)
    world.write_dof("actuation_force", applied)
    world.step(round(seconds * 240))
    return dofs[:, 0].clone(), dofs[:, 0] - applied


@pytest.mark.parametrize(
    ("coefs", "axes"),
    [
        ({"a": 1.0, "b": 2.0}, ("0 1 0", "0 1 0", "0 1 0")),
        ({"a": 1.0, "b": -1.0, "c": 2.0}, ("0 1 0", "0 1 0", "0 1 0")),
        ({"a": 1.0, "c": 2.0}, ("0 1 0", "0 1 0", "0 1 0")),
        ({"a": 1.0, "c": 2.0}, ("0 1 0", "0 0 1", "0 1 0")),
    ],
    ids=["neighbours", "three", "one joint left out", "crossed axis left out"],
)
def test_spring_torques_are_in_proportion_to_the_coefficients(make_world, tmp_path, coefs, axes):
    a, b, c = axes
    chain = body("a", body("b", body("c", axis=c), axis=b), axis=a)
    # A small spring constant keeps the angles small, so that the axes stay what they are at zero.
    q, torque = settle(make_world, tmp_path, chain, fixed("t", 'stiffness="0.5"', **coefs), [0.02, 0.04, 0.06])
    weights = torch.tensor([coefs.get(name, 0.0) for name in "abc"])
    used = torch.tensor(list(coefs.values()))
    expected = -0.5 * float(weights @ q) * weights / (used**2).mean()
    torch.testing.assert_close(torque, expected, rtol=0.02, atol=2e-4)


def test_rest_length_is_in_the_unit_of_the_length(make_world, tmp_path):
    spring = fixed("t", 'stiffness="4" springlength="0.2"', a=0.5)
    q, _ = settle(make_world, tmp_path, body("a"), spring, [0.0])
    # q = -k (0.5 q - 0.2) 0.5 / 0.25
    assert float(q[0]) == pytest.approx(4 * 0.2 * 2 / (1 + 4 * 0.5 * 2), rel=0.01)


def test_slides_and_hinges_may_share_a_tendon(make_world, tmp_path):
    chain = body("a", body("b", kind="slide"))
    q, torque = settle(make_world, tmp_path, chain, fixed("t", 'stiffness="5"', a=1.0, b=-2.0), [0.1, 0.2], seconds=20)
    weights = torch.tensor([1.0, -2.0])
    torch.testing.assert_close(torque, -5.0 * float(weights @ q) * weights / 2.5, rtol=0.02, atol=2e-4)


def test_tendons_keep_their_properties_whatever_the_order_of_their_joints(make_world, tmp_path):
    stiffness = {"c": 1, "a": 3, "d": 5, "b": 7}
    branches = "".join(body(name) for name in "abcd")
    tendons = "".join(fixed(f"t_{name}", f'stiffness="{k}"', **{name: 1.0}) for name, k in stiffness.items())
    _, torque = settle(make_world, tmp_path, branches, tendons, [0.1] * 4)
    expected = [-0.1 * stiffness[name] / (1 + stiffness[name]) for name in "abcd"]
    torch.testing.assert_close(torque, torch.tensor(expected), rtol=0.02, atol=0.0)


@pytest.mark.parametrize(
    ("bodies", "coefs", "reason"),
    [
        (body("a") + body("b"), {"a": 1.0, "b": 1.0}, "joint 'b' does not hang below its first joint 'a'"),
        (
            body("a", f'<body name="weld">{INERTIA}{body("b")}</body>'),
            {"a": 1.0, "b": 1.0},
            "runs over body 'weld', which has 0 DOFs",
        ),
        (
            '<body name="ball"><joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/>' + INERTIA + "</body>",
            {"x": 1.0, "y": 1.0},
            "runs over body 'ball', which has 2 DOFs",
        ),
    ],
    ids=["branches", "weld in between", "two joints on a body"],
)
def test_what_physx_cannot_represent_is_an_error(make_world, tmp_path, bodies, coefs, reason):
    with pytest.raises(AssetError, match=reason):
        settle(make_world, tmp_path, bodies, fixed("cord", "", **coefs), [0.0, 0.0], seconds=0.01)


def test_default_limit_stiffness_comes_from_the_options(make_world):
    world = make_world()
    options = gymapi.AssetOptions()
    options.tendon_limit_stiffness = 12.0
    asset = world.gym.load_asset(world.sim, str(ASSETS), "shadow_hand/shadow_hand.xml", options)
    assert [tendon.limit_stiffness for tendon in world.gym.get_asset_tendon_properties(asset)] == [12.0] * 4
