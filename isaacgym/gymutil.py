"""Command line, configuration, debug lines and domain randomisation helpers (API notes, section 13)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ._enums import SIM_FLEX, SIM_PHYSX
from ._fields import Record
from ._lines import (
    AxesGeometry,
    LineGeometry,
    WireframeBBoxGeometry,
    WireframeBoxGeometry,
    WireframeSphereGeometry,
    draw_line,
    draw_lines,
)
from ._params import SimParams
from ._randomize import (
    apply_random_samples,
    check_buckets,
    generate_random_samples,
    get_bucketed_val,
    get_default_setter_args,
    get_property_getter_map,
    get_property_setter_map,
)
from ._values import Vec3

__all__ = [
    "AxesGeometry",
    "LineGeometry",
    "WireframeBBoxGeometry",
    "WireframeBoxGeometry",
    "WireframeSphereGeometry",
    "apply_random_samples",
    "check_buckets",
    "draw_line",
    "draw_lines",
    "generate_random_samples",
    "get_bucketed_val",
    "get_default_setter_args",
    "get_property_getter_map",
    "get_property_setter_map",
    "parse_arguments",
    "parse_device_str",
    "parse_sim_config",
]


def parse_device_str(device_str: str) -> tuple[str, int]:
    """Return device type and index: "cpu" -> ("cpu", 0), "cuda" -> ("cuda", 0), "cuda:N" -> ("cuda", N).

    "gpu" and "gpu:N" are read as "cuda". Raises ValueError for anything else.
    """
    match = re.fullmatch(r"cpu|(?:cuda|gpu)(?::(\d+))?", device_str.strip().lower())
    if match is None:
        raise ValueError(f"device {device_str!r} is not one of cpu, cuda, cuda:N")
    if match[0] == "cpu":
        return "cpu", 0
    return "cuda", int(match[1] or 0)


def parse_arguments(
    description: str = "Isaac Gym Example",
    headless: bool = False,
    no_graphics: bool = False,
    custom_parameters: Sequence[Mapping[str, Any]] = (),
) -> argparse.Namespace:
    """Parse the command line of an example script.

    Args:
        description: shown by --help.
        headless: offer --headless.
        no_graphics: offer --nographics, which implies headless.
        custom_parameters: further options, mappings with "name", either "type" or "action", and optionally
            "default" and "help".

    Returns:
        The options, with ``sim_device_type``, ``compute_device_id``, ``use_gpu_pipeline``, ``use_gpu`` and
        ``physics_engine`` derived from them.
    """
    parser = argparse.ArgumentParser(description=description)
    if headless:
        parser.add_argument("--headless", action="store_true", help="run without a viewer")
    if no_graphics:
        parser.add_argument("--nographics", action="store_true", help="run without graphics; implies --headless")
    parser.add_argument("--sim_device", type=str, default="cuda:0", help="physics device: cpu, cuda or cuda:N")
    parser.add_argument("--pipeline", type=str, default="gpu", help="where state tensors live: cpu or gpu")
    parser.add_argument("--graphics_device_id", type=int, default=0, help="graphics device")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--flex", action="store_true", help="use Flex (not supported)")
    engine.add_argument("--physx", action="store_true", help="use PhysX (the default)")
    parser.add_argument("--num_threads", type=int, default=0, help="worker threads of CPU physics")
    parser.add_argument("--subscenes", type=int, default=0, help="number of PhysX sub-scenes (ignored)")
    parser.add_argument("--slices", type=int, help="client threads for environments (ignored); default: subscenes")
    for parameter in custom_parameters:
        _add_custom(parser, parameter)
    return _derive(parser.parse_args())


def _add_custom(parser: argparse.ArgumentParser, parameter: Mapping[str, Any]) -> None:
    """Add an option described by a mapping; say which one is no good and skip it."""
    name = parameter.get("name")
    help_text = parameter.get("help", "")
    if name is not None and "type" in parameter:
        parser.add_argument(name, type=parameter["type"], default=parameter.get("default"), help=help_text)
    elif name is not None and "action" in parameter:
        parser.add_argument(name, action=parameter["action"], help=help_text)
    else:
        print(f"ERROR: custom parameter {dict(parameter)} needs a name and either a type or an action; skipped")


def _derive(args: argparse.Namespace) -> argparse.Namespace:
    """Check the pipeline and set the attributes that follow from the options."""
    args.physics_engine = SIM_FLEX if args.flex else SIM_PHYSX
    args.sim_device_type, args.compute_device_id = parse_device_str(args.sim_device)
    if args.flex and args.sim_device_type == "cpu":
        print("Flex needs a GPU: the physics device becomes cuda:0")
        args.sim_device, args.sim_device_type, args.compute_device_id = "cuda:0", "cuda", 0

    args.pipeline = args.pipeline.lower()
    assert args.pipeline in ("cpu", "gpu", "cuda"), f"--pipeline {args.pipeline!r} is not one of cpu, gpu, cuda"
    if args.sim_device_type == "cpu" and args.pipeline != "cpu":
        print("The physics device is the CPU: using the CPU pipeline")
        args.pipeline = "cpu"
    args.use_gpu_pipeline = args.pipeline in ("gpu", "cuda")
    args.use_gpu = args.sim_device_type == "cuda"

    if getattr(args, "nographics", False):
        args.headless = True
    if args.slices is None:
        args.slices = args.subscenes
    return args


def parse_sim_config(sim_cfg: Any, sim_params: SimParams) -> None:
    """Copy what ``sim_cfg`` says into ``sim_params``.

    Args:
        sim_cfg: mapping or object with attributes named like those of SimParams; "physx" and "flex" are nested
            ones, "gravity" is three numbers or a Vec3. Names that SimParams does not have are ignored.
        sim_params: the parameters to change.

    Raises TypeError or ValueError, naming the parameter, for values of a wrong kind.
    """
    _copy_known(sim_cfg, sim_params)


def _copy_known(cfg: Any, record: Record) -> None:
    """Copy the entries of ``cfg`` that ``record`` has, nested records included."""
    for name, value in _entries(cfg):
        if name not in record.field_names():
            continue
        current = getattr(record, name)
        if isinstance(value, Record) or not isinstance(current, Record):
            setattr(record, name, value)
        elif isinstance(current, Vec3):
            setattr(record, name, Vec3(*value))
        else:
            _copy_known(value, current)


def _entries(cfg: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values of a mapping or of an object's public attributes."""
    if isinstance(cfg, Mapping):
        yield from cfg.items()
        return
    for name in dir(cfg):
        if not name.startswith("_"):
            yield name, getattr(cfg, name)


def _indent_xml(elem: ElementTree.Element, level: int = 0) -> None:
    """Indent an XML element and what it holds by two spaces a level, in place."""
    ElementTree.indent(elem, space="  ", level=level)
