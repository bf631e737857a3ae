"""Actuators and tendons of MJCF files, and what actuators do to the joints they drive (Isaac Gym API notes 9.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from isaacgym.engine.asset import Actuator, Asset, Joint, Tendon
from isaacgym.engine.mjcf_model import Model
from isaacgym.engine.xmlfile import Element, Item

SUPPORTED = ("motor", "position", "velocity", "general")
OTHER_TRANSMISSIONS = ("site", "body", "cranksite", "slidersite")
POSITION, VELOCITY = 1, 2


def read(model: Model, asset: Asset, options: Any, notes: list[str]) -> None:
    """Adds tendons and actuators to the asset and sets the drives of the actuated joints."""
    joints = {joint.name: joint for _, joint in asset.dof_joints}
    for element in model.section("tendon"):
        if element.tag == "spatial":
            asset.spatial_tendons += 1
            notes.append(f"{Item(element).where}: spatial tendon dropped; only fixed ones act")
        elif element.tag == "fixed":
            tendon = _tendon(model, element, joints, len(asset.tendons), options, notes)
            asset.tendons += [tendon] if tendon is not None else []
        else:
            raise Item(element).error(f"unknown tendon <{element.tag}>; allowed is fixed, spatial")
    for element in model.section("actuator"):
        item = model.item(element)
        if item.tag not in SUPPORTED:
            notes.append(f"{item.where}: actuator <{item.tag}> dropped; supported is {', '.join(SUPPORTED)}")
            continue
        joint = _target(item, joints, asset.tendons, notes)
        if joint is not None:
            actuator = _actuator(model, item, joint, notes)
            asset.actuators.append(actuator)
            _drive(joint, actuator, item, notes)


# ---- tendons


def _tendon(
    model: Model, element: Element, joints: dict[str, Joint], index: int, options: Any, notes: list[str]
) -> Tendon | None:
    """The tendon; None, with a note, where it runs over a joint of another actor (shared include files do that)."""
    item = model.item(element, tag="tendon")
    tendon = Tendon(item.text("name") or f"tendon{index}", [], [])
    for wrap in model.children(element):
        part = Item(wrap)
        name = part.required("joint")
        if name not in joints:
            notes.append(f"{part.where}: tendon '{tendon.name}' dropped: '{name}' is no DOF of the actor")
            return None
        if part.number("coef") != 0:
            tendon.joints.append(name)
            tendon.coefs.append(part.number("coef"))
    tendon.stiffness = item.number("stiffness", 0.0)
    tendon.damping = item.number("damping", 0.0)
    tendon.spring_length = max(item.number("springlength", -1.0), 0.0)
    tendon.limit_stiffness = float(options.tendon_limit_stiffness)
    tendon.limited = model.is_limited(item, "limited", "range")
    if item.has("range"):
        tendon.lower, tendon.upper = (float(value) for value in item.vector("range", 2))
    if not tendon.joints:
        notes.append(f"{item.where}: tendon '{tendon.name}' has no joint with a coefficient")
    return tendon


# ---- actuators


def _target(item: Item, joints: dict[str, Joint], tendons: list[Tendon], notes: list[str]) -> Joint | None:
    """The joint an actuator drives; None, with a note, where it drives something else."""
    name = item.text("joint") or item.text("jointinparent")
    if name is not None:
        if name not in joints:
            notes.append(f"{item.where}: actuator dropped: '{name}' is no DOF of the actor")
            return None
        return joints[name]
    tendon_name = item.text("tendon")
    if tendon_name is not None:
        tendon = next((each for each in tendons if each.name == tendon_name), None)
        if tendon is not None and tendon.joints:
            notes.append(f"{item.where}: actuator on tendon '{tendon_name}' acts on its first joint only")
            return joints[tendon.joints[0]]
        notes.append(f"{item.where}: actuator on tendon '{tendon_name}' dropped")
        return None
    if any(item.has(other) for other in OTHER_TRANSMISSIONS):
        notes.append(f"{item.where}: actuator dropped; only joints can be driven")
        return None
    raise item.error("actuator without a target; the attribute 'joint' is needed")


def _actuator(model: Model, item: Item, joint: Joint, notes: list[str]) -> Actuator:
    actuator = Actuator(item.text("name") or joint.name, joint.name, item.tag, gear=item.number("gear", 1.0))
    if item.tag == "position":
        actuator.kp, actuator.kv = item.number("kp", 1.0), item.number("kv", 0.0)
        if item.has("dampratio"):
            notes.append(f"{item.where}: dampratio of '{actuator.name}' dropped; use kv")
    elif item.tag == "velocity":
        actuator.kv = item.number("kv", 1.0)
    elif item.tag == "general":
        actuator.kp, actuator.kv = _affine_gains(item, actuator.name, notes)
    for name in ("ctrl", "force"):
        limited = model.is_limited(item, f"{name}limited", f"{name}range")
        setattr(actuator, f"{name}_limited", limited)
        if item.has(f"{name}range"):
            low, high = item.vector(f"{name}range", 2)
            setattr(actuator, f"{name}_range", (float(low), float(high)))
    inherit = item.number("inheritrange", 0.0)
    if inherit > 0 and joint.has_limits:
        middle, half = (joint.upper + joint.lower) / 2, (joint.upper - joint.lower) / 2 * inherit
        actuator.ctrl_limited, actuator.ctrl_range = True, (middle - half, middle + half)
    return actuator


def _affine_gains(item: Item, name: str, notes: list[str]) -> tuple[float, float]:
    """(kp, kv) of a general actuator whose bias is -kp*q - kv*v; zeros where it is a plain motor."""
    gain, bias = item.numbers("gainprm"), item.numbers("biasprm")
    has_bias = item.text("biastype", "none") == "affine" and bias is not None
    terms = np.zeros(3)
    if has_bias and bias is not None:
        terms[: min(3, len(bias))] = bias[:3]
    strength = float(gain[0]) if gain is not None and len(gain) else 1.0
    kp, kv = float(-terms[1]), float(-terms[2])
    if not has_bias and strength != 1:
        notes.append(f"{item.where}: gain {strength:g} of general actuator '{name}' is not in its gear")
    if has_bias and strength != (kp or kv):
        notes.append(f"{item.where}: gain and bias of general actuator '{name}' differ: the bias is used")
    return kp, kv


def _drive(joint: Joint, actuator: Actuator, item: Item, notes: list[str]) -> None:
    """Drive mode, gains and effort limit that an actuator gives its joint; motors leave the mode alone."""
    squared = actuator.gear**2
    if actuator.kp > 0:
        if joint.stiffness:
            notes.append(f"{item.where}: position actuator '{actuator.name}' replaces the spring of '{joint.name}'")
        joint.drive_mode = POSITION
        joint.stiffness = actuator.kp * squared
        joint.damping += actuator.kv * squared
    elif actuator.kv > 0:
        joint.drive_mode = VELOCITY
        joint.stiffness = 0.0
        joint.damping = actuator.kv * squared
    if actuator.force_limited:
        joint.effort = min(joint.effort, abs(actuator.gear) * float(np.abs(actuator.force_range).max()))
