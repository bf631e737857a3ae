"""Fixed tendons in PhysX's terms.

What PhysX 5 does with the attributes of a tendon was measured (docs/isaacgym.md, "Tendons"): its length is the sum of
gearing times joint position, angles in degrees; joint i gets the force or torque
``forceCoefficient_i / n * (stiffness * (rest - length) + limit force)``, n being the number of joints of the tendon,
and the reaction acts not on the neighbouring link but on the link that the tendon starts from. A joint that does not
hang directly on another joint of the tendon is left out without a word.

Here the coefficients are chosen such that the length is ``sum(coef * q)`` in m or rad and the torques on the joints
are in the proportion of their coefficients, as the principle of virtual work demands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, Vt

from isaacgym.engine import spatial
from isaacgym.engine.asset import Asset, AssetError, Tendon


@dataclass(frozen=True)
class TendonJoint:
    """One joint of a tendon as PhysX takes it; the first of a tendon is the one nearest the root."""

    dof: int
    gearing: float
    """Length per degree (hinge) or per metre (slide)."""
    force_coefficient: float


def tendon_joints(asset: Asset, tendon: Tendon) -> list[TendonJoint]:
    """Joints of a tendon in DOF order, with zero-coefficient ones put in where they are needed to connect the others.

    Raises:
        AssetError: when PhysX cannot represent the tendon; the message names tendon and reason.
    """
    coefs = dict.fromkeys(_connected(asset, tendon), 0.0)
    for name, coef in zip(tendon.joints, tendon.coefs, strict=True):
        coefs[asset.dof_names.index(name)] += coef
    dofs = sorted(coefs)
    forces = _force_coefficients(asset, dofs, np.array([coefs[dof] for dof in dofs]))
    made = []
    for dof, force in zip(dofs, forces, strict=True):
        unit = 1.0 if asset.dof_joints[dof][1].kind == "prismatic" else math.pi / 180.0
        made.append(TendonJoint(dof, coefs[dof] * unit, float(force)))
    return made


def physx_order(asset: Asset) -> list[int]:
    """Gym's tendon index of every PhysX tendon: PhysX sorts by the names of the first joint's prim and the tendon."""
    firsts = [_connected(asset, tendon)[0] for tendon in asset.tendons]
    return sorted(range(len(firsts)), key=lambda number: (dof_prim(firsts[number]), tendon_name(number)))


def dof_prim(dof: int) -> str:
    """Name of the prim of a joint with one DOF."""
    return f"d{dof}"


def tendon_name(number: int) -> str:
    """Name of the schema instance of an asset's tendon."""
    return f"t{number}"


def _connected(asset: Asset, tendon: Tendon) -> list[int]:
    """DOFs of the tendon and of all joints between them."""
    body_of = [body for body, _ in asset.dof_joints]
    first = min(asset.dof_names.index(name) for name in tendon.joints)
    bodies = {body_of[first]}
    for name in tendon.joints:
        body = body_of[asset.dof_names.index(name)]
        path = []
        while body not in bodies:
            path.append(body)
            body = asset.bodies[body].parent
            if body < 0:
                raise AssetError(
                    f"{asset.path}: tendon {tendon.name!r}: joint {name!r} does not hang below its first joint "
                    f"{asset.dof_names[first]!r}; PhysX needs one joint that carries all others"
                )
        bodies.update(path)
    dofs = []
    for body in sorted(bodies):
        own = [dof for dof, where in enumerate(body_of) if where == body]
        if len(own) != 1:
            raise AssetError(
                f"{asset.path}: tendon {tendon.name!r} runs over body {asset.bodies[body].name!r}, which has "
                f"{len(own)} DOFs; PhysX needs exactly one on each body along a tendon"
            )
        dofs += own
    return dofs


def _force_coefficients(asset: Asset, dofs: list[int], coefs: np.ndarray) -> np.ndarray:
    """Force coefficients (n,) that put joint torques into the proportion of ``coefs``.

    With the tendon force F (stiffness times excess length), joint i gets ``F * coefs[i] / mean(coefs**2)``: the
    torque of one joint alone is F / coef, PhysX's usual choice, and the torques of several conserve energy. PhysX
    applies each joint's own part between its link and the tendon's first link, so that a part also loads the hinges
    in between: the triangular system below. Axes are taken at zero position; for parallel ones that is exact.
    """
    used = coefs[coefs != 0.0]
    wanted = coefs / float(np.mean(used**2)) if len(used) else coefs
    poses = asset.forward_kinematics(None)
    bodies = [asset.dof_joints[dof][0] for dof in dofs]
    joints = [asset.dof_joints[dof][1] for dof in dofs]
    axes = [spatial.rotate(poses[body, 3:], joint.axis) for body, joint in zip(bodies, joints, strict=True)]
    kinds = [joint.kind for joint in joints]
    loads = np.eye(len(dofs))
    for i, above in enumerate(bodies):
        for j in range(i + 1, len(dofs)):
            if kinds[i] == kinds[j] and _is_below(asset, bodies[j], above):
                loads[i, j] = float(axes[i] @ axes[j])
    return len(dofs) * np.linalg.solve(loads, wanted)


def _is_below(asset: Asset, body: int, above: int) -> bool:
    while body > above:
        body = asset.bodies[body].parent
    return body == above


def write(prim: Usd.Prim, name: str, joint: TendonJoint, root_props: np.void | None) -> None:
    """Make ``prim`` a joint of the tendon ``name``; ``root_props`` (a TENDON_DTYPE row) is for the first joint only."""
    prim.AddAppliedSchema(f"PhysxTendonAxis{'' if root_props is None else 'Root'}API:{name}")
    floats = Sdf.ValueTypeNames.FloatArray
    prim.CreateAttribute(f"physxTendon:{name}:gearing", floats).Set(Vt.FloatArray([joint.gearing]))
    prim.CreateAttribute(f"physxTendon:{name}:forceCoefficient", floats).Set(Vt.FloatArray([joint.force_coefficient]))
    if root_props is None:
        return
    limited = bool(root_props["is_fixed_limited"])
    values = {
        "stiffness": root_props["stiffness"],
        "damping": root_props["damping"],
        "limitStiffness": root_props["limit_stiffness"],
        "restLength": root_props["fixed_spring_rest_length"],
        "lowerLimit": root_props["fixed_lower_limit"] if limited else -math.inf,
        "upperLimit": root_props["fixed_upper_limit"] if limited else math.inf,
    }
    for key, value in values.items():
        prim.CreateAttribute(f"physxTendon:{name}:{key}", Sdf.ValueTypeNames.Float).Set(float(value))
