"""Small robot files as text, for the tests of the asset readers."""

from pathlib import Path

from isaacgym._params import AssetOptions
from isaacgym.engine import read_mjcf, read_urdf

INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
UNIT = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
"""1 kg, 0.1 kg m2 about each axis."""
GEOM = '<geom size="0.1"/>'


def options(**values):
    made = AssetOptions()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def load_urdf(folder, body, asset_root=None, **values):
    """The asset of a <robot> with the given content, written to folder/robot.urdf (the content starts on line 2)."""
    path = Path(folder) / "robot.urdf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<robot name="test">\n{body}</robot>\n')
    return read_urdf.load(path, options(**values), asset_root)


def load_mjcf(folder, worldbody, rest="", **values):
    """The asset of a <mujoco> file, written to folder/robot.xml (the content of its worldbody starts on line 3)."""
    path = Path(folder) / "robot.xml"
    path.write_text(f"<mujoco model='test'>\n<worldbody>\n{worldbody}\n</worldbody>\n{rest}</mujoco>\n")
    return read_mjcf.load(path, options(**values))


def link(name, content=UNIT):
    return f'<link name="{name}">{content}</link>\n'


def joint(name, parent, child, kind="revolute", extra="", attributes=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}" {attributes}>{ends}{extra}</joint>\n'


def mesh_link(filename, extra=""):
    return link("a", f'{UNIT}<collision><geometry><mesh filename="{filename}" {extra}/></geometry></collision>')


def on_base(content, attributes=""):
    """A body 'link' with the content on a fixed body 'base'; both have a geom."""
    return f'<body name="base">{GEOM}\n<body name="link" {attributes}>\n{content}\n{GEOM}</body></body>'


def dof(asset, index=0):
    return asset.dof_joints[index][1]
