"""Enumerations and constants of the Isaac Gym API (API notes, section 7).

Every member exists twice: scoped (``SimType.SIM_PHYSX``) and at module level (``SIM_PHYSX``).
All enumerations are ``IntEnum``, so members compare, hash and assign into numpy arrays like ints.
"""

import enum as _enum


class SimType(_enum.IntEnum):
    """Physics back end."""

    SIM_PHYSX = 0
    SIM_FLEX = 1


class UpAxis(_enum.IntEnum):
    """Axis that points up when environments are tiled; gravity is set separately."""

    UP_AXIS_Y = 0
    UP_AXIS_Z = 1


class DofDriveMode(_enum.IntEnum):
    """How a degree of freedom is driven."""

    DOF_MODE_NONE = 0
    DOF_MODE_POS = 1
    DOF_MODE_VEL = 2
    DOF_MODE_EFFORT = 3


class ContactCollection(_enum.IntEnum):
    """From which substeps of a step contact forces are collected."""

    CC_NEVER = 0
    CC_LAST_SUBSTEP = 1
    CC_ALL_SUBSTEPS = 2


class IndexDomain(_enum.IntEnum):
    """What an index counts in: one actor, one environment or the whole simulation."""

    DOMAIN_ACTOR = 0
    DOMAIN_ENV = 1
    DOMAIN_SIM = 2


class CoordinateSpace(_enum.IntEnum):
    """Frame in which forces and positions are given."""

    ENV_SPACE = 0
    LOCAL_SPACE = 1
    GLOBAL_SPACE = 2


class MeshType(_enum.IntEnum):
    """Visual meshes, collision meshes, both or none."""

    MESH_NONE = 0
    MESH_COLLISION = 1
    MESH_VISUAL = 2
    MESH_VISUAL_AND_COLLISION = 3


class ImageType(_enum.IntEnum):
    """Kind of image that a camera delivers."""

    IMAGE_COLOR = 0
    IMAGE_DEPTH = 1
    IMAGE_SEGMENTATION = 2
    IMAGE_OPTICAL_FLOW = 3


class DofType(_enum.IntEnum):
    """Kind of a degree of freedom."""

    DOF_INVALID = 0
    DOF_ROTATION = 1
    DOF_TRANSLATION = 2


class JointType(_enum.IntEnum):
    """Kind of a joint."""

    JOINT_INVALID = 0
    JOINT_FIXED = 1
    JOINT_REVOLUTE = 2
    JOINT_PRISMATIC = 3
    JOINT_BALL = 4
    JOINT_PLANAR = 5
    JOINT_FLOATING = 6


class MeshNormalMode(_enum.IntEnum):
    """Where the normals of a visual mesh come from."""

    FROM_ASSET = 0
    COMPUTE_PER_VERTEX = 1
    COMPUTE_PER_FACE = 2


class CameraFollowMode(_enum.IntEnum):
    """What a camera attached to a body follows."""

    FOLLOW_POSITION = 0
    FOLLOW_TRANSFORM = 1


class TendonType(_enum.IntEnum):
    """Kind of a tendon."""

    TENDON_FIXED = 0
    TENDON_SPATIAL = 1


class TensorDataType(_enum.IntEnum):
    """Element type of a Gym tensor."""

    DTYPE_FLOAT32 = 0
    DTYPE_UINT32 = 1
    DTYPE_UINT64 = 2
    DTYPE_UINT8 = 3
    DTYPE_INT16 = 4


class SoftMaterialType(_enum.IntEnum):
    """Elastic model of a soft body (Flex only)."""

    MAT_COROTATIONAL = 0
    MAT_NEOHOOKEAN = 1


class UsdMaterialMode(_enum.IntEnum):
    """Material kind of a USD export."""

    USD_MATERIAL_DISPLAY_COLOR = 0
    USD_MATERIAL_MDL = 1
    USD_MATERIAL_PREVIEW_SURFACE = 2


