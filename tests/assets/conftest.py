"""Comparison of our robot files with tables of numbers in tests/data."""

import json
from pathlib import Path

import numpy as np
import pytest

from isaacgym._params import AssetOptions
from isaacgym.engine import read_mjcf, read_urdf, spatial
from isaacgym.engine.asset import FLT_MAX

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def load_asset():
    """A loader of the repository's assets: (file below assets/, options by name) -> Asset."""

    def load(file, **values):
        options = AssetOptions()
        for name, value in values.items():
            setattr(options, name, value)
        path = REPOSITORY / "assets" / file
        return read_urdf.load(path, options) if path.suffix == ".urdf" else read_mjcf.load(path, options)

    return load


@pytest.fixture
def table():
    """A reader of tests/data/<name>.json."""

    def read(name):
        return json.loads((REPOSITORY / "tests" / "data" / f"{name}.json").read_text())

    return read


def successive_poses(asset, q):
    """Poses (B, 7) when the joints of a body turn one after the other, as the tables compute them."""
    poses, values = [], iter(q)
    for body in asset.bodies:
        pose = spatial.identity_pose()
        if body.parent >= 0:
            pose = spatial.compose(poses[body.parent], (body.pos, body.quat))
        for joint in body.joints:
            if joint.kind == "prismatic":
                pose = spatial.compose(pose, (joint.axis * next(values), spatial.identity_quat()))
            elif joint.kind == "revolute":
                turn = spatial.from_axis_angle(joint.axis, next(values))
                pose = spatial.compose(pose, (joint.anchor - spatial.rotate(turn, joint.anchor), turn))
        poses.append(pose)
    return np.array([np.concatenate(pose) for pose in poses])


def centre_of_mass(asset, poses):
    total = sum(body.mass for body in asset.bodies)
    places = [pose[:3] + spatial.rotate(pose[3:], body.com) for body, pose in zip(asset.bodies, poses, strict=True)]
    return sum(body.mass * place for body, place in zip(asset.bodies, places, strict=True)) / total


@pytest.fixture
def check_masses():
    """Asserts names, parents, masses, centres of mass, inertias and numbers of shapes of all bodies."""

    def check(asset, expected, rtol=1e-8):
        assert asset.body_names == [body["name"] for body in expected["bodies"]]
        for body, row in zip(asset.bodies, expected["bodies"], strict=True):
            assert (asset.bodies[body.parent].name if body.parent >= 0 else None) == row["parent"]
            assert body.mass == pytest.approx(row["mass"], rel=rtol)
            np.testing.assert_allclose(body.com, row["com"], atol=1e-9)
            np.testing.assert_allclose(body.inertia, row["inertia"], rtol=rtol, atol=1e-11)
            assert len(body.shapes) == row["shapes"]
        assert sum(body.mass for body in asset.bodies) == pytest.approx(expected["total_mass"], rel=rtol)

    return check


@pytest.fixture
def check_joints():
    """Asserts order, kinds, limits and passive properties of all DOFs, drives of actuators aside."""

    def check(asset, expected, skip=()):
        assert asset.dof_names == [joint["name"] for joint in expected["joints"]]
        for (_, joint), row in zip(asset.dof_joints, expected["joints"], strict=True):
            assert joint.kind == row["kind"]
            assert joint.has_limits == (row["limits"] is not None)
            assert (joint.lower, joint.upper) == pytest.approx(row["limits"] or (-FLT_MAX, FLT_MAX))
            for name in {"stiffness", "damping", "friction", "armature"} - set(skip):
                assert getattr(joint, name) == pytest.approx(row[name]), name
            for name in {"effort", "velocity"} - set(skip):
                assert getattr(joint, name) == pytest.approx(FLT_MAX if row[name] is None else row[name]), name

    return check


@pytest.fixture
def check_poses():
    """Asserts body poses and the centre of mass at both check configurations."""

    def check(asset, expected, atol=1e-8):
        for configuration in expected["checks"].values():
            q = np.array(configuration["q"])
            poses = successive_poses(asset, q)
            np.testing.assert_allclose(centre_of_mass(asset, poses), configuration["com"], atol=atol)
            wanted = np.array([configuration["poses"][name] for name in asset.body_names])
            same_sign = np.sign((poses[:, 3:] * wanted[:, 3:]).sum(axis=1, keepdims=True))
            np.testing.assert_allclose(poses[:, :3], wanted[:, :3], atol=atol)
            np.testing.assert_allclose(poses[:, 3:] * same_sign, wanted[:, 3:], atol=2 * atol)
            if all(len(body.joints) <= 1 for body in asset.bodies):
                np.testing.assert_allclose(asset.forward_kinematics(q), poses, atol=1e-12)

    return check
