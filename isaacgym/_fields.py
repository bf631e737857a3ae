"""The small declarative base of all value and parameter classes of the API.

A class lists its attributes as fields and gets everything else from ``Record``::

    class Velocity(Record):
        linear = Nested(Vec3, "m/s")
        angular = Nested(Vec3, "rad/s")

The rules that all of them share (API notes, section 6): numbers accept Python and numpy scalars and
one-element arrays and tensors; nested value objects are live references when read and copies when
assigned; objects compare by identity, can be copied and pickled, and refuse unknown attribute names.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
from numpy.lib.recfunctions import unstructured_to_structured

T = TypeVar("T")
R = TypeVar("R", bound="Record")
E = TypeVar("E", bound=IntEnum)


def as_scalar(value: Any) -> Any:
    """Return the Python scalar in ``value``: a scalar, or a one-element array or tensor.

    Raises TypeError for text and for arrays of another size.
    """
    if isinstance(value, (str, bytes)):
        raise TypeError(f"a number is needed, got {value!r}")
    item = getattr(value, "item", None)
    if item is None:
        return value
    try:
        return item()
    except (ValueError, RuntimeError) as error:
        raise TypeError(f"one number is needed, got an array of shape {tuple(value.shape)}") from error


def as_float(value: Any) -> float:
    """Return ``value`` (scalar, or one-element array or tensor) as a float."""
    return value if type(value) is float else float(as_scalar(value))


def as_int(value: Any) -> int:
    """Return ``value`` as an int; a float must be a whole number."""
    if type(value) is int:
        return value
    scalar = as_scalar(value)
    if isinstance(scalar, float) and scalar.is_integer():
        return int(scalar)
    return int(operator.index(scalar))


def as_bool(value: Any) -> bool:
    """Return ``value`` (a bool or a number) as a bool."""
    return value if type(value) is bool else bool(as_scalar(value))


def as_str(value: Any) -> str:
    """Return ``value`` if it is text, raise TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"text is needed, got {type(value).__name__}")
    return value