class KeyboardInput(_enum.IntEnum):
    """Keys that viewer events can be bound to."""

    KEY_SPACE = 0
    KEY_APOSTROPHE = 1
    KEY_COMMA = 2
    KEY_MINUS = 3
    KEY_PERIOD = 4
    KEY_SLASH = 5
    KEY_0 = 6
    KEY_1 = 7
    KEY_2 = 8
    KEY_3 = 9
    KEY_4 = 10
    KEY_5 = 11
    KEY_6 = 12
    KEY_7 = 13
    KEY_8 = 14
    KEY_9 = 15
    KEY_SEMICOLON = 16
    KEY_EQUAL = 17
    KEY_A = 18
    KEY_B = 19
    KEY_C = 20
    KEY_D = 21
    KEY_E = 22
    KEY_F = 23
    KEY_G = 24
    KEY_H = 25
    KEY_I = 26
    KEY_J = 27
    KEY_K = 28
    KEY_L = 29
    KEY_M = 30
    KEY_N = 31
    KEY_O = 32
    KEY_P = 33
    KEY_Q = 34
    KEY_R = 35
    KEY_S = 36
    KEY_T = 37
    KEY_U = 38
    KEY_V = 39
    KEY_W = 40
    KEY_X = 41
    KEY_Y = 42
    KEY_Z = 43
    KEY_LEFT_BRACKET = 44
    KEY_BACKSLASH = 45
    KEY_RIGHT_BRACKET = 46
    KEY_GRAVE_ACCENT = 47
    KEY_ESCAPE = 48
    KEY_TAB = 49
    KEY_ENTER = 50
    KEY_BACKSPACE = 51
    KEY_INSERT = 52
    KEY_DEL = 53
    KEY_RIGHT = 54
    KEY_LEFT = 55
    KEY_DOWN = 56
    KEY_UP = 57
    KEY_PAGE_UP = 58
    KEY_PAGE_DOWN = 59
    KEY_HOME = 60
    KEY_END = 61
    KEY_CAPS_LOCK = 62
    KEY_SCROLL_LOCK = 63
    KEY_NUM_LOCK = 64
    KEY_PRINT_SCREEN = 65
    KEY_PAUSE = 66
    KEY_F1 = 67
    KEY_F2 = 68
    KEY_F3 = 69
    KEY_F4 = 70
    KEY_F5 = 71
    KEY_F6 = 72
    KEY_F7 = 73
    KEY_F8 = 74
    KEY_F9 = 75
    KEY_F10 = 76
    KEY_F11 = 77
    KEY_F12 = 78
    KEY_NUMPAD_0 = 79
    KEY_NUMPAD_1 = 80
    KEY_NUMPAD_2 = 81
    KEY_NUMPAD_3 = 82
    KEY_NUMPAD_4 = 83
    KEY_NUMPAD_5 = 84
    KEY_NUMPAD_6 = 85
    KEY_NUMPAD_7 = 86
    KEY_NUMPAD_8 = 87
    KEY_NUMPAD_9 = 88
    KEY_NUMPAD_DEL = 89
    KEY_NUMPAD_DIVIDE = 90
    KEY_NUMPAD_MULTIPLY = 91
    KEY_NUMPAD_SUBTRACT = 92
    KEY_NUMPAD_ADD = 93
    KEY_NUMPAD_ENTER = 94
    KEY_NUMPAD_EQUAL = 95
    KEY_LEFT_SHIFT = 96
    KEY_LEFT_CONTROL = 97
    KEY_LEFT_ALT = 98
    KEY_LEFT_SUPER = 99
    KEY_RIGHT_SHIFT = 100
    KEY_RIGHT_CONTROL = 101
    KEY_RIGHT_ALT = 102
    KEY_RIGHT_SUPER = 103
    KEY_MENU = 104


class MouseInput(_enum.IntEnum):
    """Mouse inputs that viewer events can be bound to."""

    MOUSE_LEFT_BUTTON = 0
    MOUSE_RIGHT_BUTTON = 1
    MOUSE_MIDDLE_BUTTON = 2
    MOUSE_FORWARD_BUTTON = 3
    MOUSE_BACK_BUTTON = 4
    MOUSE_SCROLL_RIGHT = 5
    MOUSE_SCROLL_LEFT = 6
    MOUSE_SCROLL_UP = 7
    MOUSE_SCROLL_DOWN = 8
    MOUSE_MOVE_RIGHT = 9
    MOUSE_MOVE_LEFT = 10
    MOUSE_MOVE_UP = 11
    MOUSE_MOVE_DOWN = 12


