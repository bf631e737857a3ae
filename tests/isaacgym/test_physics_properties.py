"""Properties and collision filters: F26-F30 of the API notes, B8 and B28."""

from __future__ import annotations

import pytest
import torch
from scenes import hopper, slider

from isaacgym import gymapi


def test_F26_gravity_changes_while_falling(make_world):
    world = make_world()
    world.actor(world.env(), world.box(), (0.0, 0.0, 50.0))
    root = world.prepare("root")
    world.step(10)
    params = world.gym.get_sim_params(world.sim)
    params.gravity = gymapi.Vec3(0.0, 0.0, 0.0)
    world.gym.set_sim_params(world.sim, params)
    world.step(10)
    assert root[0, 9].item() == pytest.approx(-9.81 / 6, abs=1e-4)
    params.gravity.x = 3.0
    world.gym.set_sim_params(world.sim, params)
    assert world.gym.get_sim_params(world.sim).gravity.x == 3.0
    world.step(10)
    assert root[0, 7].item() == pytest.approx(0.5, abs=1e-4)
    assert root[0, 9].item() == pytest.approx(-9.81 / 6, abs=1e-4)


@pytest.mark.parametrize("when", ["build", "run"])
def test_F27_doubled_mass_halves_the_acceleration(make_world, when):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    env, asset = world.env(), world.box(0.5, 2.0)
    light = world.actor(env, asset, (0.0, 0.0, 1.0))
    heavy = world.actor(env, asset, (1.0, 0.0, 1.0))
    if when == "run":
        root = world.prepare("root")
        world.step()
    before = world.gym.get_actor_rigid_body_properties(env, heavy)
    inertia = before[0].inertia.x.x
    before[0].mass *= 2
    assert world.gym.set_actor_rigid_body_properties(env, heavy, before, True)
    if when == "build":
        root = world.prepare("root")
    after = world.gym.get_actor_rigid_body_properties(env, heavy)[0]
    assert after.mass == pytest.approx(4.0, rel=1e-5)
    assert after.invMass == pytest.approx(0.25, rel=1e-5)
    assert after.inertia.x.x == pytest.approx(2 * inertia, rel=1e-5)
    assert world.gym.get_actor_rigid_body_properties(env, light)[0].mass == pytest.approx(2.0, rel=1e-5)
    force = torch.tensor([[4.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    world.push(force, torque=force.clone())
    world.step()
    assert root[0, 7].item() == pytest.approx(0.033333, abs=1e-5)
    assert root[1, 7].item() == pytest.approx(0.016667, abs=1e-5)
    assert root[0, 10].item() == pytest.approx(4.0 / inertia / 60, rel=1e-3)
    assert root[1, 10].item() == pytest.approx(2.0 / inertia / 60, rel=1e-3)


def test_F27_properties_are_copies_until_set(make_world):
    world = make_world()
    env = world.env()
    box = world.actor(env, world.box(0.5, 2.0), (0.0, 0.0, 1.0))
    world.gym.get_actor_rigid_body_properties(env, box)[0].mass = 9.0
    world.gym.get_actor_rigid_shape_properties(env, box)[0].friction = 9.0
    assert world.gym.get_actor_rigid_body_properties(env, box)[0].mass == pytest.approx(2.0)
    assert world.gym.get_actor_rigid_shape_properties(env, box)[0].friction == pytest.approx(1.0)


# (group, filter) of the lower and of the upper box, and whether the upper one rests on the lower one
MEETINGS = [
    ((0, 0), (0, 0), True),
    ((0, 1), (0, 1), False),
    ((0, 1), (0, 2), True),
    ((0, 3), (0, 2), False),
    ((0, 0), (0, 7), True),
    ((0, 0), (1, 0), False),
    ((-1, 0), (0, 0), True),
    ((-1, 0), (5, 0), True),
    ((4, 0), (-1, 0), True),
    ((-1, 1), (-1, 1), False),
    ((-1, 1), (2, 1), False),
    ((-1, 1), (2, 2), True),
]


def test_F28_F30_truth_table_of_groups_and_filters(make_world):
    """All pairs stand in one env, each at its own place; the ground holds every box."""
    world = make_world()
    world.plane()
    env, asset = world.env(20.0), world.box(0.4, 1.0)
    for i, (lower, upper, _) in enumerate(MEETINGS):
        world.actor(env, asset, (1.0 * i, 0.0, 0.2), name=f"lower{i}", group=lower[0], mask=lower[1])
        world.actor(env, asset, (1.0 * i, 0.0, 0.65), name=f"upper{i}", group=upper[0], mask=upper[1])
    root, contact = world.prepare("root", "contact")
    world.step(60)
    heights = root[:, 2].view(-1, 2)
    expected = [0.6 if meets else 0.2 for *_, meets in MEETINGS]
    assert heights[:, 1].tolist() == pytest.approx(expected, abs=2e-3)
    assert heights[:, 0].tolist() == pytest.approx([0.2] * len(MEETINGS), abs=2e-3)
    assert contact[:, 2].tolist() == pytest.approx([9.81] * 2 * len(MEETINGS), abs=0.15)


def test_F28_filter_of_the_shapes_decides(make_world):
    """The filter can also be rewritten per shape before prepare_sim."""
    world = make_world()
    world.plane()
    env, asset = world.env(), world.box(0.4, 1.0)
    world.actor(env, asset, (0.0, 0.0, 0.2), mask=1)
    upper = world.actor(env, asset, (0.0, 0.0, 0.65), mask=2)
    world.set_shapes(env, upper, filter=1)
    assert world.gym.get_actor_rigid_shape_properties(env, upper)[0].filter == 1
    root = world.prepare("root")
    world.step(60)
    assert root[1, 2].item() == pytest.approx(0.2, abs=2e-3)


def robots_at_one_place(world, path, envs: int, ground: str):
    """The same robot at the same place in envs of zero extent, in a group of its own; rows after 45 steps."""
    if ground == "plane":
        world.plane()
    else:
        world.flat_mesh(0.0)
    asset = world.load(path)
    for _ in range(envs):
        env = world.env(0.0)
        robot = world.actor(env, asset, (0.3, 0.2, 0.27))
        world.set_dofs(env, robot, driveMode=gymapi.DOF_MODE_POS, stiffness=5e3, damping=100.0)
    root, contact = world.prepare("root", "contact")
    world.step(45)
    return root.clone(), contact.clone()


@pytest.mark.parametrize("ground", ["plane", "mesh"])
def test_F29_coincident_robots_of_two_envs_do_not_meet(make_world, tmp_path, ground):
    path = hopper(tmp_path)
    root, contact = robots_at_one_place(make_world(), path, 1, ground)
    assert contact[1, 2].item() == pytest.approx(3 * 9.81, rel=0.02)
    roots, contacts = robots_at_one_place(make_world(), path, 2, ground)
    assert torch.allclose(roots[:, :7], root[:, :7].repeat(2, 1), atol=1e-4)
    assert torch.allclose(contacts, contact.repeat(2, 1), atol=0.05)


def test_F29_robots_that_walk_to_another_env_do_not_meet_its_robots(make_world):
    """Envs are isolated by their groups, not only by the room between them: bodies may travel far."""
    world = make_world(gravity=(0.0, 0.0, 0.0))
    asset = world.box(0.4, 1.0)
    for _ in range(9):
        env = world.env(2.0, per_row=3)
        world.actor(env, asset, (0.0, 0.0, 1.0))
        world.actor(env, asset, (0.0, 0.0, 2.0))
    root = world.prepare("root")
    start = root.clone()
    for direction in ([10.0, 0.0, 0.0], [0.0, 10.0, 0.0], [-10.0, 0.0, 0.0], [0.0, -10.0, 0.0]):
        root.copy_(start)
        root[8, 7:10] = torch.tensor(direction)  # the lower box of the env in the middle
        world.write_root(root)
        world.step(60)
        assert root[8, 7:10].tolist() == pytest.approx(direction, abs=1e-4)
        others = [i for i in range(18) if i != 8]
        assert torch.equal(root[others], start[others])


def overlapping_boxes(world, same_env: bool, groups):
    """Two boxes, 0.1 m into each other and closing in, without gravity and ground; largest force after one step."""
    asset = world.box(0.4, 1.0)
    env = world.env(0.0)
    world.actor(env, asset, (0.0, 0.0, 1.0), group=groups[0])
    world.actor(env if same_env else world.env(0.0), asset, (0.3, 0.0, 1.0), group=groups[1])
    root, contact = world.prepare("root", "contact")
    root[0, 7], root[1, 7] = 1.0, -1.0
    world.write_root(root)
    world.step()
    return contact.norm(dim=1).max().item()


def test_B28_neighbour_envs_do_not_touch_each_other(make_world):
    weightless = {"gravity": (0.0, 0.0, 0.0)}
    assert overlapping_boxes(make_world(**weightless), False, (0, 1)) == 0.0
    assert overlapping_boxes(make_world(**weightless), True, (0, 1)) == 0.0
    assert overlapping_boxes(make_world(**weightless), True, (0, 0)) > 10.0
    assert overlapping_boxes(make_world(**weightless), True, (-1, 1)) > 10.0


def test_F30_obstacle_of_group_minus_one_meets_every_group(make_world):
    world = make_world()
    env = world.env()
    world.actor(env, world.box((2.0, 2.0, 0.2), 1.0, fix_base_link=True), (0.0, 0.0, 0.9), group=-1)
    for i in range(3):
        world.actor(env, world.box(0.4, 1.0), (0.6 * i - 0.6, 0.0, 1.25), group=i)
    root = world.prepare("root")
    world.step(60)
    assert root[1:, 2].tolist() == pytest.approx([1.2] * 3, abs=2e-3)


def test_B8_dof_properties_read_back_what_was_set(make_world, tmp_path):
    world = make_world()
    env = world.env()
    actor = world.actor(env, world.load(slider(tmp_path), fix_base_link=True), (0.0, 0.0, 1.0))
    fields = {"stiffness": 12.0, "damping": 3.0, "effort": 7.0, "velocity": 5.0, "armature": 0.25}
    fields |= {"lower": -0.5, "upper": 0.75, "driveMode": int(gymapi.DOF_MODE_POS)}
    for scale in (1, 2):  # before prepare_sim, then at run time
        world.set_dofs(env, actor, **{**fields, "stiffness": 12.0 * scale})
        props = world.gym.get_actor_dof_properties(env, actor)
        assert props["stiffness"][0] == pytest.approx(12.0 * scale)
        assert {name: props[name][0].item() for name in fields if name != "stiffness"} == pytest.approx(
            {name: value for name, value in fields.items() if name != "stiffness"}
        )
        if scale == 1:
            world.prepare("dof")
            world.step()


def test_B8_gains_and_effort_limit_act_when_set_at_run_time(make_world, tmp_path):
    world = make_world(substeps=1, solver_type=0)
    env = world.env()
    actor = world.actor(env, world.load(slider(tmp_path), fix_base_link=True), (0.0, 0.0, 1.0))
    world.set_dofs(env, actor, driveMode=gymapi.DOF_MODE_POS, stiffness=1.0, damping=0.0)
    dof = world.prepare("dof")
    world.set_dofs(env, actor, stiffness=100.0, damping=10.0)
    world.write_dof("position_target", torch.tensor([0.5]))
    world.step()
    assert dof[0].tolist() == pytest.approx([0.011628, 0.697674], abs=1e-3)
    world.set_dofs(env, actor, damping=0.0, effort=3.0)
    world.write_dof("position_target", torch.tensor([10.0]))
    world.write_dof("state", torch.zeros(1, 2))
    world.step()
    assert dof[0, 1].item() == pytest.approx(0.05, abs=1e-4)


def test_B8_restitution_and_friction_act_when_set_at_run_time(make_world):
    world = make_world()
    world.plane(friction=0.0, restitution=0.0)
    env = world.env()
    ball = world.actor(env, world.sphere(0.1), (0.0, 0.0, 0.6))
    box = world.actor(env, world.box(0.5, 1.0), (2.0, 0.0, 0.25))
    root = world.prepare("root")
    world.set_shapes(env, ball, restitution=0.8)
    world.set_shapes(env, box, friction=0.6)
    assert world.gym.get_actor_rigid_shape_properties(env, ball)[0].restitution == pytest.approx(0.8)
    assert world.gym.get_actor_rigid_shape_properties(env, box)[0].friction == pytest.approx(0.6)
    root[1, 7] = 2.0
    world.write_root(root)
    speeds = []
    for _ in range(30):
        world.step()
        speeds.append(root[0, 9].item())
        if len(speeds) == 10:
            assert root[1, 7].item() == pytest.approx(2.0 - 0.3 * 9.81 / 6, abs=0.05)
    assert max(speeds) == pytest.approx(0.4 * (2 * 9.81 * 0.5) ** 0.5, rel=0.08)


def test_gravity_can_be_disabled_per_asset_and_per_body(make_world):
    world = make_world()
    env = world.env()
    world.actor(env, world.box(disable_gravity=True), (0.0, 0.0, 5.0))
    floating = world.actor(env, world.box(), (1.0, 0.0, 5.0))
    props = world.gym.get_actor_rigid_body_properties(env, floating)
    props[0].flags = gymapi.RIGID_BODY_DISABLE_GRAVITY
    assert world.gym.set_actor_rigid_body_properties(env, floating, props)
    world.actor(env, world.box(), (-1.0, 0.0, 5.0))
    root = world.prepare("root")
    world.step(6)
    assert root[:, 9].tolist() == pytest.approx([0.0, 0.0, -0.981], abs=1e-4)
