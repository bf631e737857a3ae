"""Value classes of the Isaac Gym API and their numpy dtypes (API notes, section 6).

Quaternions are x, y, z, w; angles are radians; lengths are metres.
"""

from __future__ import annotations

import math
import operator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ._arrays import (
    cross,
    dot,
    euler_to_quat,
    eulers_to_quats_zyx,
    quat_to_euler,
    quats_to_eulers_zyx,
    rotate,
    rotate_inverse,
    transform,
    transform_inverse,
)
from ._fields import Float, Int, Nested, Record, Str, as_float

__all__ = [
    "DOF_PROPERTIES_DTYPE",
    "RIGID_CONTACT_DTYPE",
    "ActionEvent",
    "DofFrame",
    "DofState",
    "IndexRange",
    "Int2",
    "Int3",
    "Mat33",
    "Mat44",
    "Quat",
    "RigidBodyState",
    "SpatialForce",
    "Transform",
    "Vec2",
    "Vec3",
    "Velocity",
    "Version",
    "cross",
    "dot",
    "eulers_to_quats_zyx",
    "quats_to_eulers_zyx",
    "rotate",
    "rotate_inverse",
    "transform",
    "transform_inverse",
]

Array = npt.NDArray[Any]
V = TypeVar("V", bound="_Vector")

DOF_PROPERTIES_DTYPE: np.dtype[Any] = np.dtype(
    [
        ("hasLimits", "?"),
        ("lower", "<f4"),
        ("upper", "<f4"),
        ("driveMode", "<i4"),
        ("velocity", "<f4"),
        ("effort", "<f4"),
        ("stiffness", "<f4"),
        ("damping", "<f4"),
        ("friction", "<f4"),
        ("armature", "<f4"),
    ],
    align=True,
)
"""Row of a DOF property array; C-aligned, 40 bytes."""


class _Vector(Record):
    """Component-wise arithmetic of ``Vec2`` and ``Vec3``."""

    def __init__(self, *components: Any) -> None:
        """Set the components in field order."""
        super().__init__(**dict(zip(self._fields, components, strict=True)))

    def __repr__(self) -> str:
        """Return ``Vec3(x, y, z)``."""
        return f"{type(self).__name__}({', '.join(map(repr, self.as_tuple()))})"

    def __add__(self: V, other: V) -> V:
        """Return the sum."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return type(self)(*map(operator.add, self.as_tuple(), other.as_tuple()))

    def __sub__(self: V, other: V) -> V:
        """Return the difference."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return type(self)(*map(operator.sub, self.as_tuple(), other.as_tuple()))

    def __neg__(self: V) -> V:
        """Return the opposite vector."""
        return type(self)(*map(operator.neg, self.as_tuple()))

    def __mul__(self: V, scalar: Any) -> V:
        """Return the vector times a scalar."""
        if isinstance(scalar, Record):
            return NotImplemented
        factor = as_float(scalar)
        return type(self)(*(component * factor for component in self.as_tuple()))

    __rmul__ = __mul__

    def __truediv__(self: V, scalar: Any) -> V:
        """Return the vector divided by a scalar."""
        if isinstance(scalar, Record):
            return NotImplemented
        divisor = as_float(scalar)
        return type(self)(*(component / divisor for component in self.as_tuple()))


class Vec2(_Vector):
    """Two numbers."""

    x = Float()
    y = Float()

    def __init__(self, x: Any = 0.0, y: Any = 0.0) -> None:
        """Set the components; scalars and one-element arrays are accepted."""
        super().__init__(x, y)


class Int2(Record):
    """Two integers."""

    x = Int()
    y = Int()

    def __init__(self, x: Any = 0, y: Any = 0) -> None:
        """Set the components."""
        super().__init__(x=x, y=y)


class Int3(Record):
    """Three integers."""

    x = Int()
    y = Int()
    z = Int()

    def __init__(self, x: Any = 0, y: Any = 0, z: Any = 0) -> None:
        """Set the components."""
        super().__init__(x=x, y=y, z=z)


