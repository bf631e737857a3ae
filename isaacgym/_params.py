"""Parameter and property classes of the Isaac Gym API (API notes, section 8).

Objects are plain values: reading a property from the simulation gives a copy, and nothing happens
until the copy is handed to the matching setter.
"""

from __future__ import annotations

from ._enums import (
    CC_ALL_SUBSTEPS,
    DOF_MODE_NONE,
    FROM_ASSET,
    MAT_COROTATIONAL,
    TENDON_FIXED,
    UP_AXIS_Y,
    USD_MATERIAL_PREVIEW_SURFACE,
)
from ._fields import Bool, Choice, Float, Int, Nested, Record, Str
from ._values import Mat33, Transform, Vec3

__all__ = [
    "ActuatorProperties",
    "AssetOptions",
    "AttractorProperties",
    "CameraProperties",
    "FlexParams",
    "ForceSensorProperties",
    "HeightFieldParams",
    "HeightFieldProperties",
    "OmniConnectionParams",
    "PerformanceTimers",
    "PhysXParams",
    "PlaneParams",
    "RigidBodyProperties",
    "RigidShapeProperties",
    "SimParams",
    "SoftMaterial",
    "TendonProperties",
    "TriangleMeshParams",
    "UsdExportOptions",
    "VhacdParams",
]


class PhysXParams(Record):
    """Parameters of PhysX."""

    solver_type = Int(1, "0: PGS, 1: TGS")
    num_position_iterations = Int(4)
    num_velocity_iterations = Int(1)
    num_threads = Int(4, "worker threads of CPU physics")
    num_subscenes = Int(0, "ignored")
    use_gpu = Bool(False, "simulate on the GPU")
    contact_offset = Float(0.02, "distance at which contacts are made, m")
    rest_offset = Float(0.001, "distance at which shapes come to rest, m")
    bounce_threshold_velocity = Float(0.2, "slower contacts do not bounce, m/s")
    max_depenetration_velocity = Float(100.0, "limit on the speed that resolves overlaps, m/s")
    friction_offset_threshold = Float(0.04, "contact distance from which friction is computed, m")
    friction_correlation_distance = Float(0.025, "contacts this close share one friction anchor, m")
    max_gpu_contact_pairs = Int(1024 * 1024)
    default_buffer_size_multiplier = Float(2.0, "scale of the other GPU buffers")
    contact_collection = Choice(CC_ALL_SUBSTEPS, "substeps whose contact forces are reported")
    always_use_articulations = Bool(False, "make single bodies articulations too")


class FlexParams(Record):
    """Parameters of Flex, which is not supported: kept so that scripts that set them run."""

    solver_type = Int()
    num_outer_iterations = Int()
    num_inner_iterations = Int()
    relaxation = Float()
    warm_start = Float()
    contact_regularization = Float()
    deterministic_mode = Bool()
    geometric_stiffness = Float()
    shape_collision_distance = Float()
    shape_collision_margin = Float()
    particle_friction = Float()
    dynamic_friction = Float()
    static_friction = Float()
    friction_mode = Int()
    return_contacts = Bool()
    max_rigid_contacts = Int()
    max_soft_contacts = Int()


class SimParams(Record):
    """Parameters of a simulation."""

    dt = Float(1.0 / 60.0, "length of one simulate call, s")
    substeps = Int(2, "physics steps in one simulate call")
    gravity = Nested(Vec3, "m/s^2", lambda: Vec3(0.0, -9.8, 0.0))
    up_axis = Choice(UP_AXIS_Y, "axis normal to the plane in which environments are tiled")
    use_gpu_pipeline = Bool(False, "keep state tensors on the GPU")
    num_client_threads = Int(0, "ignored")
    physx = Nested(PhysXParams)
    flex = Nested(FlexParams, "ignored")
    enable_actor_creation_warning = Bool(True, "ignored")
    stress_visualization = Bool(False, "ignored")
    stress_visualization_min = Float(0.0, "ignored")
    stress_visualization_max = Float(1e5, "ignored")


