"""A small stand-in for the simulator: the calls that the tasks make, on plain tensors."""

import copy
import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from isaacgym import gymapi, gymtorch  # isort: skip
import numpy as np
import torch

REPO = Path(__file__).resolve().parents[2]
DEG = math.pi / 180.0

ANT_DOFS = ["hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3", "hip_4", "ankle_4"]
ANT_BODIES = ["torso"] + [
    f"{leg}_{part}" for leg in ("front_left", "front_right", "left_back", "right_back") for part in ("leg", "foot")
]
ANT_LIMITS = [(-40, 40), (30, 100), (-40, 40), (-100, -30), (-40, 40), (-100, -30), (-40, 40), (30, 100)]
HUMANOID_BODIES = ["torso", "head", "lower_waist", "pelvis"]
HUMANOID_DOFS = ["abdomen_z", "abdomen_y", "abdomen_x"]
for _side in ("right", "left"):
    HUMANOID_BODIES += [f"{_side}_{part}" for part in ("thigh", "shin", "foot")]
    HUMANOID_DOFS += [f"{_side}_{joint}" for joint in ("hip_x", "hip_z", "hip_y", "knee", "ankle_y", "ankle_x")]
for _side in ("right", "left"):
    HUMANOID_BODIES += [f"{_side}_{part}" for part in ("upper_arm", "lower_arm", "hand")]
    HUMANOID_DOFS += [f"{_side}_{joint}" for joint in ("shoulder1", "shoulder2", "elbow")]