class Vec3(_Vector):
    """A vector or point in space."""

    x = Float()
    y = Float()
    z = Float()

    def __init__(self, x: Any = 0.0, y: Any = 0.0, z: Any = 0.0) -> None:
        """Set the components; scalars and one-element arrays are accepted."""
        super().__init__(x, y, z)

    def dot(self, other: Vec3) -> float:
        """Return the scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        """Return the vector product self x other."""
        return Vec3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def length_sq(self) -> float:
        """Return the squared length."""
        return self.dot(self)

    def length(self) -> float:
        """Return the length."""
        return math.sqrt(self.length_sq())

    def normalize(self) -> Vec3:
        """Return the unit vector of the same direction; the zero vector stays zero."""
        length = self.length()
        return self / length if length > 0.0 else Vec3()



class Quat(Record):
    """A rotation as a quaternion x, y, z, w."""

    x = Float()
    y = Float()
    z = Float()
    w = Float(1.0)

    def __init__(self, x: Any = 0.0, y: Any = 0.0, z: Any = 0.0, w: Any = 1.0) -> None:
        """Set the components; scalars and one-element arrays are accepted."""
        super().__init__(x=x, y=y, z=z, w=w)

    def __repr__(self) -> str:
        """Return ``Quat(x, y, z, w)``."""
        return f"Quat({self.x}, {self.y}, {self.z}, {self.w})"

    def __mul__(self, other: Quat) -> Quat:
        """Return the Hamilton product: ``other`` is applied first."""
        if not isinstance(other, Quat):
            return NotImplemented
        x1, y1, z1, w1 = self.as_tuple()
        x2, y2, z2, w2 = other.as_tuple()
        return Quat(
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
        )

    def inverse(self) -> Quat:
        """Return the inverse rotation (the conjugate; the quaternion is taken as a unit one)."""
        return Quat(-self.x, -self.y, -self.z, self.w)

    def normalize(self) -> Quat:
        """Return the unit quaternion of the same rotation; the zero quaternion stays zero."""
        norm = math.sqrt(sum(c * c for c in self.as_tuple()))
        if norm == 0.0:
            return Quat(0.0, 0.0, 0.0, 0.0)
        return Quat(self.x / norm, self.y / norm, self.z / norm, self.w / norm)

    def rotate(self, v: Vec3) -> Vec3:
        """Return ``v`` rotated."""
        axis = Vec3(self.x, self.y, self.z)
        twice = axis.cross(v) * 2.0
        return v + twice * self.w + axis.cross(twice)

    @staticmethod
    def from_axis_angle(axis: Vec3, angle: Any) -> Quat:
        """Return the rotation by ``angle`` (rad) about ``axis``, which need not be a unit vector."""
        half = 0.5 * as_float(angle)
        unit = axis.normalize() * math.sin(half)
        return Quat(unit.x, unit.y, unit.z, math.cos(half))

    @staticmethod
    def from_euler_zyx(a: Any, b: Any, c: Any) -> Quat:
        """Return Rz(c) Ry(b) Rx(a): rotations about x by a, about y by b, about z by c (rad)."""
        return Quat(*euler_to_quat(np.array([as_float(a), as_float(b), as_float(c)])))

    def to_euler_zyx(self) -> tuple[float, float, float]:
        """Return (a, b, c) of ``from_euler_zyx``: a and c in (-pi, pi], b in [-pi/2, pi/2]."""
        a, b, c = quat_to_euler(np.array(self.as_tuple())).tolist()
        return a, b, c


class Transform(Record):
    """A pose: first rotated by ``r``, then moved by ``p``."""

    p = Nested(Vec3, "position, m")
    r = Nested(Quat, "orientation")

    def __init__(self, p: Vec3 | None = None, r: Quat | None = None) -> None:
        """Set position and orientation (copied); what is None or omitted is the identity."""
        given = {name: value for name, value in (("p", p), ("r", r)) if value is not None}
        super().__init__(**given)

    def __mul__(self, other: Transform) -> Transform:
        """Return the product: ``other`` is applied first."""
        if not isinstance(other, Transform):
            return NotImplemented
        return Transform(self.transform_point(other.p), self.r * other.r)

    def inverse(self) -> Transform:
        """Return the inverse pose."""
        back = self.r.inverse()
        return Transform(-back.rotate(self.p), back)

    def transform_point(self, point: Vec3) -> Vec3:
        """Return the point in the outer frame: r * point + p."""
        return self.r.rotate(point) + self.p

    def transform_vector(self, vector: Vec3) -> Vec3:
        """Return the vector in the outer frame: r * vector."""
        return self.r.rotate(vector)

    def transform_points(self, points: Array) -> Array:
        """Return an array of points (dtype ``Vec3.dtype``, any shape) in the outer frame."""
        return transform(self, points)

    def transform_vectors(self, vectors: Array) -> Array:
        """Return an array of vectors (dtype ``Vec3.dtype``, any shape) in the outer frame."""
        return rotate(self.r, vectors)


class Velocity(Record):
    """Linear and angular velocity."""

    linear = Nested(Vec3, "m/s")
    angular = Nested(Vec3, "rad/s")

    def __init__(self, linear: Vec3 | None = None, angular: Vec3 | None = None) -> None:
        """Set the velocities (copied); zero where omitted."""
        pairs = (("linear", linear), ("angular", angular))
        super().__init__(**{name: value for name, value in pairs if value is not None})


class Mat33(Record):
    """A 3 x 3 matrix by rows."""

    x = Nested(Vec3, "first row")
    y = Nested(Vec3, "second row")
    z = Nested(Vec3, "third row")


class Mat44(Record):
    """A 4 x 4 matrix by rows, zero at first."""

    x = Nested(Quat, "first row", lambda: Quat(0.0, 0.0, 0.0, 0.0))
    y = Nested(Quat, "second row", lambda: Quat(0.0, 0.0, 0.0, 0.0))
    z = Nested(Quat, "third row", lambda: Quat(0.0, 0.0, 0.0, 0.0))
    w = Nested(Quat, "fourth row", lambda: Quat(0.0, 0.0, 0.0, 0.0))


class RigidBodyState(Record):
    """Pose and velocity of a rigid body."""

    pose = Nested(Transform, "pose in the environment frame")
    vel = Nested(Velocity, "velocity along world axes")


class DofState(Record):
    """Position and velocity of a degree of freedom."""

    pos = Float(0.0, "rad or m")
    vel = Float(0.0, "rad/s or m/s")


class DofFrame(Record):
    """Where a degree of freedom sits."""

    origin = Nested(Vec3, "anchor, m")
    axis = Nested(Vec3, "unit axis")

    def __init__(self, origin: Vec3 | None = None, axis: Vec3 | None = None) -> None:
        """Set origin and axis (copied); zero where omitted."""
        pairs = (("origin", origin), ("axis", axis))
        super().__init__(**{name: value for name, value in pairs if value is not None})


class SpatialForce(Record):
    """Force and torque."""

    force = Nested(Vec3, "N")
    torque = Nested(Vec3, "N m")


class IndexRange(Record):
    """A run of consecutive indices."""

    start = Int(0, "first index")
    count = Int(0, "number of indices")


class Version(Record):
    """Version of the API."""

    major = Int(1)
    minor = Int(0)


class ActionEvent(Record):
    """A viewer event that a script subscribed to."""

    action = Str("", "name given at subscription")
    value = Float(0.0, "1 when pressed, 0 when released; amount of a mouse movement")


RIGID_CONTACT_DTYPE: np.dtype[Any] = np.dtype(
    [
        ("env0", "<i4"),
        ("env1", "<i4"),
        ("body0", "<i4"),
        ("body1", "<i4"),
        ("local_pos0", Vec3.dtype),
        ("local_pos1", Vec3.dtype),
        ("min_dist", "<f4"),
        ("initial_overlap", "<f4"),
        ("normal", Vec3.dtype),
        ("offset0", Vec3.dtype),
        ("offset1", Vec3.dtype),
        ("lambda", "<f4"),
        ("lambda_friction", Vec2.dtype),
        ("friction", "<f4"),
        ("torsion_friction", "<f4"),
        ("rolling_friction", "<f4"),
    ]
)
"""Row of a rigid contact list: which bodies of which environments touch, where and how strongly."""
