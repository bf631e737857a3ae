"""ShadowHand: a hand of 24 joints, 20 of them actuated, turns a block, an egg or a pen."""

from __future__ import annotations

from typing import Any

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
from torch import Tensor

from tasks import in_hand
from tasks.base.errors import TaskError
from tasks.hand import InHand

TENDONS = ("robot0:T_FFJ1c", "robot0:T_MFJ1c", "robot0:T_RFJ1c", "robot0:T_LFJ1c")
"""Tendons that couple the last two joints of each finger."""
TENDON_LIMIT_STIFFNESS = 30.0
TENDON_DAMPING = 0.1


FINGERTIPS = ("robot0:ffdistal", "robot0:mfdistal", "robot0:rfdistal", "robot0:lfdistal", "robot0:thdistal")
PARTS = in_hand.parts(num_dofs=24, num_actions=20, fingertips=len(FINGERTIPS))
LAYOUTS = {
    "openai": ("fingertip_pos", "object_pos", "relative_rotation", "actions"),
    "full_no_vel": ("dof_pos", "object_pose", "goal_pose", "relative_rotation", "fingertip_pos", "actions"),
    "full": (
        "dof_pos", "dof_vel", "object_pose", "object_linvel", "object_angvel", "goal_pose", "relative_rotation",
        "fingertip_states", "actions",
    ),
    "full_state": (
        "dof_pos", "dof_vel", "dof_force", "object_pose", "object_linvel", "object_angvel", "goal_pose",
        "relative_rotation", "fingertip_states", "fingertip_forces", "actions",
    ),
}  # fmt: skip
"""Observation type -> its parts, in order."""


class ShadowHand(InHand):
    """Shadow hand, palm up; the drives come with the asset."""

    description = in_hand.describe(
        "A Shadow hand turns an object that lies on its palm to given orientations.",
        LAYOUTS,
        PARTS,
        "20 numbers in [-1, 1]: position targets of the actuated joints, from one limit to the other; "
        "{env.actionsMovingAverage} of it is mixed with the last target. With `env.useRelativeControl` an action "
        "moves the target, by at most {env.dofSpeedScale} rad/s instead.",
        held=("0.961", "0.68 mm"),
    )
    parts = PARTS
    layouts = LAYOUTS
    states_layout = "full_state"
    num_dofs = 24
    num_targets = 20
    drive_mode = gymapi.DOF_MODE_NONE
    hand_orientation = (0.0, 0.0, 0.0, 1.0)
    object_place = (0.0, -0.39, 0.10)
    pen_height = 0.52

    def _prepare_hand(self, hand: Any) -> None:
        gym = self.gym
        joints = [gym.get_asset_actuator_joint_name(hand, i) for i in range(gym.get_asset_actuator_count(hand))]
        self.targeted_dofs = [self._dof_names.index(joint) for joint in joints]
        if len(joints) != self.num_targets or len(self._dof_names) != self.num_dofs:
            raise TaskError(
                f"the hand's asset has {len(self._dof_names)} joints and {len(joints)} actuators; "
                f"{self.num_dofs} and {self.num_targets} are needed"
            )
        self._couple_joints(hand)
        self._find_fingertips(hand)
        if self.reads_forces:
            for body in self.fingertip_bodies:
                gym.create_asset_force_sensor(hand, body, gymapi.Transform())

    def _find_fingertips(self, hand: Any) -> None:
        self.fingertip_bodies = [self.gym.find_asset_rigid_body_index(hand, name) for name in FINGERTIPS]
        missing = [name for name, body in zip(FINGERTIPS, self.fingertip_bodies) if body < 0]
        if missing:
            raise TaskError(f"the hand's asset has no body {', '.join(missing)}")

    def _couple_joints(self, hand: Any) -> None:
        tendons = self.gym.get_asset_tendon_properties(hand)
        for i, tendon in enumerate(tendons):
            if self.gym.get_asset_tendon_name(hand, i) in TENDONS:
                tendon.limit_stiffness = TENDON_LIMIT_STIFFNESS
                tendon.damping = TENDON_DAMPING
        self.gym.set_asset_tendon_properties(hand, tendons)

    def _read_joint_forces(self, env: Any) -> None:
        self.gym.enable_actor_dof_force_sensors(env, self.hand_handle)

    def _acquire_state(self) -> None:
        super()._acquire_state()
        bodies = gymtorch.wrap_tensor(self.gym.acquire_rigid_body_state_tensor(self.sim))
        self.bodies = bodies.view(self.num_envs, -1, 13)
        if self.reads_forces:
            forces = gymtorch.wrap_tensor(self.gym.acquire_dof_force_tensor(self.sim))
            sensors = gymtorch.wrap_tensor(self.gym.acquire_force_sensor_tensor(self.sim))
            self.dof_force = forces.view(self.num_envs, self.num_dofs)
            self.sensors = sensors.view(self.num_envs, 6 * len(FINGERTIPS))

    def features(self) -> dict[str, Tensor]:
        """As `InHand`, with the fingertips and, where they are observed, all forces."""
        self.gym.refresh_rigid_body_state_tensor(self.sim)
        tips = self.bodies[:, self.fingertip_bodies]
        features = {
            **super().features(),
            "fingertip_pos": tips[..., :3].flatten(1),
            "fingertip_states": tips.flatten(1),
        }
        if self.reads_forces:
            self.gym.refresh_dof_force_tensor(self.sim)
            self.gym.refresh_force_sensor_tensor(self.sim)
            features["dof_force"] = self.dof_force * in_hand.FORCE_SCALE
            features["fingertip_forces"] = self.sensors * in_hand.FORCE_SCALE
        return features
