"""Triangles of a COLLADA (.dae) file: geometry, node transforms and the unit; nothing else.

The up axis is left as written, as URDF viewers do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from isaacgym.engine import spatial
from isaacgym.engine.spatial import Array

Element = Any


def load(path: Path) -> list[tuple[Array, np.ndarray]]:
    """(vertices (V, 3) in metres, triangles (T, 3)) of every geometry instance; raises ValueError when unreadable."""
    try:
        root = etree.fromstring(path.read_bytes(), etree.XMLParser(resolve_entities=False, huge_tree=True))
    except etree.XMLSyntaxError as problem:
        raise ValueError(f"{path.name}:{problem.lineno}: not well-formed XML") from None
    unit = next(iter(root.iterfind(".//{*}asset/{*}unit")), None)
    scale = float(unit.get("meter", "1")) if unit is not None else 1.0
    by_id = {
        element.get("id"): element for element in root.iter() if isinstance(element.tag, str) and element.get("id")
    }
    placed = [
        found for scene in root.iterfind(".//{*}visual_scene") for found in _instances(scene, np.eye(4), by_id)
    ] or [(geometry, np.eye(4)) for geometry in root.iterfind(".//{*}geometry")]
    parts = []
    for geometry, matrix in placed:
        for vertices, triangles in _triangles(geometry, by_id):
            moved = (vertices @ matrix[:3, :3].T + matrix[:3, 3]) * scale
            parts.append((moved, triangles[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else triangles))
    return parts


def _local(element: Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _numbers(element: Element) -> Array:
    return np.array((element.text or "").split(), dtype=np.float64)


def _instances(node: Element, outer: Array, by_id: dict[str, Element]) -> list[tuple[Element, Array]]:
    """(geometry, 4x4 matrix) of all geometry instances below a node."""
    matrix, found = outer, []
    for child in node:
        kind = _local(child)
        if kind in ("matrix", "translate", "rotate", "scale"):
            matrix = matrix @ _transform(kind, _numbers(child))
        elif kind == "node":
            found += _instances(child, matrix, by_id)
        elif kind == "instance_node":
            found += _instances(by_id[child.get("url")[1:]], matrix, by_id)
        elif kind == "instance_geometry":
            found.append((by_id[child.get("url")[1:]], matrix))
    return found


def _transform(kind: str, values: Array) -> Array:
    matrix = np.eye(4)
    if kind == "matrix":
        return values.reshape(4, 4)
    if kind == "translate":
        matrix[:3, 3] = values
    elif kind == "scale":
        matrix[:3, :3] = np.diag(values)
    else:
        matrix[:3, :3] = spatial.to_matrix(spatial.from_axis_angle(values[:3], np.deg2rad(values[3])))
    return matrix


def _triangles(geometry: Element, by_id: dict[str, Element]) -> list[tuple[Array, np.ndarray]]:
    """(vertices, triangles) of every triangles, polylist and polygons element of one geometry."""
    parts = []
    for primitive in geometry.iter("{*}triangles", "{*}polylist", "{*}polygons"):
        inputs = list(primitive.iterfind("{*}input"))
        stride = 1 + max(int(entry.get("offset", "0")) for entry in inputs)
        vertex = next(entry for entry in inputs if entry.get("semantic") == "VERTEX")
        offset = int(vertex.get("offset", "0"))
        faces = [_numbers(p).astype(np.int64).reshape(-1, stride)[:, offset] for p in primitive.iterfind("{*}p")]
        if _local(primitive) == "polygons":
            loops = faces
        else:
            corners = np.concatenate(faces) if faces else np.zeros(0, dtype=np.int64)
            counts = next(iter(primitive.iterfind("{*}vcount")), None)
            sizes = _numbers(counts).astype(int) if counts is not None else np.full(len(corners) // 3, 3)
            loops = np.split(corners, np.cumsum(sizes)[:-1]) if len(sizes) else []
        fans = [(loop[0], loop[k], loop[k + 1]) for loop in loops for k in range(1, len(loop) - 1)]
        parts.append((_positions(vertex, by_id), np.array(fans, dtype=np.int64).reshape(-1, 3)))
    return parts


def _positions(vertex: Element, by_id: dict[str, Element]) -> Array:
    vertices = by_id[vertex.get("source")[1:]]
    entry = next(each for each in vertices.iterfind("{*}input") if each.get("semantic") == "POSITION")
    source = by_id[entry.get("source")[1:]]
    return _numbers(next(iter(source.iterfind("{*}float_array")))).reshape(-1, 3)
