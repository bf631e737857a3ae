"""Quaternion and tensor helpers (API notes, section 14, test cases B1-B12)."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

from isaacgym import torch_utils as tu
from isaacgym._values import Quat, Vec3

HALF = math.sqrt(0.5)
Z90 = torch.tensor([[0.0, 0.0, HALF, HALF]])
IDENTITY = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
X = torch.tensor([[1.0, 0.0, 0.0]])


def close(got, expected, tol=1e-6):
    torch.testing.assert_close(got, torch.as_tensor(expected, dtype=got.dtype), atol=tol, rtol=0)


def column(*values):
    return torch.tensor(values).unsqueeze(-1)


@pytest.fixture
def quats():
    torch.manual_seed(0)
    return tu.normalize(torch.randn(2, 64, 4))


@pytest.fixture
def vectors():
    torch.manual_seed(1)
    return torch.randn(64, 3)


def test_B1_quat_from_euler_xyz():
    q = tu.quat_from_euler_xyz(torch.tensor([0.1]), torch.tensor([0.2]), torch.tensor([0.3]))
    close(q, [[0.034271, 0.106021, 0.143572, 0.983347]])


def test_B2_get_euler_xyz_is_modulo_two_pi():
    angles = [torch.tensor([-0.1]), torch.tensor([-0.2]), torch.tensor([-0.3])]
    euler = tu.get_euler_xyz(tu.quat_from_euler_xyz(*angles))
    assert isinstance(euler, tuple)
    close(torch.cat(euler), [6.183185, 6.083185, 5.983185], 1e-5)


def test_B2_get_euler_xyz_at_the_pole():
    q = tu.quat_from_euler_xyz(torch.zeros(2), torch.tensor([math.pi / 2, -math.pi / 2]), torch.zeros(2))
    close(tu.get_euler_xyz(q)[1], [math.pi / 2, 1.5 * math.pi], 1e-3)


def test_B2_euler_angles_survive_a_round_trip(quats):
    q = tu.quat_from_euler_xyz(*tu.get_euler_xyz(quats[0]))
    close((q * quats[0]).sum(-1).abs(), torch.ones(64), 1e-5)


def test_B3_quat_rotate_and_its_inverse():
    axis = torch.tensor([[1.0, 1.0, 1.0]])
    q = tu.quat_from_angle_axis(torch.tensor([2 * math.pi / 3]), axis)
    v = torch.tensor([[1.0, 2.0, 3.0]])
    close(tu.quat_rotate(q, v), [[3.0, 1.0, 2.0]], 1e-5)
    close(tu.quat_rotate_inverse(q, v), [[2.0, 3.0, 1.0]], 1e-5)
    q = tu.quat_from_angle_axis(torch.tensor([math.pi / 3]), axis)
    close(tu.quat_rotate(q, v), [[2.0, 1.0, 3.0]], 1e-5)
    close(tu.quat_rotate_inverse(q, v), [[1.0, 3.0, 2.0]], 1e-5)


def test_B3_rotations_agree_with_the_value_classes(quats, vectors):
    expected = [Quat(*q).rotate(Vec3(*v)).as_tuple() for q, v in zip(quats[0], vectors, strict=True)]
    close(tu.quat_rotate(quats[0], vectors), expected, 1e-5)
    close(tu.quat_apply(quats[0], vectors), expected, 1e-5)
    close(tu.get_basis_vector(quats[0], vectors), expected, 1e-5)
    close(tu.tf_vector(quats[0], vectors), expected, 1e-5)
    close(tu.quat_rotate_inverse(quats[0], torch.tensor(expected)), vectors, 1e-5)


def test_B3_quat_mul_agrees_with_the_value_classes(quats):
    expected = [(Quat(*a) * Quat(*b)).as_tuple() for a, b in zip(quats[0], quats[1], strict=True)]
    close(tu.quat_mul(quats[0], quats[1]), expected, 1e-6)
    shaped = tu.quat_mul(quats[0].view(8, 8, 4), quats[1].view(8, 8, 4))
    close(shaped, torch.tensor(expected).view(8, 8, 4), 1e-6)
    with pytest.raises(AssertionError):
        tu.quat_mul(quats[0], quats[1, :1])


def test_B4_quat_apply_and_rotate_inverse_about_z():
    close(tu.quat_apply(Z90, X), [[0.0, 1.0, 0.0]])
    close(tu.quat_rotate_inverse(Z90, X), [[0.0, -1.0, 0.0]])


def test_B4_quat_apply_keeps_the_shape_of_the_vectors(quats, vectors):
    flat = tu.quat_apply(quats[0], vectors)
    shaped = tu.quat_apply(quats[0].view(8, 8, 4), vectors.view(8, 8, 3))
    assert shaped.shape == (8, 8, 3)
    close(shaped.view(-1, 3), flat)
    assert tu.quat_apply(Z90[0], X[0]).shape == (3,)


def test_B5_projected_gravity():
    pitch = torch.tensor([0.5])
    q = tu.quat_from_euler_xyz(torch.zeros(1), pitch, torch.zeros(1))
    close(tu.quat_rotate_inverse(q, torch.tensor([[0.0, 0.0, -1.0]])), [[0.479426, 0.0, -0.877583]])


def test_B6_normalize_angle():
    close(tu.normalize_angle(torch.tensor([4.0, -4.0, 1.0])), [-2.283185, 2.283185, 1.0])


def test_B7_get_axis_params():
    assert tu.get_axis_params(1.0, 2) == [0, 0, 1]
    assert tu.get_axis_params(0.5, 1, 0.3) == [0.3, 0.5, 0]
    assert tu.get_axis_params(1.0, 0) == [0, 0, 0]
    assert tu.get_axis_params(2, 1, dtype=int, n_dims=2) == [0, 2]
    with pytest.raises(ValueError, match="axis_idx"):
        tu.get_axis_params(1.0, 3)


def test_B8_scale_and_unscale():
    low, high = torch.tensor(0.0), torch.tensor(4.0)
    close(tu.scale(torch.tensor([-1.0, 0.0, 1.0]), low, high), [0.0, 2.0, 4.0])
    close(tu.unscale(torch.tensor([0.0, 1.0, 4.0]), low, high), [-1.0, -0.5, 1.0])
    np.testing.assert_allclose(tu.unscale_np(np.array([0.0, 1.0, 4.0]), 0.0, 4.0), [-1, -0.5, 1])


def test_B9_quat_diff_rad():
    z270 = tu.quat_from_angle_axis(torch.tensor([1.5 * math.pi]), torch.tensor([[0.0, 0.0, 1.0]]))
    close(tu.quat_diff_rad(IDENTITY, Z90), [1.570796])
    close(tu.quat_diff_rad(IDENTITY, z270), [1.570796])
    close(tu.quat_diff_rad(Z90, Z90), [0.0])


def test_B10_quat_from_angle_axis_normalises_and_zero_stays_zero():
    close(tu.quat_from_angle_axis(torch.tensor([math.pi / 2]), torch.tensor([[0.0, 0.0, 2.0]])), Z90)
    close(tu.normalize(torch.zeros(2, 3)), torch.zeros(2, 3))
    close(tu.quat_unit(torch.tensor([[0.0, 0.0, 3.0, 4.0]])), [[0.0, 0.0, 0.6, 0.8]])
    close(tu.normalize(torch.tensor([3.0, 4.0])), [0.6, 0.8])


def test_B11_tf_combine():
    q, t = tu.tf_combine(Z90, X, Z90, X)
    close(q, [[0.0, 0.0, 1.0, 0.0]])
    close(t, [[1.0, 1.0, 0.0]])


def test_B11_tf_inverse_and_apply(quats, vectors):
    q, t = quats[0], vectors.roll(1, 0)
    moved = tu.tf_apply(q, t, vectors)
    close(moved, tu.quat_rotate(q, vectors) + t, 1e-5)
    close(tu.tf_apply(*tu.tf_inverse(q, t), moved), vectors, 1e-5)


def test_B12_tensor_clamp_and_torch_rand_float():
    bounds = torch.full((3,), -1.0), torch.ones(3)
    close(tu.tensor_clamp(torch.tensor([-2.0, 0.5, 3.0]), *bounds), [-1.0, 0.5, 1.0])
    torch.manual_seed(0)
    drawn = tu.torch_rand_float(-1.0, 3.0, (1000, 2), "cpu")
    assert drawn.shape == (1000, 2)
    assert ((drawn >= -1) & (drawn < 3)).all()
    assert drawn.mean().item() == pytest.approx(1.0, abs=0.1)
    torch.manual_seed(0)
    assert torch.equal(drawn, tu.torch_rand_float(-1.0, 3.0, (1000, 2), "cpu")), "draws come from torch's generator"


def test_torch_random_dir_2():
    torch.manual_seed(0)
    directions = tu.torch_random_dir_2((1000, 1), "cpu")
    assert directions.shape == (1000, 2)
    close(directions.norm(dim=-1), torch.ones(1000), 1e-5)
    assert directions.mean(0).abs().max() < 0.1


def test_quat_axis(quats):
    for axis in range(3):
        basis = torch.zeros(64, 3)
        basis[:, axis] = 1
        close(tu.quat_axis(quats[0], axis), tu.quat_rotate(quats[0], basis))


def test_copysign():
    close(tu.copysign(-2.0, torch.tensor([3.0, -0.1, 0.0])), [2.0, -2.0, 0.0])


@pytest.mark.parametrize("x", [[1, 2], (1.0, 2.0), np.array([1, 2]), torch.tensor([1, 2])])
def test_to_torch_copies_to_float32(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tu.to_torch(x, device="cpu")
    assert made.dtype == torch.float32
    assert made.tolist() == [1, 2]
    made[0] = 9
    assert float(x[0]) == 1


def test_to_torch_without_a_device_uses_what_is_there():
    assert tu.to_torch([1.0]).device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    made = tu.to_torch([1], dtype=torch.long, device="cpu")
    assert made.dtype == torch.long
    assert tu.to_torch([1.0], device="cpu", requires_grad=True).requires_grad


def test_compute_heading_and_up():
    rotation = tu.quat_from_euler_xyz(torch.tensor([0.0]), torch.tensor([0.3]), torch.tensor([0.6]))
    z = torch.tensor([[0.0, 0.0, 1.0]])
    torso, up_proj, heading_proj, up, heading = tu.compute_heading_and_up(
        rotation, IDENTITY, torch.tensor([[0.0, 500.0, 0.0]]), X, z, 2
    )
    close(torso, rotation)
    close(up_proj, [math.cos(0.3)])
    close(heading_proj, [math.cos(0.3) * math.sin(0.6)])
    close(up, tu.quat_rotate(rotation, z))
    close(heading, tu.quat_rotate(rotation, X))


def test_compute_rot():
    yaw = torch.tensor([math.pi / 2])
    q = tu.quat_from_euler_xyz(torch.zeros(1), torch.zeros(1), yaw)
    target, position = torch.tensor([[2.0, 7.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    velocity, spin, roll, pitch, yaw_out, angle = tu.compute_rot(q, X, 2 * X, target, position)
    close(velocity, [[0.0, -1.0, 0.0]])
    close(spin, [[0.0, -2.0, 0.0]])
    close(torch.stack([roll, pitch, yaw_out]), [[0.0], [0.0], [math.pi / 2]])
    close(angle, [math.atan2(1.0, 1.0) - math.pi / 2])


def test_star_import_gives_torch_np_and_the_functions():
    names: dict = {}
    exec("from isaacgym.torch_utils import *", names)
    assert names["torch"] is torch
    assert names["np"] is np
    assert callable(names["quat_rotate_inverse"])


NOT_SCRIPTABLE = {"to_torch", "get_axis_params", "unscale_np", "np", "torch"}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(set(tu.__all__) - NOT_SCRIPTABLE))
def test_functions_can_be_called_from_torchscript(name):
    function = getattr(tu, name)
    scripted = torch.jit.script(function)
    torch.manual_seed(3)
    q, p = tu.normalize(torch.randn(2, 5, 4))
    v, w = torch.randn(2, 5, 3)
    a, b, c = torch.randn(3, 5)
    arguments = {
        "compute_heading_and_up": (q, p, v, w, v, 2),
        "compute_rot": (q, v, w, v, w),
        "copysign": (2.0, a),
        "get_euler_xyz": (q,),
        "normalize": (v,),
        "normalize_angle": (a,),
        "quat_axis": (q, 1),
        "quat_conjugate": (q,),
        "quat_diff_rad": (q, p),
        "quat_from_angle_axis": (a, v),
        "quat_from_euler_xyz": (a, b, c),
        "quat_mul": (q, p),
        "quat_unit": (q,),
        "scale": (a, b, c),
        "tensor_clamp": (a, b, c),
        "tf_apply": (q, v, w),
        "tf_combine": (q, v, p, w),
        "tf_inverse": (q, v),
        "torch_rand_float": (-1.0, 1.0, (5, 2), "cpu"),
        "torch_random_dir_2": ((5, 1), "cpu"),
        "unscale": (a, b, c),
    }.get(name, (q, v))
    torch.manual_seed(4)
    expected = function(*arguments)
    torch.manual_seed(4)
    torch.testing.assert_close(scripted(*arguments), expected)
