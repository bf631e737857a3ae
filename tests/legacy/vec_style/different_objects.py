# ruff: noqa: I001, F403, F405
"""A different object in every env, and two actors in every third."""

from isaacgym import gymapi
from isaacgym.torch_utils import *
from tasks.base import ASSETS, TEST_ASSETS, VecTask

import torch


class Objects(VecTask):
    spacing = 0.5

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.density = 500
        self.kinds = {
            "box": (self.gym.create_box(self.sim, 0.2, 0.3, 0.1, options), 0.05, 500 * 0.006),
            "ball": (self.gym.create_sphere(self.sim, 0.1, options), 0.1, 500 * 4 / 3 * np.pi * 0.001),
            "sled": (self.gym.load_asset(self.sim, TEST_ASSETS, "sled.urdf", options), 0.05, 4.0),
            "pen": (self.gym.load_asset(self.sim, ASSETS, "objects/pen.xml", gymapi.AssetOptions()), 0.008, None),
        }
        self.names = list(self.kinds)

    def fill_env(self, env, i):
        name = self.names[i % 4]
        asset, height, _ = self.kinds[name]
        turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 1, 0), 0.5 * np.pi if name == "pen" else 0.0)
        pose = gymapi.Transform(gymapi.Vec3(0.0, 0.0, height + 0.05), turn)
        self.gym.create_actor(env, asset, pose, name, i, 0)
        marker = gymapi.Transform(gymapi.Vec3(0.0, 0.3, 0.5))
        ghost, _, _ = self.kinds["ball"]
        # Goal markers of 2021: a group that no env has, so that nothing but the ground meets them.
        handle = self.gym.create_actor(env, ghost, marker, "goal", i + self.num_envs, 0)
        assert self.gym.get_actor_name(env, handle) == "goal"


task = Objects(num_envs=8)
root = task.root_states
assert root.shape == (8, 2, 13)
for _ in range(90):
    task.step(torch.zeros(8, 1))
for i in range(8):
    name = task.names[i % 4]
    _, height, mass = task.kinds[name]
    body = task.gym.get_actor_rigid_body_properties(task.envs[i], 0)[0]
    assert abs(float(root[i, 0, 2]) - height) < 3e-3, (name, root[i, 0])
    assert mass is None or abs(body.mass - mass) < 1e-4 * mass
    force = float(task.contact_forces[i, 0, 2])
    assert abs(force - body.mass * 9.81) < 0.05 * body.mass * 9.81, (name, force)
    assert abs(float(root[i, 1, 2]) - 0.1) < 3e-3
# Env-local positions: the same for all envs of a kind, wherever the env stands.
assert torch.allclose(root[:4, 1, :2], torch.tensor([0.0, 0.3]), atol=5e-3)
origins = [task.gym.get_env_origin(env) for env in task.envs]
assert len({(round(o.x, 3), round(o.y, 3)) for o in origins}) == 8
task.close()
print("ok: different_objects")