SIM_PHYSX, SIM_FLEX = SimType
UP_AXIS_Y, UP_AXIS_Z = UpAxis
DOF_MODE_NONE, DOF_MODE_POS, DOF_MODE_VEL, DOF_MODE_EFFORT = DofDriveMode
CC_NEVER, CC_LAST_SUBSTEP, CC_ALL_SUBSTEPS = ContactCollection
DOMAIN_ACTOR, DOMAIN_ENV, DOMAIN_SIM = IndexDomain
ENV_SPACE, LOCAL_SPACE, GLOBAL_SPACE = CoordinateSpace
MESH_NONE, MESH_COLLISION, MESH_VISUAL, MESH_VISUAL_AND_COLLISION = MeshType
IMAGE_COLOR, IMAGE_DEPTH, IMAGE_SEGMENTATION, IMAGE_OPTICAL_FLOW = ImageType
DOF_INVALID, DOF_ROTATION, DOF_TRANSLATION = DofType
JOINT_INVALID, JOINT_FIXED, JOINT_REVOLUTE, JOINT_PRISMATIC, JOINT_BALL, JOINT_PLANAR, JOINT_FLOATING = JointType
FROM_ASSET, COMPUTE_PER_VERTEX, COMPUTE_PER_FACE = MeshNormalMode
FOLLOW_POSITION, FOLLOW_TRANSFORM = CameraFollowMode
TENDON_FIXED, TENDON_SPATIAL = TendonType
DTYPE_FLOAT32, DTYPE_UINT32, DTYPE_UINT64, DTYPE_UINT8, DTYPE_INT16 = TensorDataType
MAT_COROTATIONAL, MAT_NEOHOOKEAN = SoftMaterialType
USD_MATERIAL_DISPLAY_COLOR, USD_MATERIAL_MDL, USD_MATERIAL_PREVIEW_SURFACE = UsdMaterialMode
(
    KEY_SPACE, KEY_APOSTROPHE, KEY_COMMA, KEY_MINUS, KEY_PERIOD, KEY_SLASH, KEY_0, KEY_1, KEY_2, KEY_3, KEY_4,
    KEY_5, KEY_6, KEY_7, KEY_8, KEY_9, KEY_SEMICOLON, KEY_EQUAL, KEY_A, KEY_B, KEY_C, KEY_D, KEY_E, KEY_F, KEY_G,
    KEY_H, KEY_I, KEY_J, KEY_K, KEY_L, KEY_M, KEY_N, KEY_O, KEY_P, KEY_Q, KEY_R, KEY_S, KEY_T, KEY_U, KEY_V, KEY_W,
    KEY_X, KEY_Y, KEY_Z, KEY_LEFT_BRACKET, KEY_BACKSLASH, KEY_RIGHT_BRACKET, KEY_GRAVE_ACCENT, KEY_ESCAPE, KEY_TAB,
    KEY_ENTER, KEY_BACKSPACE, KEY_INSERT, KEY_DEL, KEY_RIGHT, KEY_LEFT, KEY_DOWN, KEY_UP, KEY_PAGE_UP,
    KEY_PAGE_DOWN, KEY_HOME, KEY_END, KEY_CAPS_LOCK, KEY_SCROLL_LOCK, KEY_NUM_LOCK, KEY_PRINT_SCREEN, KEY_PAUSE,
    KEY_F1, KEY_F2, KEY_F3, KEY_F4, KEY_F5, KEY_F6, KEY_F7, KEY_F8, KEY_F9, KEY_F10, KEY_F11, KEY_F12, KEY_NUMPAD_0,
    KEY_NUMPAD_1, KEY_NUMPAD_2, KEY_NUMPAD_3, KEY_NUMPAD_4, KEY_NUMPAD_5, KEY_NUMPAD_6, KEY_NUMPAD_7, KEY_NUMPAD_8,
    KEY_NUMPAD_9, KEY_NUMPAD_DEL, KEY_NUMPAD_DIVIDE, KEY_NUMPAD_MULTIPLY, KEY_NUMPAD_SUBTRACT, KEY_NUMPAD_ADD,
    KEY_NUMPAD_ENTER, KEY_NUMPAD_EQUAL, KEY_LEFT_SHIFT, KEY_LEFT_CONTROL, KEY_LEFT_ALT, KEY_LEFT_SUPER,
    KEY_RIGHT_SHIFT, KEY_RIGHT_CONTROL, KEY_RIGHT_ALT, KEY_RIGHT_SUPER, KEY_MENU,
) = KeyboardInput
(
    MOUSE_LEFT_BUTTON, MOUSE_RIGHT_BUTTON, MOUSE_MIDDLE_BUTTON, MOUSE_FORWARD_BUTTON, MOUSE_BACK_BUTTON,
    MOUSE_SCROLL_RIGHT, MOUSE_SCROLL_LEFT, MOUSE_SCROLL_UP, MOUSE_SCROLL_DOWN, MOUSE_MOVE_RIGHT, MOUSE_MOVE_LEFT,
    MOUSE_MOVE_UP, MOUSE_MOVE_DOWN,
) = MouseInput

# Which parts of a state are read or written.
STATE_NONE = 0
STATE_POS = 1
STATE_VEL = 2
STATE_ALL = 3

# Bit masks of degrees of freedom.
AXIS_NONE = 0
AXIS_X = 1
AXIS_Y = 2
AXIS_Z = 4
AXIS_TRANSLATION = 7
AXIS_TWIST = 8
AXIS_SWING_1 = 16
AXIS_SWING_2 = 32
AXIS_ROTATION = 56
AXIS_ALL = 63

# Rigid-body flags.
RIGID_BODY_NONE = 0
RIGID_BODY_DISABLE_GRAVITY = 1
RIGID_BODY_DISABLE_SIMULATION = 2
RIGID_BODY_ENABLE_GYROSCOPIC_FORCES = 4

# What lookups by name return when there is no such name.
INVALID_HANDLE = -1

# Default viewer size in pixels.
DEFAULT_VIEWER_WIDTH = 1600
DEFAULT_VIEWER_HEIGHT = 900
