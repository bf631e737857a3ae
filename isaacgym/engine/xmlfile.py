"""XML with places: parsing, and typed attributes whose errors name file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from isaacgym.engine.asset import AssetError
from isaacgym.engine.spatial import Array

HARMLESS = ("ERR_UNKNOWN_VERSION", "ERR_RESERVED_XML_NAME")
"""Faults of many files in use: <?xml version="0.0"?>, and that line after a comment. Unbound prefixes are another."""

Element = Any  # lxml's element class is a C type without annotations


def parse(path: Path) -> Element:
    """The root element of an XML file; raises AssetError with file:line when it does not parse."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise AssetError(f"{path}: cannot be read ({problem.strerror or problem})") from None
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.fromstring(data, parser, base_url=str(path)) if data.strip() else None
    errors = [
        entry for entry in parser.error_log if entry.domain_name != "NAMESPACE" and entry.type_name not in HARMLESS
    ]
    if errors:
        raise AssetError(f"{path}:{errors[0].line}: not well-formed XML: {errors[0].message.strip()}")
    if root is None:
        raise AssetError(f"{path}:1: the file holds no XML element")
    return root


def file_of(element: Element) -> Path:
    """The file an element was read from."""
    return Path(element.getroottree().docinfo.URL)


def where(element: Element) -> str:
    """``path:line`` of an element."""
    return f"{file_of(element)}:{element.sourceline}"


def error(element: Element, text: str) -> AssetError:
    """An AssetError that points at an element."""
    return AssetError(f"{where(element)}: {text}")


def elements(parent: Element) -> Iterator[Element]:
    """Child elements, without comments and processing instructions."""
    return (child for child in parent if isinstance(child.tag, str))


class Item:
    """An element with typed attributes; what it does not say itself may come from ``inherited`` attributes."""

    def __init__(self, element: Element, inherited: Mapping[str, str] | None = None) -> None:
        self.element = element
        self.own: Mapping[str, str] = element.attrib
        self.inherited: Mapping[str, str] = inherited or {}

    @property
    def tag(self) -> str:
        """Name of the element."""
        return str(self.element.tag)

    @property
    def where(self) -> str:
        """``path:line``."""
        return where(self.element)

    def error(self, text: str) -> AssetError:
        """An AssetError at this element."""
        return error(self.element, text)

    def has(self, name: str) -> bool:
        """True when the attribute is written here or inherited."""
        return name in self.own or name in self.inherited

    def text(self, name: str, default: str | None = None) -> str | None:
        """The attribute as written, blanks stripped."""
        value = self.own.get(name, self.inherited.get(name, default))
        return value.strip() if value is not None else None

    def required(self, name: str) -> str:
        """The attribute as written; raises AssetError when it is missing or empty."""
        value = self.text(name)
        if not value:
            raise self.error(f"<{self.tag}> lacks the attribute '{name}'")
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """The attribute, which must be one of ``allowed``."""
        value = self.text(name, default) or default
        if value not in allowed:
            raise self.error(f'{name}="{value}" of <{self.tag}>; allowed is {", ".join(allowed)}')
        return value

    def numbers(self, name: str) -> Array | None:
        """All numbers of an attribute, None when it is missing; raises AssetError on what is no finite number."""
        value = self.text(name)
        if value is None:
            return None
        try:
            result = np.array([float(word) for word in value.replace(",", " ").split()], dtype=np.float64)
        except ValueError:
            raise self.error(f'{name}="{value}" of <{self.tag}>; numbers are needed') from None
        if not np.isfinite(result).all():
            raise self.error(f'{name}="{value}" of <{self.tag}>; finite numbers are needed')
        return result

    def vector(self, name: str, length: int, default: Array | tuple[float, ...] | None = None) -> Array:
        """Exactly ``length`` numbers, or the default; raises AssetError when there is neither."""
        value = self.numbers(name)
        if value is None:
            if default is None:
                raise self.error(f"<{self.tag}> lacks the attribute '{name}'")
            return np.array(default, dtype=np.float64)
        if len(value) != length:
            raise self.error(f"{name} of <{self.tag}> has {len(value)} numbers; {length} are needed")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """One number (the first, where a newer format allows several), or the default."""
        value = self.numbers(name)
        if value is None or not len(value):
            if default is None:
                raise self.error(f"<{self.tag}> lacks the attribute '{name}'")
            return default
        return float(value[0])