class PlaneParams(Record):
    """Parameters of a ground plane, the points x with normal . x + distance = 0."""

    normal = Nested(Vec3, "unit normal", lambda: Vec3(0.0, 1.0, 0.0))
    distance = Float(0.0, "m")
    static_friction = Float(1.0)
    dynamic_friction = Float(1.0)
    restitution = Float(0.0)
    segmentation_id = Int(0)


class VhacdParams(Record):
    """Parameters of convex decomposition."""

    resolution = Int(100000, "voxels")
    max_convex_hulls = Int(64)
    max_num_vertices_per_ch = Int(64)
    concavity = Float(0.0)
    alpha = Float(0.05)
    beta = Float(0.05)
    convex_hull_downsampling = Int(4)
    plane_downsampling = Int(4)
    min_volume_per_ch = Float(1e-4)
    pca = Int(0)
    mode = Int(0)
    convex_hull_approximation = Bool(True)
    ocl_acceleration = Bool(True)
    project_hull_vertices = Bool(True)


class AssetOptions(Record):
    """How an asset is loaded."""

    fix_base_link = Bool(False, "weld the root to the world at the actor's pose")
    default_dof_drive_mode = Choice(DOF_MODE_NONE, "drive mode of DOFs for which the file says nothing")
    collapse_fixed_joints = Bool(False, "merge links joined by fixed joints")
    density = Float(1000.0, "used where the file gives no mass, kg/m^3")
    armature = Float(0.0, "added inertia of every DOF (or link, see use_physx_armature), kg m^2 or kg")
    use_physx_armature = Bool(True, "armature acts on DOFs; otherwise on the diagonal of link inertias")
    angular_damping = Float(0.5, "1/s")
    linear_damping = Float(0.0, "1/s")
    max_angular_velocity = Float(64.0, "rad/s")
    max_linear_velocity = Float(1000.0, "m/s")
    disable_gravity = Bool(False)
    enable_gyroscopic_forces = Bool(True)
    thickness = Float(0.02, "Flex only, ignored")
    override_com = Bool(False, "compute centres of mass from shapes, ignoring the file")
    override_inertia = Bool(False, "compute inertias from shapes, ignoring the file")
    convex_decomposition_from_submeshes = Bool(False, "one convex hull for every submesh")
    vhacd_enabled = Bool(False, "decompose collision meshes into convex parts")
    vhacd_params = Nested(VhacdParams)
    replace_cylinder_with_capsule = Bool(False)
    slices_per_cylinder = Int(20, "side faces of a cylinder's convex mesh")
    flip_visual_attachments = Bool(False, "visual only, ignored")
    use_mesh_materials = Bool(False, "visual only, ignored")
    mesh_normal_mode = Choice(FROM_ASSET, "visual only, ignored")
    tendon_limit_stiffness = Float(1.0, "default limit stiffness of fixed tendons")
    min_particle_mass = Float(1e-12, "Flex only, ignored")


class TriangleMeshParams(Record):
    """Parameters of a static triangle mesh."""

    nb_vertices = Int(0)
    nb_triangles = Int(0)
    transform = Nested(Transform, "pose in the world")
    static_friction = Float(1.0)
    dynamic_friction = Float(1.0)
    restitution = Float(0.0)
    segmentation_id = Int(0)


class HeightFieldParams(Record):
    """Parameters of a height field."""

    nbRows = Int(0)
    nbColumns = Int(0)
    row_scale = Float(1.0, "m")
    column_scale = Float(1.0, "m")
    vertical_scale = Float(1.0, "m per unit of a sample")
    transform = Nested(Transform, "pose in the world")
    static_friction = Float(1.0)
    dynamic_friction = Float(1.0)
    restitution = Float(0.0)
    segmentation_id = Int(0)


HeightFieldProperties = HeightFieldParams
"""Old name of ``HeightFieldParams``."""


class RigidShapeProperties(Record):
    """Properties of one collision shape."""

    friction = Float(1.0)
    torsion_friction = Float(0.0, "stored only")
    rolling_friction = Float(0.0, "stored only")
    restitution = Float(0.0)
    compliance = Float(0.0, "stored only")
    thickness = Float(0.0, "stored only")
    filter = Int(0, "shapes whose filters share a bit do not collide")
    contact_offset = Float(0.02, "m")
    rest_offset = Float(0.001, "m")


