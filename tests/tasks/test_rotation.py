"""Rotation helpers (C1), ours and those of the Gym API."""

import math

from isaacgym import torch_utils  # isort: skip
import pytest
import torch

from tasks.base.rotation import roll_yaw, rotation_matrix, to_body_frame

VECTOR = torch.tensor([[1.0, 2.0, 3.0]])


def close(actual, expected):
    assert torch.allclose(actual, torch.tensor(expected), atol=1e-5), actual


def test_C1_quaternion_of_angles(quat_rpy):
    close(quat_rpy(0.1, -0.2, 0.3), (0.064071, -0.091158, 0.153439, 0.981856))


def test_C1_rotate_and_rotate_inverse(quat_rpy):
    quat = quat_rpy(0.1, -0.2, 0.3).unsqueeze(0)
    close(torch_utils.quat_rotate(quat, VECTOR), [[-0.167726, 1.717658, 3.319867]])
    close(torch_utils.quat_rotate_inverse(quat, VECTOR), [[2.111560, 1.869943, 2.458582]])
    rotation = rotation_matrix(quat)
    close(torch.bmm(rotation, VECTOR.unsqueeze(-1)).squeeze(-1), [[-0.167726, 1.717658, 3.319867]])
    close(to_body_frame(rotation, VECTOR.unsqueeze(1)).squeeze(1), [[2.111560, 1.869943, 2.458582]])


def test_C1_euler_angles_are_in_0_to_2_pi(quat_rpy):
    quat = quat_rpy(0.1, -0.2, 0.3).unsqueeze(0)
    close(torch.cat(torch_utils.get_euler_xyz(quat)), (0.1, 6.083185, 0.3))
    close(torch.cat(roll_yaw(rotation_matrix(quat))), (0.1, 0.3))
    negative = rotation_matrix(quat_rpy(-0.4, 0.2, -1.0).unsqueeze(0))
    close(torch.cat(roll_yaw(negative)), (2 * math.pi - 0.4, 2 * math.pi - 1.0))


def test_C1_quaternion_product(quat_rpy):
    product = torch_utils.quat_mul(quat_rpy(0.1, -0.2, 0.3).unsqueeze(0), quat_rpy(0.0, 0.0, 0.5).unsqueeze(0))
    close(product, [[0.039527, -0.104175, 0.391584, 0.913371]])


@pytest.mark.parametrize("seed", range(3))
def test_C1_matrix_agrees_with_closed_form(seed):
    generator = torch.Generator().manual_seed(seed)
    quats = torch.nn.functional.normalize(torch.randn(50, 4, generator=generator), dim=1)
    vectors = torch.randn(50, 3, generator=generator)
    turned = torch.bmm(rotation_matrix(quats), vectors.unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(turned, torch_utils.quat_rotate(quats, vectors), atol=1e-5)