_LEG = [(-45, 15), (-60, 35), (-120, 45), (-160, 2), (-50, 50), (-50, 50)]
_ARM = [(-90, 70), (-90, 70), (-90, 50)]
HUMANOID_LIMITS = [(-45, 45), (-75, 30), (-35, 35), *_LEG, *_LEG, *_ARM, *_ARM]
HUMANOID_EFFORTS = [67.5] * 3 + [45, 45, 135, 90, 22.5, 22.5] * 2 + [67.5, 67.5, 45] * 2
LEGS = ("LF", "LH", "RF", "RH")
ANYMAL_BODIES = ["base"] + [f"{leg}_{part}" for leg in LEGS for part in ("HIP", "THIGH", "SHANK")]
ANYMAL_DOFS = [f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE")]
ANYMAL = SimpleNamespace(bodies=ANYMAL_BODIES, dofs=ANYMAL_DOFS, limits=[(-9.4, 9.4)] * 12, motors=[])


def hand(name):
    """Names, joint limits and actuators of a hand, from the table of its source."""
    table = json.loads((REPO / "tests" / "data" / f"{name}.json").read_text())
    return SimpleNamespace(
        bodies=[body["name"] for body in table["bodies"]],
        dofs=[joint["name"] for joint in table["joints"]],
        limits=[tuple(joint["limits"]) for joint in table["joints"]],
        motors=[(actuator["joint"], 0.0) for actuator in table.get("actuators", [])],
        tendons=[tendon["name"] for tendon in table.get("tendons", [])],
    )


def loose(name):
    return SimpleNamespace(bodies=[name], dofs=[], limits=[], motors=[])


FAKE_ASSETS = {
    "shadow_hand/shadow_hand.xml": hand("shadow_hand"),
    "allegro_hand/allegro_hand.urdf": hand("allegro_hand"),
    **{f"objects/{file}": loose("object") for file in ("block.urdf", "block_allegro.urdf", "egg.xml", "pen.xml")},
    "anymal_c/anymal.urdf": ANYMAL,
    "anymal_c/anymal_minimal.urdf": ANYMAL,
    "humanoid/humanoid.xml": SimpleNamespace(
        bodies=HUMANOID_BODIES,
        dofs=HUMANOID_DOFS,
        limits=[(low * DEG, high * DEG) for low, high in HUMANOID_LIMITS],
        motors=list(zip(HUMANOID_DOFS, HUMANOID_EFFORTS, strict=True))[::-1],
    ),
    "ant/ant.xml": SimpleNamespace(
        bodies=ANT_BODIES,
        dofs=ANT_DOFS,
        limits=[(low * DEG, high * DEG) for low, high in ANT_LIMITS],
        motors=[(name, 15.0) for name in ANT_DOFS[6:] + ANT_DOFS[:6]],
    ),
    "cartpole/cartpole.urdf": SimpleNamespace(
        bodies=["slider", "cart", "pole"], dofs=["slider_to_cart", "cart_to_pole"], limits=[(-4, 4), (0, 0)], motors=[]
    ),
}


class FakeGym:
    """The calls that the tasks make, on plain tensors; `physics(gym)` may change the state in `simulate`."""

    def __init__(self):
        self.calls = Counter()
        self.physics = lambda gym: None
        self.frames = 0
        self.envs = []
        self.sensors = []
        self.actors = []
        self.actors_of = {}
        self.all_options = []
        self.dof_props = {}
        self.objects = {}
        self.scales = {}
        self.friction = []
        self.viewer = None
        self.events = []

    # -- scene
    def create_sim(self, compute_device, graphics_device, engine, params):
        self.compute_device, self.graphics_device, self.params = compute_device, graphics_device, copy.deepcopy(params)
        self.envs, self.sensors, self.actors, self.all_options = [], [], [], []
        self.actors_of = {}
        self.dof_props, self.objects, self.scales = {}, {}, {}
        return "sim"

    def add_ground(self, sim, params):
        self.plane = params

    def load_asset(self, sim, root, file, options=None):
        self.options = options
        self.all_options.append((file, options))
        self.asset_root = root
        return FAKE_ASSETS[file]

    def get_asset_dof_names(self, asset):
        return list(asset.dofs)

    def get_asset_rigid_body_names(self, asset):
        return list(asset.bodies)

    def find_asset_rigid_body_index(self, asset, name):
        return asset.bodies.index(name) if name in asset.bodies else -1

    def get_asset_rigid_body_count(self, asset):
        return len(asset.bodies)

    def get_asset_actuator_properties(self, asset):
        return [SimpleNamespace(motor_effort=effort) for _, effort in asset.motors]

    def get_asset_actuator_joint_name(self, asset, index):
        return asset.motors[index][0]

    def create_asset_force_sensor(self, asset, body, pose):
        self.sensors.append(asset.bodies[body])
        return len(self.sensors) - 1

    def create_env(self, sim, lower, upper, per_row):
        self.env_bounds, self.per_row = (lower, upper), per_row
        self.envs.append([])
        return len(self.envs) - 1

    def create_actor(self, env, asset, pose, name, group, collision_filter, segmentation):
        if asset.dofs or not self.actors:
            self.asset, self.actor_name = asset, name
        self.start = [pose.p.x, pose.p.y, pose.p.z, pose.r.x, pose.r.y, pose.r.z, pose.r.w]
        self.actors.append(SimpleNamespace(asset=asset, name=name, start=self.start, index=len(self.actors)))
        self.actors_of.setdefault(env, []).append(self.actors[-1])
        self.envs[env].append((group, collision_filter))
        return len(self.envs[env]) - 1

    def _actor(self, env, handle):
        return self.actors_of[env][handle]

    def get_actor_index(self, env, handle, domain):
        assert domain == gymapi.DOMAIN_SIM
        return self._actor(env, handle).index

    def begin_aggregate(self, env, bodies, shapes, self_collisions):
        self.aggregate = (bodies, shapes, self_collisions)

    def end_aggregate(self, env):
        self.calls["end_aggregate"] += 1

    def _build_dof_properties(self):
        fields = [("lower", "f4"), ("upper", "f4"), ("driveMode", "i4")]
        fields += [(name, "f4") for name in ("stiffness", "damping", "effort", "friction", "armature")]
        properties = np.zeros(len(self.asset.dofs), dtype=fields)
        properties["lower"], properties["upper"] = np.array(self.asset.limits).T
        properties["stiffness"] = properties["damping"] = 7.0
        return properties

    def get_actor_dof_properties(self, env, actor):
        return self.dof_props[env].copy() if env in self.dof_props else self._build_dof_properties()

    def set_actor_dof_properties(self, env, actor, properties):
        self.dof_props[env] = properties.copy()
        self.calls["dofs"] += 1
        return True

    def _objects(self, group, env, actor, count, **values):
        key = (group, env, actor) if actor else (group, env)
        if key not in self.objects:
            self.objects[key] = [SimpleNamespace(**values) for _ in range(count)]
        return copy.deepcopy(self.objects[key])

    def _store(self, group, env, actor, properties):
        self.objects[(group, env, actor) if actor else (group, env)] = copy.deepcopy(properties)
        self.calls[group] += 1
        return True

    def get_actor_rigid_body_properties(self, env, actor):
        return self._objects("bodies", env, actor, len(self._actor(env, actor).asset.bodies), mass=2.0)

    def set_actor_rigid_body_properties(self, env, actor, properties, recompute_inertia=False):
        assert recompute_inertia
        return self._store("bodies", env, actor, properties)

    def get_actor_rigid_shape_properties(self, env, actor):
        return self._objects(
            "shapes",
            env,
            actor,
            len(self._actor(env, actor).asset.bodies),
            friction=1.0,
            restitution=0.5,
            thickness=0.1,
        )

    def set_actor_rigid_shape_properties(self, env, actor, properties):
        return self._store("shapes", env, actor, properties)

    def get_actor_tendon_properties(self, env, actor):
        return self._objects("tendons", env, actor, 2, stiffness=3.0, damping=0.2)

    def set_actor_tendon_properties(self, env, actor, properties):
        return self._store("tendons", env, actor, properties)

    def set_actor_scale(self, env, actor, scale):
        self.scales[env] = scale
        return True

    def find_actor_handle(self, env, name):
        names = [actor.name for actor in self.actors_of[env]]
        return names.index(name) if name in names else -1

    def get_actor_rigid_body_count(self, env, actor):
        return len(self._actor(env, actor).asset.bodies)

    def get_actor_rigid_shape_count(self, env, actor):
        return len(self._actor(env, actor).asset.bodies)

    def get_env_rigid_body_count(self, env):
        return sum(len(actor.asset.bodies) for actor in self.actors_of[env])

    def get_asset_rigid_shape_count(self, asset):
        return len(asset.bodies)

    def get_asset_actuator_count(self, asset):
        return len(asset.motors)

    def get_asset_tendon_properties(self, asset):
        return [SimpleNamespace(limit_stiffness=0.0, damping=0.0) for _ in asset.tendons]

    def get_asset_tendon_name(self, asset, index):
        return asset.tendons[index]

    def set_asset_tendon_properties(self, asset, properties):
        self.tendons = dict(zip(asset.tendons, properties, strict=True))

    def get_sim_params(self, sim):
        return copy.deepcopy(self.params)

    def set_sim_params(self, sim, params):
        self.params = copy.deepcopy(params)

    def set_rigid_body_color(self, env, actor, body, mesh, colour):
        self.calls["colour"] += 1

    def enable_actor_dof_force_sensors(self, env, actor):
        self.calls["enable_actor_dof_force_sensors"] += 1
        return True

    def get_asset_dof_properties(self, asset):
        self.asset = asset
        return self._build_dof_properties()

    def get_asset_rigid_shape_properties(self, asset):
        return [SimpleNamespace(friction=1.0) for _ in range(9)]

    def set_asset_rigid_shape_properties(self, asset, properties):
        self.friction.append([p.friction for p in properties])
        return True

    def add_triangle_mesh(self, sim, vertices, triangles, params):
        self.mesh = (vertices, triangles, params)

    def prepare_sim(self, sim):
        n, d = len(self.envs), len(self.asset.dofs)
        self.root = torch.zeros(len(self.actors), 13)
        self.root[:, :7] = torch.tensor([actor.start for actor in self.actors])
        self.body = torch.zeros(n, sum(len(actor.asset.bodies) for actor in self.actors) // n, 13)
        self.dof = torch.zeros(n, d, 2)
        self.sensor = torch.zeros(n * len(self.sensors), 6)
        self.forces = torch.zeros(n, d)
        self.targets = torch.zeros(n, d)
        self.dof_force = torch.zeros(n, d)
        self.contact = torch.zeros(n, len(self.asset.bodies), 3)
        self.buffers = {
            "root": self.root.clone(), "dof": self.dof.view(-1, 2).clone(), "sensor": self.sensor.clone(),
            "contact": self.contact.view(-1, 3).clone(), "body": self.body.view(-1, 13).clone(),
            "dof_force": self.dof_force.view(-1).clone(),
        }  # fmt: skip
        return True

    # -- stepping
    def simulate(self, sim):
        self.calls["simulate"] += 1
        self.frames += 1
        self.physics(self)

    def fetch_results(self, sim, wait):
        self.calls["fetch_results"] += 1

    def get_frame_count(self, sim):
        return self.frames

    # -- state
    def acquire_actor_root_state_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["root"])

    def acquire_dof_state_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["dof"])

    def acquire_force_sensor_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["sensor"])

    def acquire_rigid_body_state_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["body"])

    def refresh_rigid_body_state_tensor(self, sim):
        self.buffers["body"].copy_(self.body.view(-1, 13))

    def set_dof_position_target_tensor_indexed(self, sim, targets, ids, count):
        rows = self._envs_of(ids, count)
        self.targets[rows] = targets.torch.view_as(self.targets)[rows]
        self.calls["target_rows"] += count

    def apply_rigid_body_force_tensors(self, sim, forces, torques, space):
        assert torques is None
        self.pushes = (forces.torch.clone(), space)
        self.calls["push"] += 1

    def _envs_of(self, ids, count):
        assert ids.torch.dtype is torch.int32
        return ids.torch[:count].long() // (len(self.actors) // len(self.envs))

    def acquire_net_contact_force_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["contact"])

    def refresh_net_contact_force_tensor(self, sim):
        self.buffers["contact"].copy_(self.contact.view(-1, 3))

    def set_dof_position_target_tensor(self, sim, targets):
        self.targets.copy_(targets.torch)

    def acquire_dof_force_tensor(self, sim):
        return gymtorch.Tensor(self.buffers["dof_force"])

    def refresh_dof_force_tensor(self, sim):
        self.buffers["dof_force"].copy_(self.dof_force.view(-1))

    def refresh_actor_root_state_tensor(self, sim):
        self.buffers["root"].copy_(self.root)

    def refresh_dof_state_tensor(self, sim):
        self.buffers["dof"].copy_(self.dof.view(-1, 2))

    def refresh_force_sensor_tensor(self, sim):
        self.buffers["sensor"].copy_(self.sensor)

    def set_actor_root_state_tensor(self, sim, states):
        self.root.copy_(states.torch)
        self.calls["root_all"] += 1

    def set_dof_state_tensor(self, sim, states):
        self.dof.view(-1, 2).copy_(states.torch)

    def set_actor_root_state_tensor_indexed(self, sim, states, ids, count):
        assert ids.torch.dtype is torch.int32
        rows = ids.torch[:count].long()
        self.root[rows] = states.torch[rows]
        self.calls["root_rows"] += count

    def set_dof_state_tensor_indexed(self, sim, states, ids, count):
        rows = self._envs_of(ids, count)
        self.dof[rows] = states.torch.view_as(self.dof)[rows]
        self.calls["dof_rows"] += count

    def set_dof_actuation_force_tensor(self, sim, forces):
        self.forces.copy_(forces.torch)

    def destroy_sim(self, sim):
        self.calls["destroy_sim"] += 1

    def destroy_viewer(self, viewer):
        self.calls["destroy_viewer"] += 1

    # -- viewer
    def create_viewer(self, sim, properties):
        return self.viewer

    def subscribe_viewer_keyboard_event(self, viewer, key, action):
        self.calls[f"key {action}"] += 1

    def viewer_camera_look_at(self, viewer, env, eye, target):
        self.camera = (eye, target)

    def query_viewer_has_closed(self, viewer):
        return False

    def query_viewer_action_events(self, viewer):
        events, self.events = self.events, []
        return events

    def poll_viewer_events(self, viewer):
        self.calls["poll"] += 1

    def step_graphics(self, sim):
        self.calls["step_graphics"] += 1

    def draw_viewer(self, viewer, sim, collision):
        self.calls["draw"] += 1

    def sync_frame_time(self, sim):
        self.calls["sync"] += 1

    def write_viewer_image_to_file(self, viewer, path):
        self.calls["image"] += 1
