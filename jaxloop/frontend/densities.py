"""`densities` and `commonDensity` of a problem instance (spec/inputs.md 2.2)."""

from pathlib import Path

from .._errors import nearest
from ..spec.density import Density, Distribution, mask_of_text
from ..spec.einsum import Einsum, Tensor
from .nodes import Map, Node, Scalar
from .schema import Kind, Reader

_DISTRIBUTIONS = {str(member): member for member in Distribution}
_ALIASES = {"fixed": "fixed_structured", "diagonal": "banded", "actual_data": "real_data"}
_KEYS = ("distribution", "density", "band_width")
_SILENT = ("workload_tensor_size",)


def read_densities(reader: Reader, instance: Map, einsum: Einsum) -> dict[str, Density]:
    """The density of each tensor that has one; tensors that are not named are dense."""
    common = instance.get("commonDensity")
    listed = instance.get("densities")
    nodes: dict[str, Node] = {}
    if common is not None:
        nodes = {tensor.name: common for tensor in einsum.tensors}
        if listed is not None:
            reader.warn(
                instance.place_of("densities"), "`densities` is not used beside `commonDensity`", "keep one of the two"
            )
    elif listed is not None:
        map = reader.map(listed, "`densities`")
        names = [tensor.name for tensor in einsum.tensors]
        nodes = dict(map.items) if map is not None else {}
        for name in [name for name in nodes if name not in names]:
            reader.error(nodes[name].place, f'unknown tensor "{name}" in `densities`', nearest(name, names))
    found: dict[str, Density] = {}
    for tensor in einsum.tensors:
        density = _density(reader, nodes[tensor.name], tensor, einsum) if tensor.name in nodes else None
        if density is not None:
            found[tensor.name] = density
        elif common is not None:
            break  # what is wrong with the common density is said once
    return found


def _density(reader: Reader, node: Node, tensor: Tensor, einsum: Einsum) -> Density | None:
    if isinstance(node, Scalar):
        value = _share(reader, node, tensor)
        return None if value is None else Density(Distribution.FIXED_STRUCTURED, value)
    map = reader.map(node, f'the density of tensor "{tensor.name}"')
    if map is None:
        return None
    reader.check_keys(map, (*_KEYS, "data_file_path"), _SILENT)
    distribution = _distribution(reader, map, tensor)
    if distribution is None:
        return None
    if distribution is Distribution.BANDED:
        width = reader.value(map.get("band_width"), Kind.COUNT)
        _check_square(reader, map, tensor, einsum)
        return Density(distribution, band_width=width or 0)
    if distribution is Distribution.REAL_DATA:
        return _real_data(reader, map, tensor)
    if map.get("density") is None:
        reader.error(map.place, f'tensor "{tensor.name}" has no `density`', "write `density:` and a number from 0 to 1")
        return None
    value = _share(reader, map.get("density"), tensor)
    return None if value is None else Density(distribution, value)


def _real_data(reader: Reader, map: Map, tensor: Tensor) -> Density | None:
    """A mask of zeros and ones, blanks between them allowed, beside the file that names it or in the working folder. A
    file that is not there may be replaced later."""
    path = reader.text(map.get("data_file_path"), f'the file with the nonzeros of tensor "{tensor.name}"')
    if map.get("data_file_path") is None:
        reader.error(
            map.place, f'tensor "{tensor.name}" has no `data_file_path`', "write the path of a mask of 0 and 1"
        )
    if path is None:
        return None
    places = [Path(map.place.file).parent / path, Path(path)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return Density(Distribution.REAL_DATA, path=path)
    try:
        return Density(Distribution.REAL_DATA, mask=mask_of_text(file.read_bytes()), path=path)
    except ValueError as error:
        message = f'the mask "{path}" of tensor "{tensor.name}" {error}'
        reader.error(map.place_of("data_file_path"), message, "write 0 and 1 only, one per element")
        return None


def _distribution(reader: Reader, map: Map, tensor: Tensor) -> Distribution | None:
    node = map.get("distribution")
    choice = "write one of fixed-structured, hypergeometric, banded, real-data"
    if node is None:
        reader.error(map.place, f'the density of tensor "{tensor.name}" has no `distribution`', choice)
        return None
    return reader.enum(node, "distribution", _DISTRIBUTIONS, _ALIASES)


def _share(reader: Reader, node: Node | None, tensor: Tensor) -> float | None:
    value = reader.value(node, Kind.REAL, f'the share of nonzeros of tensor "{tensor.name}" from 0 to 1')
    if node is not None and value is not None and not 0 <= value <= 1:
        reader.error(
            node.place,
            f'the density {value:g} of tensor "{tensor.name}" is not from 0 to 1',
            "write the share of nonzeros, not a percentage",
        )
        return None
    return value


def _check_square(reader: Reader, map: Map, tensor: Tensor, einsum: Einsum) -> None:
    extents = tensor.extents(einsum.size_of)
    if len(extents) != 2 or extents[0] != extents[1]:
        size = " x ".join(str(extent) for extent in extents)
        reader.error(
            map.place_of("distribution"),
            f'tensor "{tensor.name}" is {size}; a banded tensor must be square with two coordinates',
            "choose hypergeometric or fixed-structured",
        )
