"""InHand: what the hand tasks have in common; each adds its hand, its places and its observation types."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import in_hand
from tasks.base.config import asset_root
from tasks.base.description import Part
from tasks.base.errors import TaskError
from tasks.base.rotation import relative_rotation, rotation_angle
from tasks.base.vec_task import VecTask

OBJECTS = {"block": "assetFileNameBlock", "egg": "assetFileNameEgg", "pen": "assetFileNamePen"}
"""Object type -> its file in the task's `asset` section."""
GOAL_DROP = 0.04
"""How far the goal position lies below the object's start (m)."""
GOAL_DISPLAY = (-0.2, -0.06, 0.12)
"""Where the goal is shown, from the goal position (m)."""
TINT = (0.6, 0.72, 0.98)


class InHand(VecTask):
    """A hand turns an object until its orientation is that of the goal, then gets a new goal.

    Resets are those of the original: envs flagged in one step are reset in the next, before its simulation, and the
    observation that comes with `done` is the last of the old episode. Hand, object and goal are actors 0, 1 and 2.
    """

    sim_state: ClassVar[tuple[str, ...]] = ("root_states", "dof_state", "dof_targets")
    saved_buffers: ClassVar[tuple[str, ...]] = (
        *VecTask.saved_buffers, "successes", "goal_buf", "goal_pose", "object_forces", "push_probability",
        "consecutive_successes",
    )  # fmt: skip

    parts: ClassVar[dict[str, Part]]
    """Everything this hand can observe, by name."""
    layouts: ClassVar[dict[str, tuple[str, ...]]]
    """Observation type -> names of its parts, in order."""
    states_layout: ClassVar[str]
    """Observation type of the privileged states."""
    num_dofs: ClassVar[int]
    """Number of joints."""
    targeted_dofs: list[int]
    """Joints that actions move, in the order of actions."""
    num_targets: ClassVar[int]
    """Number of joints that actions move."""
    drive_mode: ClassVar[gymapi.DofDriveMode]
    """How joints are driven that the asset says nothing about."""
    hand_orientation: ClassVar[tuple[float, float, float, float]]
    """Quaternion of the hand actor."""
    object_place: ClassVar[tuple[float, float, float]]
    """Start of the object, from the hand actor (m)."""
    pen_height: ClassVar[float]
    """Height (m) at which a pen starts instead."""
    hand_height: ClassVar[float] = 0.5
    """Height of the hand actor (m)."""

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env = cfg["env"]
        self.observed = self._choose("observationType", env["observationType"], self.layouts)
        self.object_type = self._choose("objectType", env["objectType"], OBJECTS)
        self.asymmetric = bool(env["asymmetric_observations"])
        sizes = {name: part.size for name, part in self.parts.items()}
        env["numObservations"] = sum(sizes[name] for name in self.layouts[self.observed])
        env["numStates"] = sum(sizes[name] for name in self.layouts[self.states_layout]) if self.asymmetric else 0
        env["numActions"] = self.num_targets
        self.goal = in_hand.read_goal(env)
        self.force_scale = float(env["forceScale"])
        super().__init__(cfg, *args, **kwargs)
        self.max_episode_length = self._episode_length(env)
        self.force_decay = float(env["forceDecay"]) ** (self.dt / float(env["forceDecayInterval"]))
        self._acquire_state()

    @staticmethod
    def _choose(key: str, value: str, allowed: Any) -> str:
        if value not in allowed:
            raise TaskError(f"env.{key} is {value!r}; allowed are {', '.join(allowed)}")
        return str(value)

    def _episode_length(self, env: dict[str, Any]) -> int:
        seconds = float(env["resetTime"])
        return round(seconds / (self.control_freq_inv * self.dt)) if seconds > 0.0 else int(env["episodeLength"])

    @property
    def reads_forces(self) -> bool:
        """Whether joint and fingertip forces are observed by anyone."""
        return self.asymmetric or self.observed == self.states_layout

    # ---- scene -----------------------------------------------------------------------------------------------

    def create_scene(self) -> None:
        """Ground plane, and in each env a hand, an object and the picture of the goal."""
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        self.gym.add_ground(self.sim, plane)
        files, root = self.cfg["env"]["asset"], asset_root(self.cfg)
        hand = self.gym.load_asset(self.sim, root, files["assetFileName"], self._hand_options())
        self._dof_names = list(self.gym.get_asset_dof_names(hand))
        self._prepare_hand(hand)
        floating = gymapi.AssetOptions()
        floating.disable_gravity = True
        file = files[OBJECTS[self.object_type]]
        options = (gymapi.AssetOptions(), floating)
        thing, goal = (self.gym.load_asset(self.sim, root, file, option) for option in options)
        self._create_envs(hand, thing, goal)
        properties = self.gym.get_actor_rigid_body_properties(self.envs[-1], self.object_handle)
        self.object_mass = sum(body.mass for body in properties)

    def _hand_options(self) -> gymapi.AssetOptions:
        options = gymapi.AssetOptions()
        options.flip_visual_attachments = False
        options.fix_base_link = True
        options.collapse_fixed_joints = True
        options.disable_gravity = True
        options.thickness = 0.001
        options.angular_damping = 0.01
        options.use_physx_armature = True
        options.default_dof_drive_mode = self.drive_mode
        return options

    def _prepare_hand(self, hand: Any) -> None:
        """Look up names and set what belongs to the asset."""
        raise NotImplementedError

    def hand_dof_properties(self, hand: Any) -> Any:
        """Joint properties that every hand gets."""
        return self.gym.get_asset_dof_properties(hand)

    def _start_poses(self) -> tuple[gymapi.Transform, gymapi.Transform, gymapi.Transform]:
        """Poses of hand, object and displayed goal."""
        hand, thing, goal = gymapi.Transform(), gymapi.Transform(), gymapi.Transform()
        hand.p = gymapi.Vec3(0.0, 0.0, self.hand_height)
        hand.r = gymapi.Quat(*self.hand_orientation)
        x, y, z = self.object_place
        height = self.pen_height if self.object_type == "pen" else self.hand_height + z
        thing.p = gymapi.Vec3(x, y, height)
        self.goal_position = (x, y, height - GOAL_DROP)
        goal.p = gymapi.Vec3(*(a + b for a, b in zip(self.goal_position, GOAL_DISPLAY)))
        return hand, thing, goal

    def _create_envs(self, hand: Any, thing: Any, goal: Any) -> None:
        gym, n = self.gym, self.num_envs
        properties = self.hand_dof_properties(hand)
        poses = self._start_poses()
        spacing = float(self.cfg["env"]["envSpacing"])
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        aggregated = int(self.cfg["env"]["aggregateMode"]) >= 1
        bodies, shapes = (
            count(hand) + 2 for count in (gym.get_asset_rigid_body_count, gym.get_asset_rigid_shape_count)
        )
        self.envs, indices = [], []
        for i in range(n):
            env = gym.create_env(self.sim, lower, upper, int(math.sqrt(n)))
            if aggregated:
                gym.begin_aggregate(env, bodies, shapes, True)
            self.hand_handle = gym.create_actor(env, hand, poses[0], "hand", i, -1, 0)
            gym.set_actor_dof_properties(env, self.hand_handle, properties)
            if self.reads_forces:
                self._read_joint_forces(env)
            self.object_handle = gym.create_actor(env, thing, poses[1], "object", i, 0, 0)
            # In a group of its own the displayed goal touches nothing but the ground.
            goal_handle = gym.create_actor(env, goal, poses[2], "goal_object", i + n, 0, 0)
            if aggregated:
                gym.end_aggregate(env)
            if self.object_type != "block" and self.graphics_device_id >= 0:
                for handle in (self.object_handle, goal_handle):
                    gym.set_rigid_body_color(env, handle, 0, gymapi.MESH_VISUAL, gymapi.Vec3(*TINT))
            self.envs.append(env)
            handles = (self.hand_handle, self.object_handle, goal_handle)
            indices.append([gym.get_actor_index(env, handle, gymapi.DOMAIN_SIM) for handle in handles])
        self.first_object_body = gym.get_asset_rigid_body_count(hand)
        self.dof_properties = properties
        self.actor_ids = torch.tensor(indices, dtype=torch.int32, device=self.pipeline_device)

    def _read_joint_forces(self, env: Any) -> None:
        """Switch on the joint force readings of a new hand, where its forces are observed."""

    def _acquire_state(self) -> None:
        gym, sim, n, device = self.gym, self.sim, self.num_envs, self.pipeline_device
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim))
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        self.actors = self.root_states.view(n, -1, 13)
        self.dof_pos = self.dof_state.view(n, self.num_dofs, 2)[..., 0]
        self.dof_vel = self.dof_state.view(n, self.num_dofs, 2)[..., 1]
        self.object_start = self.actors[:, 1].clone()
        self.object_start[:, 7:] = 0.0
        limits = [[float(p["lower"]), float(p["upper"])] for p in self.dof_properties]
        self.lower_limits, self.upper_limits = torch.tensor(limits, device=device).unbind(1)
        self.targeted = torch.tensor(self.targeted_dofs, device=device)
        self.target_limits = (self.lower_limits[self.targeted], self.upper_limits[self.targeted])
        self.dof_targets = torch.zeros(n, self.num_dofs, device=device)
        self.goal_pose = torch.zeros(n, 7, device=device)
        self.goal_pose[:, :3] = torch.tensor(self.goal_position, device=device)
        self.goal_pose[:, 6] = 1.0
        self.goal_display = torch.tensor(GOAL_DISPLAY, device=device)
        self.goal_buf = torch.zeros(n, dtype=torch.bool, device=device)
        self.successes = torch.zeros(n, device=device)
        self.consecutive_successes = torch.zeros((), device=device)
        self.actions = torch.zeros(n, self.num_actions, device=device)
        self.object_forces = torch.zeros(n, 3, device=device)
        self.body_forces = torch.zeros(n, gym.get_env_rigid_body_count(self.envs[0]), 3, device=device)
        self.push_probability = self._draw_push_probabilities(n)
        self.moved_goals = self.actor_ids[:0, 2]
        """Displayed goals (K,) that still have to be written."""

    def dof_names(self) -> list[str]:
        """Names of the hand's joints."""
        return self._dof_names

    # ---- stepping --------------------------------------------------------------------------------------------

    def pre_physics_step(self, actions: Tensor) -> None:
        """Do the resets that the last step asked for, then set joint targets and push the object."""
        self._reset_pending()
        self.actions = actions
        self._set_targets(actions)
        if self.force_scale > 0.0:
            self._push_objects()

    def _reset_pending(self) -> None:
        goals = (self.goal_buf & (self.reset_buf == 0)).nonzero(as_tuple=False).squeeze(-1)
        self._draw_goals(goals)
        self.goal_buf.zero_()
        self.moved_goals = self.actor_ids[goals, 2]
        flagged = self.flagged_envs()
        if len(flagged) > 0:
            self.reset_envs(flagged)
            self.reset_buf.index_fill_(0, flagged, 0)
        elif len(goals) > 0:
            self._write_roots(self.moved_goals)

    def _draw_goals(self, env_ids: Tensor) -> None:
        """New goal orientations, shown beside the hand; the roots are not written."""
        uniform = self._uniform(len(env_ids), 2)
        self.goal_pose[env_ids, 3:] = in_hand.random_rotation(uniform)
        self.actors[env_ids, 2, :3] = self.goal_pose[env_ids, :3] + self.goal_display
        self.actors[env_ids, 2, 3:7] = self.goal_pose[env_ids, 3:]
        self.actors[env_ids, 2, 7:] = 0.0

    def _write_roots(self, actor_ids: Tensor) -> None:
        states, ids = gymtorch.unwrap_tensor(self.root_states), gymtorch.unwrap_tensor(actor_ids)
        self.gym.set_actor_root_state_tensor_indexed(self.sim, states, ids, len(actor_ids))

    def _set_targets(self, actions: Tensor) -> None:
        env, previous = self.cfg["env"], self.dof_targets[:, self.targeted]
        lower, upper = self.target_limits
        if env["useRelativeControl"]:
            reach = float(env["dofSpeedScale"]) * self.dt
            targets = in_hand.relative_targets(actions, previous, lower, upper, reach)
        else:
            share = float(env["actionsMovingAverage"])
            targets = in_hand.absolute_targets(actions, previous, lower, upper, share)
        self.dof_targets[:, self.targeted] = targets
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_targets))

    def _push_objects(self) -> None:
        """Forces on the objects (N, object frame): they fade, and now and then a new one replaces them."""
        self.object_forces *= self.force_decay
        fresh = torch.randn_like(self.object_forces) * (self.force_scale * self.object_mass)
        pushed = torch.rand(self.num_envs, device=self.pipeline_device) < self.push_probability
        self.object_forces = torch.where(pushed.unsqueeze(1), fresh, self.object_forces)
        self.body_forces[:, self.first_object_body] = self.object_forces
        forces = gymtorch.unwrap_tensor(self.body_forces)
        self.gym.apply_rigid_body_force_tensors(self.sim, forces, None, gymapi.LOCAL_SPACE)

    def _draw_push_probabilities(self, count: int) -> Tensor:
        low, high = (float(bound) for bound in self.cfg["env"]["forceProbRange"])
        return in_hand.push_probabilities(torch.rand(count, device=self.pipeline_device), (low, high))

    def post_physics_step(self) -> None:
        """Count, observe and reward; resets wait for the next step."""
        self.progress_buf += 1
        self.count_randomize_steps()
        self.compute_observations()
        self.compute_reward()

    def compute_observations(self) -> None:
        """Refresh the state and fill `obs_buf` and `states_buf`."""
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.relative = relative_rotation(self.actors[:, 1, 3:7], self.goal_pose[:, 3:])
        features = self.features()
        torch.cat([features[name] for name in self.layouts[self.observed]], dim=1, out=self.obs_buf)
        if self.asymmetric:
            torch.cat([features[name] for name in self.layouts[self.states_layout]], dim=1, out=self.states_buf)

    def features(self) -> dict[str, Tensor]:
        """Observed quantities by name, (N, size) each."""
        thing = self.actors[:, 1]
        span = self.upper_limits - self.lower_limits
        return {
            "dof_pos": (2.0 * self.dof_pos - self.upper_limits - self.lower_limits) / span,
            "dof_vel": self.dof_vel * in_hand.VELOCITY_SCALE,
            "object_pos": thing[:, :3],
            "object_pose": thing[:, :7],
            "object_linvel": thing[:, 7:10],
            "object_angvel": thing[:, 10:] * in_hand.VELOCITY_SCALE,
            "goal_pose": self.goal_pose,
            "relative_rotation": self.relative,
            "actions": self.actions,
        }

    def compute_reward(self) -> None:
        """Fill `rew_buf`; flag envs whose object fell, whose time is over or that have won often enough."""
        distance = torch.linalg.vector_norm(self.actors[:, 1, :3] - self.goal_pose[:, :3], dim=1)
        angle = rotation_angle(self.relative)
        limit = self.max_episode_length
        outcome = in_hand.judge(distance, angle, self.actions, self.successes, self.progress_buf, limit, self.goal)
        self.rew_buf.copy_(self.sum_terms(outcome.terms))
        first = outcome.reached & (self.successes == 0.0)
        self.successes += outcome.reached
        self.goal_buf |= outcome.reached
        self.reset_buf.copy_(outcome.ended)
        self.progress_buf.copy_(outcome.progress)
        factor = float(self.cfg["env"]["averFactor"])
        self.consecutive_successes.copy_(
            in_hand.average_successes(self.consecutive_successes, self.successes, outcome.ended, factor)
        )
        self.measure(totals={"successes": outcome.reached, "success_rate": first, "drops": outcome.fell})
        self.extras["consecutive_successes"] = self.consecutive_successes

    def episode_report(self) -> dict[str, Tensor]:
        """As `VecTask`, with the mean over steps that the original calls consecutive successes."""
        return {**super().episode_report(), "consecutive_successes": self.consecutive_successes.clone()}

    # ---- resets ----------------------------------------------------------------------------------------------

    def reset_idx(self, env_ids: Tensor) -> None:
        """Object back above the hand in a random orientation, joints near zero, a new goal."""
        env, k = self.cfg["env"], len(env_ids)
        self._draw_goals(env_ids)
        self.goal_buf[env_ids] = False
        self._reset_objects(env_ids)
        uniform = self._uniform(k, 2 * self.num_dofs)
        positions, velocities = uniform[:, : self.num_dofs], uniform[:, self.num_dofs :]
        interval = float(env["resetDofPosRandomInterval"])
        start = in_hand.start_positions(positions, self.lower_limits, self.upper_limits, interval)
        self.dof_pos[env_ids] = start
        self.dof_vel[env_ids] = float(env["resetDofVelRandomInterval"]) * velocities
        self.dof_targets[env_ids] = start
        self._write_reset(env_ids)
        self.push_probability[env_ids] = self._draw_push_probabilities(k)
        self.object_forces[env_ids] = 0.0
        self.successes[env_ids] = 0.0

    def _reset_objects(self, env_ids: Tensor) -> None:
        uniform = self._uniform(len(env_ids), 5)
        thing = self.object_start[env_ids]
        thing[:, :3] += float(self.cfg["env"]["resetPositionNoise"]) * uniform[:, :3]
        pen = self.object_type == "pen"
        thing[:, 3:7] = in_hand.random_pen_rotation(uniform[:, 3]) if pen else in_hand.random_rotation(uniform[:, 3:])
        self.actors[env_ids, 1] = thing

    def _write_reset(self, env_ids: Tensor) -> None:
        """Write the states of new episodes, and of goals that moved in the same step."""
        self._write_roots(torch.cat((self.actor_ids[env_ids, 1:].flatten(), self.moved_goals)))
        hands, k = gymtorch.unwrap_tensor(self.actor_ids[env_ids, 0].contiguous()), len(env_ids)
        gym, sim = self.gym, self.sim
        gym.set_dof_position_target_tensor_indexed(sim, gymtorch.unwrap_tensor(self.dof_targets), hands, k)
        gym.set_dof_state_tensor_indexed(sim, gymtorch.unwrap_tensor(self.dof_state), hands, k)

    def _uniform(self, rows: int, columns: int) -> Tensor:
        return torch.empty(rows, columns, device=self.pipeline_device).uniform_(-1.0, 1.0)
