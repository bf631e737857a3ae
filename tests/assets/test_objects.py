"""assets/objects: what the hands handle."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("file", "mass", "moments", "kind", "size"),
    [
        ("block.urdf", 0.070875, [2.953125e-05] * 3, "box", (0.025, 0.025, 0.025)),
        ("block_allegro.urdf", 0.10985, [7.73527083e-05] * 3, "box", (0.0325, 0.0325, 0.0325)),
        ("ball.urdf", 0.25, [1e-4] * 3, "sphere", (0.0375,)),
        ("egg.xml", 0.150796447, [7.53982237e-05, 7.53982237e-05, 5.42867211e-05], "capsule", (0.028887, 0.01)),
        ("pen.xml", 0.0423570466, [1.57472990e-04, 1.57472990e-04, 1.34169966e-06], "capsule", (0.008, 0.1)),
    ],
)
def test_objects_are_single_free_bodies(load_asset, file, mass, moments, kind, size):
    asset = load_asset(f"objects/{file}")
    (body,) = asset.bodies
    assert body.mass == pytest.approx(mass, rel=1e-8)
    np.testing.assert_allclose(np.diag(body.inertia), moments, rtol=1e-8)
    assert [(shape.kind, shape.size, shape.filter) for shape in body.shapes] == [(kind, size, 0)]
    assert (asset.fixed_base, asset.num_dofs, asset.notes) == (False, 0, [])


def test_egg_capsule_follows_the_ellipsoid_within_its_tolerance(load_asset):
    """Distance of the ellipsoid of radii 0.03, 0.03, 0.04 from the capsule stays below 1.2 mm."""
    radius, half = load_asset("objects/egg.xml").bodies[0].shapes[0].size
    angle = np.linspace(0, np.pi / 2, 1000)
    across, along = 0.03 * np.cos(angle), 0.04 * np.sin(angle)
    distance = np.hypot(across, np.maximum(along - half, 0)) - radius
    assert np.abs(distance).max() < 1.2e-3


def test_pen_keeps_the_turn_written_in_its_source(load_asset):
    quat = load_asset("objects/pen.xml").root_quat
    np.testing.assert_allclose(quat, [-0.420735492, 0.420735492, -0.229848847, 0.770151153], atol=1e-8)