class RigidBodyProperties(Record):
    """Mass properties of one rigid body."""

    mass = Float(0.0, "kg")
    invMass = Float(0.0, "1/mass; ignored when set")
    com = Nested(Vec3, "centre of mass in the link frame, m")
    inertia = Nested(Mat33, "about the centre of mass, link axes, kg m^2")
    invInertia = Nested(Mat33, "inverse of the inertia; ignored when set")
    flags = Int(0, "RIGID_BODY_* bits")


class TendonProperties(Record):
    """Properties of a tendon."""

    type = Choice(TENDON_FIXED, "read-only", read_only=True)
    num_joints = Int(0, "read-only", read_only=True)
    num_attachments = Int(0, "read-only", read_only=True)
    stiffness = Float(0.0)
    damping = Float(0.0)
    limit_stiffness = Float(0.0)
    fixed_spring_rest_length = Float(0.0)
    fixed_lower_limit = Float(0.0)
    fixed_upper_limit = Float(0.0)
    is_fixed_limited = Bool(False)


class ActuatorProperties(Record):
    """Properties of an actuator of an MJCF file."""

    type = Str("", "read-only kind: motor, position, velocity or general", read_only=True)
    control_limited = Bool(False)
    force_limited = Bool(False)
    kp = Float(0.0, "position gain")
    kv = Float(0.0, "velocity gain")
    motor_effort = Float(0.0, "gear of a motor, N m or N")
    lower_control_limit = Float(0.0)
    upper_control_limit = Float(0.0)
    lower_force_limit = Float(0.0)
    upper_force_limit = Float(0.0)


class ForceSensorProperties(Record):
    """What a force sensor measures."""

    enable_forward_dynamics_forces = Bool(True)
    enable_constraint_solver_forces = Bool(True)
    use_world_frame = Bool(False, "report along world axes instead of the sensor's")


class AttractorProperties(Record):
    """Properties of a spring that pulls a body to a target pose."""

    rigid_handle = Int(-1, "body in its environment")
    axes = Int(0, "AXIS_* bits")
    target = Nested(Transform, "world pose to reach")
    offset = Nested(Transform, "attachment in the body frame")
    stiffness = Float(0.0)
    damping = Float(0.0)


class CameraProperties(Record):
    """Properties of a camera or viewer."""

    width = Int(1600, "pixels")
    height = Int(900, "pixels")
    horizontal_fov = Float(90.0, "degrees")
    near_plane = Float(0.001, "m")
    far_plane = Float(2e6, "m")
    enable_tensors = Bool(False)
    use_collision_geometry = Bool(False)
    supersampling_horizontal = Int(1)
    supersampling_vertical = Int(1)


class SoftMaterial(Record):
    """Material of a soft body (Flex only, stored)."""

    model = Choice(MAT_COROTATIONAL)
    youngs = Float(0.0, "Pa")
    poissons = Float(0.0)
    damping = Float(0.0)
    activation = Float(0.0)
    activationMax = Float(0.0)


class PerformanceTimers(Record):
    """Where time went (stored)."""

    frame_idling = Float(0.0, "s")
    graphics_image_retrieval = Float(0.0, "s")
    graphics_sensor_rendering = Float(0.0, "s")
    graphics_viewer_rendering = Float(0.0, "s")
    physics_data_movement = Float(0.0, "s")
    physics_sim = Float(0.0, "s")
    total_time = Float(0.0, "s")


class UsdExportOptions(Record):
    """Options of a USD export (stored; exporting is not supported)."""

    export_physics = Bool(True)
    material_mode = Choice(USD_MATERIAL_PREVIEW_SURFACE)
    scale = Float(1.0)
    single_file = Bool(True)
    use_geom_subsets = Bool(False)
    use_physics_visuals = Bool(False)


class OmniConnectionParams(Record):
    """Connection to an Omniverse server (stored; connecting is not supported)."""

    enable_cache = Bool(False)
    enable_debug_output = Bool(False)
    password = Str("")
    server = Str("")
    username = Str("")
