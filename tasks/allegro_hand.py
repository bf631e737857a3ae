"""AllegroHand: a hand of 16 actuated joints turns a block, an egg or a pen."""

from __future__ import annotations

from typing import Any

from isaacgym import gymapi  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import in_hand
from tasks.base.errors import TaskError
from tasks.hand import InHand

DRIVE = {"effort": 0.5, "stiffness": 3.0, "damping": 0.1, "friction": 0.01, "armature": 0.001}
"""Joint properties: N m, N m/rad, N m s/rad, -, kg m^2."""
PARTS = in_hand.parts(num_dofs=16, num_actions=16, fingertips=0)
LAYOUTS = {
    "full_no_vel": ("dof_pos", "object_pose", "goal_pose", "relative_rotation", "actions"),
    "full": (
        "dof_pos", "dof_vel", "object_pose", "object_linvel", "object_angvel", "goal_pose", "relative_rotation",
        "actions",
    ),
    "full_state": (
        "dof_pos", "dof_vel", "dof_force", "object_pose", "object_linvel", "object_angvel", "goal_pose",
        "relative_rotation", "actions",
    ),
}  # fmt: skip
"""Observation type -> its parts, in order."""


class AllegroHand(InHand):
    """Allegro hand, palm up. Joint forces are observed as 0: the original never switches their readings on."""

    description = in_hand.describe(
        "An Allegro hand turns an object that lies on its palm to given orientations. Joint forces read 0, as in the "
        "original, which never switches their readings on.",
        LAYOUTS,
        PARTS,
        "16 numbers in [-1, 1]: joint position targets, from one limit to the other; "
        "{env.actionsMovingAverage} of it is mixed with the last target. With `env.useRelativeControl` an action "
        "moves the target, by at most {env.dofSpeedScale} rad/s instead.",
        held=("1.000", "0.67 mm"),
    )
    parts = PARTS
    layouts = LAYOUTS
    states_layout = "full_state"
    num_dofs = 16
    num_targets = 16
    drive_mode = gymapi.DOF_MODE_POS
    hand_orientation = (0.283045, 0.683330, -0.621782, 0.257551)  # half a turn about y, then 0.47 about x, 0.25 about z
    object_place = (0.0, -0.2, 0.06)
    pen_height = 0.52

    def _prepare_hand(self, hand: Any) -> None:
        if len(self._dof_names) != self.num_dofs:
            raise TaskError(f"the hand's asset has {len(self._dof_names)} joints; {self.num_dofs} are needed")
        self.targeted_dofs = list(range(self.num_dofs))

    def hand_dof_properties(self, hand: Any) -> Any:
        """The asset's joint limits, and drives that are the same for all joints."""
        properties = super().hand_dof_properties(hand)
        for field, value in DRIVE.items():
            properties[field].fill(value)
        return properties

    def _acquire_state(self) -> None:
        super()._acquire_state()
        self.dof_force = torch.zeros(self.num_envs, self.num_dofs, device=self.pipeline_device)

    def features(self) -> dict[str, Tensor]:
        """As `InHand`, with joint forces of 0."""
        return {**super().features(), "dof_force": self.dof_force}
