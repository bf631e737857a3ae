"""Domain randomisation helpers (API notes, section 13.5).

A randomisation is described by a mapping with the keys
    range: (a, b), bounds, or mean and spread for "gaussian";
    distribution: "uniform", "loguniform" or "gaussian";
    operation: "additive" or "scaling";
    schedule, schedule_steps: optional "linear" or "constant" onset over so many steps;
    num_buckets: optional number of levels to which samples are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._params import SimParams

MAX_MATERIALS = 64000
"""PhysX holds at most this many materials (pairs of friction and restitution)."""

Randomization = Mapping[str, Any]


def get_property_setter_map(gym: Any) -> dict[str, Callable[..., Any]]:
    """Return the gym's setter for each kind of randomised property."""
    return {
        "dof_properties": gym.set_actor_dof_properties,
        "tendon_properties": gym.set_actor_tendon_properties,
        "rigid_body_properties": gym.set_actor_rigid_body_properties,
        "rigid_shape_properties": gym.set_actor_rigid_shape_properties,
        "sim_params": gym.set_sim_params,
    }


def get_property_getter_map(gym: Any) -> dict[str, Callable[..., Any]]:
    """Return the gym's getter for each kind of randomised property."""
    return {
        "dof_properties": gym.get_actor_dof_properties,
        "tendon_properties": gym.get_actor_tendon_properties,
        "rigid_body_properties": gym.get_actor_rigid_body_properties,
        "rigid_shape_properties": gym.get_actor_rigid_shape_properties,
        "sim_params": gym.get_sim_params,
    }


def get_default_setter_args(gym: Any) -> dict[str, list[Any]]:
    """Return the extra arguments of each setter; bodies recompute their inertia."""
    return {
        "dof_properties": [],
        "tendon_properties": [],
        "rigid_body_properties": [True],
        "rigid_shape_properties": [],
        "sim_params": [],
    }


def generate_random_samples(
    attr_randomization_params: Randomization, shape: Any, curr_gym_step_count: int, extern_sample: Any = None
) -> Any:
    """Return samples of a randomisation.

    Args:
        attr_randomization_params: the randomisation, see the module's docstring.
        shape: shape of the samples.
        curr_gym_step_count: step, for the schedule.
        extern_sample: samples drawn elsewhere, to which only the schedule is applied.

    While a schedule runs, additive samples are scaled towards 0 and scaling samples towards 1.
    """
    params = attr_randomization_params
    onset = _onset(params, curr_gym_step_count)
    rest = {"additive": 0.0, "scaling": 1.0 - onset}[params["operation"]]
    if extern_sample is not None:
        return extern_sample * onset + rest
    first, second = params["range"]
    distribution = params["distribution"]
    if distribution == "gaussian":
        return np.random.normal(first * onset + rest, second * onset, shape)
    low, high = first * onset + rest, second * onset + rest
    if distribution == "uniform":
        return np.random.uniform(low, high, shape)
    if distribution == "loguniform":
        return np.exp(np.random.uniform(np.log(low), np.log(high), shape))
    raise ValueError(f"distribution {distribution!r} is not one of gaussian, uniform, loguniform")


def _onset(params: Randomization, step: int) -> float:
    """Return how much of a randomisation acts at ``step``, 0..1."""
    schedule = params.get("schedule")
    if schedule is None:
        return 1.0
    steps = params["schedule_steps"]
    if schedule == "linear":
        return min(step, steps) / steps
    if schedule == "constant":
        return 0.0 if step < steps else 1.0
    raise ValueError(f"schedule {schedule!r} is not one of linear, constant")


def get_bucketed_val(new_prop_val: Any, attr_randomization_params: Randomization) -> Any:
    """Return the greatest bucket edge at or below a value (or below each element of an array).

    There are ``num_buckets`` lower edges, evenly spread over the range, or over two standard deviations (square
    root of the second number) about the mean of a distribution that is not uniform. Smaller values give the first.
    """
    low, high = attr_randomization_params["range"]
    if attr_randomization_params["distribution"] != "uniform":
        mean, reach = low, 2.0 * math.sqrt(high)
        low, high = mean - reach, mean + reach
    count = attr_randomization_params["num_buckets"]
    edges = low + (high - low) * np.arange(count) / count
    return edges[np.maximum(np.searchsorted(edges, new_prop_val, side="right") - 1, 0)]