class Field(Generic[T]):
    """A typed attribute of a ``Record``: converts on assignment, keeps the value in the object's ``__dict__``."""

    wire: np.dtype[Any] | None = None
    """Element type in structured arrays; None for what has none (text)."""

    def __init__(self, default: T, convert: Callable[[Any], T], doc: str = "", read_only: bool = False) -> None:
        """Describe the attribute.

        Args:
            default: the value of a new object.
            convert: turns an assigned value into the stored one; raises TypeError or ValueError.
            doc: meaning and unit.
            read_only: only the constructor may set it.
        """
        self.default = default
        self.convert = convert
        self.read_only = read_only
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the attribute's name."""
        self.name = name

    @overload
    def __get__(self, obj: None, owner: type) -> Field[T]: ...

    @overload
    def __get__(self, obj: object, owner: type) -> T: ...

    def __get__(self, obj: object | None, owner: type) -> Field[T] | T:
        """Return the value, or the field itself when read on the class."""
        if obj is None:
            return self
        value: T = obj.__dict__[self.name]
        return value

    def __set__(self, obj: object, value: Any) -> None:
        """Convert and store ``value``."""
        if self.read_only:
            raise AttributeError(f"{type(obj).__name__}.{self.name} is read-only")
        self.store(obj, value)

    def store(self, obj: object, value: Any) -> None:
        """Convert and store ``value`` even if the field is read-only (constructors use this)."""
        try:
            obj.__dict__[self.name] = self.convert(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{type(obj).__name__}.{self.name}: {error}") from error

    def fresh(self) -> T:
        """Return the value of a new object."""
        return self.default


class Float(Field[float]):
    """A number, float32 in structured arrays."""

    wire = np.dtype("<f4")

    def __init__(self, default: float = 0.0, doc: str = "", read_only: bool = False) -> None:
        """See ``Field``."""
        super().__init__(default, as_float, doc, read_only)


class Int(Field[int]):
    """A whole number, int32 in structured arrays."""

    wire = np.dtype("<i4")

    def __init__(self, default: int = 0, doc: str = "", read_only: bool = False) -> None:
        """See ``Field``."""
        super().__init__(default, as_int, doc, read_only)


class Bool(Field[bool]):
    """A switch."""

    wire = np.dtype("?")

    def __init__(self, default: bool = False, doc: str = "", read_only: bool = False) -> None:
        """See ``Field``."""
        super().__init__(default, as_bool, doc, read_only)


class Str(Field[str]):
    """A text."""

    def __init__(self, default: str = "", doc: str = "", read_only: bool = False) -> None:
        """See ``Field``."""
        super().__init__(default, as_str, doc, read_only)


class Choice(Field[E]):
    """A member of an enumeration; ints of the same value are accepted."""

    wire = np.dtype("<i4")

    def __init__(self, default: E, doc: str = "", read_only: bool = False) -> None:
        """See ``Field``; the enumeration is the one of ``default``."""
        kind = type(default)
        super().__init__(default, lambda value: kind(as_int(value)), doc, read_only)


class Nested(Field[R]):
    """A value object: reading gives the object itself, assigning copies."""

    def __init__(self, kind: type[R], doc: str = "", default: Callable[[], R] | None = None) -> None:
        """See ``Field``.

        Args:
            kind: class of the value object.
            doc: meaning and unit.
            default: makes the value of a new owner; ``kind()`` if omitted.
        """
        self.kind = kind
        self.make = default or kind
        self.wire = kind.dtype
        super().__init__(self.make(), self._copy_of, doc)

    def _copy_of(self, value: Any) -> R:
        if not isinstance(value, self.kind):
            raise TypeError(f"a {self.kind.__name__} is needed, got {type(value).__name__}")
        return value.__copy__()

    def fresh(self) -> R:
        """Return a new default object, so that owners never share one."""
        return self.make()


class Record:
    """Base of the value and parameter classes, see the module's docstring."""

    __array_ufunc__ = None  # numpy scalars leave ``scalar * record`` to the record

    dtype: ClassVar[Any] = None
    """Packed little-endian structured dtype of the class; None where an attribute is text."""

    _fields: ClassVar[dict[str, Field[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the fields of the class and derive its dtype."""
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls._fields = {**cls._fields, **own}
        wires = [(name, field.wire) for name, field in cls._fields.items()]
        cls.dtype = None if any(wire is None for _, wire in wires) else np.dtype(wires)

    def __init__(self, **values: Any) -> None:
        """Set all attributes to their defaults, then those given by name."""
        state = self.__dict__
        for name, field in self._fields.items():
            if name not in values:
                state[name] = field.fresh()
        for name, value in values.items():
            self._field(name).store(self, value)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Return the names of the attributes in order."""
        return tuple(cls._fields)

    @classmethod
    def _field(cls, name: str) -> Field[Any]:
        field = cls._fields.get(name)
        if field is None:
            near = difflib.get_close_matches(name, cls._fields, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}{hint}")
        return field

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; unknown names raise AttributeError."""
        self._field(name).__set__(self, value)

    def __repr__(self) -> str:
        """Return the class name with all values."""
        return f"{type(self).__name__}({', '.join(f'{n}={self.__dict__[n]!r}' for n in self._fields)})"

    def __copy__(self: R) -> R:
        """Return an independent copy (nested objects are copied too)."""
        twin = object.__new__(type(self))
        for name, value in self.__dict__.items():
            twin.__dict__[name] = value.__copy__() if isinstance(value, Record) else value
        return twin

    def __deepcopy__(self: R, memo: dict[int, Any]) -> R:
        """Return an independent copy."""
        twin = self.__copy__()
        memo[id(self)] = twin
        return twin

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the values as a (nested) tuple, the form in which structured arrays take a row."""
        values = (self.__dict__[name] for name in self._fields)
        return tuple(value.as_tuple() if isinstance(value, Record) else value for value in values)

    @classmethod
    def from_tuple(cls: type[R], values: Any) -> R:
        """Make an object from a (nested) tuple or a structured row in field order, the inverse of ``as_tuple``."""
        parts = {}
        for (name, field), value in zip(cls._fields.items(), values, strict=True):
            parts[name] = field.kind.from_tuple(value) if isinstance(field, Nested) else value
        made = object.__new__(cls)
        Record.__init__(made, **parts)
        return made

    @classmethod
    def from_buffer(cls: type[R], buffer: Any) -> R:
        """Make an object from the first record in ``buffer``.

        Args:
            buffer: bytes, a structured row or array of this class's dtype, or an array of as many numbers.
        """
        if cls.dtype is None:
            raise TypeError(f"{cls.__name__} has no buffer layout")
        array = np.asarray(buffer) if isinstance(buffer, (np.ndarray, np.void)) else np.frombuffer(buffer, cls.dtype)
        if array.dtype.names is None:
            numbers = array.reshape(-1)
            array = unstructured_to_structured(numbers[: cls._numbers()], cls.dtype)
        if array.size == 0:
            raise ValueError(f"{cls.__name__}.from_buffer: the buffer holds no record")
        return cls.from_tuple(array.astype(cls.dtype).reshape(-1)[0].item())

    @classmethod
    def _numbers(cls) -> int:
        """Count the numbers of one record, nested ones included."""
        return sum(field.kind._numbers() if isinstance(field, Nested) else 1 for field in cls._fields.values())
