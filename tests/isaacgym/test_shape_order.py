"""Properties of shapes reach the shapes they are meant for, however many a body has and however PhysX cuts them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh
from scenes import joint, link, urdf

BOX = '<collision><origin xyz="{x} 0 0"/><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
BENCH = '<collision><origin xyz="{x} 0 0"/><geometry><mesh filename="bench.obj"/></geometry></collision>'


def body(name: str, *shapes: str) -> str:
    return link(name, 1.0).replace("</link>", "".join(s.format(x=i) for i, s in enumerate(shapes)) + "</link>")


@pytest.fixture
def bench(tmp_path):
    """A plank of 0.4 x 0.1 x 0.05 m on two legs 0.1 m high, as bench.obj beside the URDF files."""
    parts = [
        trimesh.creation.box((0.4, 0.1, 0.05), trimesh.transformations.translation_matrix((0.0, 0.0, 0.125))),
        trimesh.creation.box((0.05, 0.1, 0.1), trimesh.transformations.translation_matrix((-0.175, 0.0, 0.05))),
        trimesh.creation.box((0.05, 0.1, 0.1), trimesh.transformations.translation_matrix((0.175, 0.0, 0.05))),
    ]
    trimesh.util.concatenate(parts).export(tmp_path / "bench.obj")
    return tmp_path


def give_frictions(world, env, actor: int, offset: float) -> list[float]:
    """Give shape i the friction offset + i / 100."""
    shapes = world.gym.get_actor_rigid_shape_properties(env, actor)
    for i, shape in enumerate(shapes):
        shape.friction = offset + i / 100
    assert world.gym.set_actor_rigid_shape_properties(env, actor, shapes)
    return [shape.friction for shape in shapes]


def native_frictions(world) -> list[float]:
    (group,) = world.sim.groups
    return group.read("SHAPE_FRICTION_AND_RESTITUTION")[0, :, 0].tolist()


@pytest.mark.parametrize("fixed", [True, False])
def test_thirteen_shapes_of_one_body_keep_their_order(make_world, tmp_path, fixed):
    world = make_world()
    env = world.env()
    actor = world.actor(env, world.load(urdf(tmp_path, "comb", body("comb", *[BOX] * 13)), fix_base_link=fixed))
    authored = give_frictions(world, env, actor, 0.1)
    world.prepare("root")
    assert native_frictions(world) == pytest.approx(authored)
    changed = give_frictions(world, env, actor, 0.5)
    world.step(1)
    assert native_frictions(world) == pytest.approx(changed)


def test_a_decomposed_mesh_between_boxes_of_a_robot(make_world, bench):
    robot = urdf(
        bench, "robot", body("a", BOX, BENCH, BOX), body("b", BENCH, BOX), body("c", BOX),
        joint("j1", "revolute", "a", "b"), joint("j2", "revolute", "a", "c"),
    )  # fmt: skip
    world = make_world()
    env = world.env()
    actor = world.actor(env, world.load(robot, vhacd_enabled=True))
    authored = give_frictions(world, env, actor, 0.1)
    world.prepare("root")
    pieces = len(native_frictions(world)) - 4  # boxes apart
    assert pieces in (4, 6)  # two benches of two pieces or three
    whose = [0, *[1] * (pieces // 2), 2, *[3] * (pieces // 2), 4, 5]
    assert native_frictions(world) == pytest.approx([authored[i] for i in whose])
    changed = give_frictions(world, env, actor, 0.5)
    world.step(1)
    assert native_frictions(world) == pytest.approx([changed[i] for i in whose])


def test_friction_of_every_piece_changes_at_run_time(make_world, bench):
    """Benches slide on ice; those whose own friction is set to 0 too do not slow down."""
    world = make_world()
    world.plane(friction=0.0)
    asset = world.load(urdf(bench, "bench", body("bench", BENCH)), vhacd_enabled=True)
    for _ in range(2):
        world.actor(world.env(), asset)
    root = world.prepare("root")
    shapes = world.gym.get_actor_rigid_shape_properties(world.envs[1], 0)
    assert len(shapes) == 1
    shapes[0].friction = 0.0
    assert world.gym.set_actor_rigid_shape_properties(world.envs[1], 0, shapes)
    world.step(30)
    root[:, 7:] = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    world.write_root(root)
    world.step(10)
    # Friction 1 against 0 is 0.5 on average: 0.5 * 9.81 m/s2 over 10 / 60 s.
    np.testing.assert_allclose(root[:, 7].numpy(), [1.0 - 0.5 * 9.81 / 6, 1.0], atol=0.03)


def test_two_decomposed_meshes_of_one_body_are_told_as_a_guess(make_world, bench, caplog):
    world = make_world()
    env = world.env()
    robot = urdf(bench, "pair", body("pair", BENCH, BOX, BENCH))
    actor = world.actor(env, world.load(robot, vhacd_enabled=True))
    give_frictions(world, env, actor, 0.1)
    world.prepare("root")
    changed = give_frictions(world, env, actor, 0.5)
    world.step(1)
    assert "pair.urdf: PhysX cuts 2 meshes of body 0" in caplog.text
    found = native_frictions(world)
    half = (len(found) - 1) // 2
    assert found == pytest.approx([changed[i] for i in [*[0] * half, 1, *[2] * half]])