def apply_random_samples(
    prop: Any,
    og_prop: Any,
    attr: str,
    attr_randomization_params: Randomization,
    curr_gym_step_count: int,
    extern_sample: Any = None,
    bucketing_randomization_params: Randomization | None = None,
) -> None:
    """Randomise one attribute in place.

    Args:
        prop: what to change: SimParams ("gravity", "rest_offset"), a structured array, or a property object.
        og_prop: the original values: a mapping or structured array by attribute name.
        attr: name of the attribute.
        attr_randomization_params: the randomisation, see the module's docstring.
        curr_gym_step_count: step, for the schedule.
        extern_sample: samples drawn elsewhere.
        bucketing_randomization_params: whose buckets to round to; those of the randomisation itself if None.
    """
    params = attr_randomization_params
    if isinstance(prop, SimParams):
        _randomize_sim(prop, og_prop, attr, params, curr_gym_step_count)
    elif isinstance(prop, np.ndarray):
        sample = generate_random_samples(params, prop[attr].shape, curr_gym_step_count, extern_sample)
        prop[attr] = _combine(params, og_prop[attr], sample)
    else:
        sample = generate_random_samples(params, 1, curr_gym_step_count, extern_sample)
        value = _combine(params, og_prop[attr], sample)
        buckets = bucketing_randomization_params or params
        if buckets.get("num_buckets", 0) > 0:
            value = get_bucketed_val(value, buckets)
        setattr(prop, attr, value)


def _combine(params: Randomization, original: Any, sample: Any) -> Any:
    """Return the original value changed by a sample."""
    return original * sample if params["operation"] == "scaling" else original + sample


def _randomize_sim(prop: SimParams, og_prop: Any, attr: str, params: Randomization, step: int) -> None:
    """Randomise gravity (each axis by its own sample) or the rest offset (which becomes the sample)."""
    if attr == "gravity":
        sample = generate_random_samples(params, 3, step)
        for axis, value in zip("xyz", sample, strict=True):
            setattr(prop.gravity, axis, _combine(params, getattr(og_prop["gravity"], axis), value))
    elif attr == "rest_offset":
        prop.physx.rest_offset = generate_random_samples(params, 1, step)


def check_buckets(gym: Any, envs: Sequence[Any], dr_params: Mapping[str, Any]) -> None:
    """Raise ValueError if a randomisation of frictions and restitutions needs more materials than PhysX has.

    Args:
        gym: the Gym.
        envs: the environments.
        dr_params: randomisation settings; "actor_params" maps actor names to property kinds to attributes.
    """
    shape_params = {
        name: kinds["rigid_shape_properties"]
        for name, kinds in dr_params["actor_params"].items()
        if "rigid_shape_properties" in kinds
    }
    buckets = sum(_count_buckets(attributes) for attributes in shape_params.values())
    if buckets > MAX_MATERIALS:
        raise ValueError(f"domain randomisation asks for {buckets} material buckets; PhysX has {MAX_MATERIALS}")
    shapes = 0
    for env in envs:
        for index in range(gym.get_actor_count(env)):
            actor = gym.get_actor_handle(env, index)
            if gym.get_actor_name(env, actor) in shape_params:
                shapes += gym.get_actor_rigid_shape_count(env, actor)
    if shapes > MAX_MATERIALS and buckets == 0:
        raise ValueError(
            f"domain randomisation gives {shapes} shapes their own material and PhysX has {MAX_MATERIALS}: "
            "set num_buckets for friction or restitution"
        )


def _count_buckets(attributes: Mapping[str, Any]) -> int:
    """Return the number of materials that bucketed friction and restitution can make; 0 without buckets."""
    counts = [attributes[name]["num_buckets"] for name in ("friction", "restitution") if _bucketed(attributes, name)]
    return math.prod(counts) if counts else 0


def _bucketed(attributes: Mapping[str, Any], name: str) -> bool:
    return name in attributes and "num_buckets" in attributes[name]
