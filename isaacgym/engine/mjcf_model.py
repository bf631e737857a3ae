"""An MJCF file as a whole: includes, compiler options, default classes and named assets, before any body is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isaacgym.engine import spatial, xmlfile
from isaacgym.engine.asset import AssetError
from isaacgym.engine.spatial import Array, Pose
from isaacgym.engine.xmlfile import Element, Item

ACTUATOR_TAGS = (
    "motor", "position", "velocity", "general", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "plugin",
)  # fmt: skip
SHARED_ACTUATOR_ATTRIBUTES = (
    "gear", "ctrlrange", "ctrllimited", "forcerange", "forcelimited", "inheritrange",
)  # fmt: skip
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
AUTO = ("true", "false", "auto")

Attributes = dict[str, str]


@dataclass
class Compiler:
    """The <compiler> options that change what a file means (the format's own defaults)."""

    degrees: bool = True
    eulerseq: str = "xyz"
    meshdir: str = ""
    strippath: bool = False
    autolimits: bool = True
    inertiafromgeom: str = "auto"
    inertiagrouprange: tuple[float, float] = (0, 5)
    balanceinertia: bool = False
    boundmass: float = 0.0
    boundinertia: float = 0.0
    settotalmass: float = -1.0

    @property
    def angle(self) -> float:
        """Radians in the file's unit of angle."""
        return np.pi / 180 if self.degrees else 1.0


@dataclass
class _Default:
    """A default class: attributes by tag, inherited ones included."""

    attributes: dict[str, Attributes] = field(default_factory=dict)


class Model:
    """The parsed file, and lookups that respect its defaults and compiler options."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.root = xmlfile.parse(path)
        if self.root.tag != "mujoco":
            raise xmlfile.error(self.root, f"the root element is <{self.root.tag}>; an MJCF file has <mujoco>")
        self._included: dict[Element, Element] = {}
        self._files = [path.resolve()]
        self.compiler = Compiler()
        for element in self.section_elements("compiler"):
            self._read_compiler(Item(element))
        self.defaults: dict[str, _Default] = {"main": _Default()}
        for index, element in enumerate(self.section_elements("default")):
            is_main = index == 0 or element.get("class", "main") == "main"
            self._read_default(element, None if is_main else "main")

    # ---- elements

    def children(self, parent: Element) -> Iterator[Element]:
        """Child elements in document order, with those of included files in the place of each <include>."""
        for element in xmlfile.elements(parent):
            if element.tag == "include":
                yield from self.children(self._include(element))
            else:
                yield element

    def section_elements(self, tag: str) -> Iterator[Element]:
        """The top-level elements of one kind (a section may occur several times)."""
        return (element for element in self.children(self.root) if element.tag == tag)

    def section(self, tag: str) -> Iterator[Element]:
        """The children of all top-level elements of one kind."""
        for element in self.section_elements(tag):
            yield from self.children(element)

    def _include(self, element: Element) -> Element:
        if element not in self._included:
            name = Item(element).required("file")
            candidates = [self.path.parent / name, xmlfile.file_of(element).parent / name]
            found = next((path for path in candidates if path.is_file()), None)
            if found is None:
                raise xmlfile.error(element, f"included file '{name}' does not exist")
            if found.resolve() in self._files:
                raise xmlfile.error(element, f"'{name}' is included a second time; a file may be included once")
            self._files.append(found.resolve())
            self._included[element] = xmlfile.parse(found)
        return self._included[element]

    # ---- compiler and defaults

    def _read_compiler(self, item: Item) -> None:
        options = self.compiler
        if item.choice("coordinate", ("local", "global"), "local") == "global":
            raise item.error('coordinate="global" is not supported; allowed is local')
        if item.has("angle"):
            options.degrees = item.choice("angle", ("degree", "radian"), "degree") == "degree"
        if item.has("eulerseq"):
            options.eulerseq = item.required("eulerseq")
            if len(options.eulerseq) != 3 or not set(options.eulerseq) <= set("xyzXYZ"):
                raise item.error(f'eulerseq="{options.eulerseq}"; three letters of xyzXYZ are needed')
        if item.has("meshdir") or item.has("assetdir"):
            options.meshdir = item.text("meshdir") or item.text("assetdir") or ""
        for name in ("strippath", "autolimits", "balanceinertia"):
            if item.has(name):
                setattr(options, name, item.choice(name, ("true", "false"), "false") == "true")
        for name in ("boundmass", "boundinertia", "settotalmass"):
            setattr(options, name, item.number(name, getattr(options, name)))
        options.inertiafromgeom = item.choice("inertiafromgeom", AUTO, options.inertiafromgeom)
        low, high = item.vector("inertiagrouprange", 2, options.inertiagrouprange)
        options.inertiagrouprange = (float(low), float(high))

    def _read_default(self, element: Element, parent: str | None) -> None:
        name = element.get("class") or ("main" if parent is None else "")
        if not name:
            raise xmlfile.error(element, "a nested <default> needs the attribute 'class'")
        if name not in self.defaults:
            self.defaults[name] = _Default()
        inherited = self.defaults[parent].attributes if parent is not None else {}
        own = self.defaults[name].attributes
        for tag, attributes in inherited.items():
            own[tag] = {**attributes, **own.get(tag, {})}
        if parent is None:
            # the top-level class is the main one, whatever its name
            self.defaults["main"] = self.defaults[name]
        nested = []
        for child in self.children(element):
            if child.tag == "default":
                nested.append(child)
            else:
                own[child.tag] = {**own.get(child.tag, {}), **child.attrib}
        for child in nested:
            self._read_default(child, name)

    def item(self, element: Element, childclass: str | None = None, tag: str | None = None) -> Item:
        """The element with the attributes of its class, of the enclosing childclass, or of the main class."""
        name = element.get("class") or childclass or "main"
        if name not in self.defaults:
            known = ", ".join(sorted(self.defaults))
            raise xmlfile.error(element, f"<{element.tag}> names the default class '{name}'; defined are {known}")
        return Item(element, self._inherited(self.defaults[name].attributes, tag or element.tag))

    def _inherited(self, attributes: Mapping[str, Attributes], tag: str) -> Attributes:
        if tag not in ACTUATOR_TAGS:
            return attributes.get(tag, {})
        # all kinds of actuators share the defaults of what they have in common
        shared = {
            name: value
            for other in ACTUATOR_TAGS
            for name, value in attributes.get(other, {}).items()
            if name in SHARED_ACTUATOR_ATTRIBUTES
        }
        return {**shared, **attributes.get(tag, {})}

    # ---- poses and switches

    def pose(self, item: Item) -> Pose:
        """Position and orientation of an element, in any of the notations of the format."""
        return item.vector("pos", 3, (0, 0, 0)), self.orientation(item)

    def orientation(self, item: Item) -> Array:
        """Quaternion (4,) xyzw of an element; identity where none is written."""
        source = Item(item.element) if any(name in item.own for name in ORIENTATIONS) else item
        written = [name for name in ORIENTATIONS if source.has(name)]
        if not written:
            return spatial.identity_quat()
        try:
            return self._orientation(source, written[0])
        except ValueError as problem:
            if isinstance(problem, AssetError):
                raise
            raise item.error(f"{written[0]} of <{item.tag}> gives no orientation: {problem}") from None

    def _orientation(self, item: Item, notation: str) -> Array:
        if notation == "quat":
            w, x, y, z = item.vector("quat", 4)
            return spatial.normalized(np.array([x, y, z, w]))
        if notation == "axisangle":
            values = item.vector("axisangle", 4)
            return spatial.from_axis_angle(values[:3], float(values[3]) * self.compiler.angle)
        if notation == "euler":
            return spatial.from_euler(item.vector("euler", 3) * self.compiler.angle, self.compiler.eulerseq)
        if notation == "zaxis":
            return spatial.from_z_to(item.vector("zaxis", 3))
        axes = item.vector("xyaxes", 6)
        x = spatial.normalized(axes[:3])
        y = spatial.normalized(axes[3:] - x * float(x @ axes[3:]))
        return spatial.from_matrix(np.column_stack([x, y, np.cross(x, y)]))

    def is_limited(self, item: Item, switch: str, range_name: str) -> bool:
        """Whether a range is in force: written true or false, or automatic where the compiler allows it."""
        value = item.choice(switch, AUTO, "auto")
        if value != "auto":
            return value == "true"
        if item.has(range_name) and not self.compiler.autolimits:
            self.notes.append(f'{item.where}: {range_name} without {switch}="true" and autolimits off: not limited')
        return self.compiler.autolimits and item.has(range_name)
