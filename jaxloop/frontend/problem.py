"""The `problem:` section: shape, instance and densities (spec/inputs.md 2.1, spec/dense.md section 1)."""

from dataclasses import dataclass

from .._errors import Place, nearest
from ..spec.density import Density
from ..spec.einsum import Axis, Einsum, Tensor, Term
from .densities import read_densities
from .nodes import Map, Node, Scalar, Sequence, kind_of
from .schema import Kind, Reader, closest
from .shapes import DEFAULT_SHAPE, find_shape

_SHAPE_KEYS = ("name", "dimensions", "coefficients", "data_spaces", "flatten")
_TENSOR_KEYS = ("name", "projection", "read_write")
_PROBLEM_KEYS = ("shape", "instance", "version", "name")
_DENSITY_KEYS = ("densities", "commonDensity")


@dataclass(frozen=True)
class Workload:
    """The workload; `unsized` holds the ranks whose size is missing or wrong (an error is recorded)."""

    einsum: Einsum
    densities: dict[str, Density]
    unsized: frozenset[str]


def read_problem(reader: Reader, section: Node) -> Workload | None:
    """Reads the section; None when ranks or tensors could not be determined (errors are recorded)."""
    map = reader.map(section, "the problem")
    if map is None:
        return None
    shape = _shape(reader, map)
    if shape is None:
        return None
    reader.check_keys(shape, _SHAPE_KEYS, ("version",))
    if shape.get("flatten") is not None:
        reader.error(shape.place_of("flatten"), "`flatten` is not modeled", "write the shape with the original ranks")
    ranks = _ranks(reader, shape)
    defaults = _coefficients(reader, shape, ranks)
    instance = map if map.get("instance") is None else reader.map(map.get("instance"), "`instance`")
    if instance is None or not ranks:
        return None
    if instance is not map:
        reader.check_keys(map, _PROBLEM_KEYS, _DENSITY_KEYS)
        for key in _DENSITY_KEYS:
            if key in map:
                reader.error(map.place_of(key), f"`{key}` stands beside `instance`", "move it into the instance")
    _report_misspelled(reader, instance, [*ranks, *defaults, *_DENSITY_KEYS, *_PROBLEM_KEYS])
    sizes = {rank: _size(reader, instance, rank) for rank in ranks}
    coefficients = {name: _coefficient(reader, instance, name, default) for name, default in defaults.items()}
    tensors = _tensors(reader, shape, ranks, coefficients)
    if not tensors:
        return None
    name = reader.text(shape.get("name"), "the shape's name") or ""
    einsum = Einsum(name, tuple(ranks), tuple(size or 1 for size in sizes.values()), tensors)
    unsized = frozenset(rank for rank, size in sizes.items() if size is None)
    return Workload(einsum, read_densities(reader, instance, einsum), unsized)


def _shape(reader: Reader, map: Map) -> Map | None:
    node = map.get("shape")
    if node is None:
        reader.warn(map.place, f"the problem has no `shape`: the shape {DEFAULT_SHAPE} is taken", "write `shape:`")
        return find_shape(reader, DEFAULT_SHAPE, map.place)
    if isinstance(node, Scalar):
        return find_shape(reader, reader.text(node, "the shape") or "", node.place)
    return reader.map(node, "the shape")


def _ranks(reader: Reader, shape: Map) -> list[str]:
    node = shape.get("dimensions")
    if node is None or (isinstance(node, Sequence) and not node.items):
        reader.error(shape.place_of("dimensions"), "the shape has no `dimensions`", "write a list such as [M, N, K]")
        return []
    ranks: list[str] = []
    for item in reader.sequence(node, "`dimensions`"):
        name = reader.text(item, "a dimension")
        if name is None:
            continue
        if len(name) != 1 or not name.isalpha():
            reader.error(
                item.place, f'the dimension "{name}" is not a single letter', "factors and permutations need one letter"
            )
        elif name in ranks:
            reader.error(item.place, f'the dimension "{name}" is listed twice', "remove one")
        else:
            ranks.append(name)
    return ranks


def _coefficients(reader: Reader, shape: Map, ranks: list[str]) -> dict[str, int]:
    defaults: dict[str, int] = {}
    for item in reader.sequence(shape.get("coefficients"), "`coefficients`"):
        map = reader.map(item, "a coefficient")
        if map is None:
            continue
        name = reader.text(map.get("name"), "the coefficient's name")
        default = reader.value(map.get("default"), Kind.INTEGER)
        if name is None or map.get("default") is None:
            reader.error(map.place, "a coefficient needs a name and a default", "write {name: stride, default: 1}")
        elif name in defaults or name in ranks:
            reader.error(map.place, f'the name "{name}" is already taken', "rename the coefficient")
        else:
            defaults[name] = 1 if default is None else default
    return defaults


def _size(reader: Reader, instance: Map, rank: str) -> int | None:
    node = instance.items.get(rank)
    if node is None or (isinstance(node, Scalar) and node.is_null):
        reader.error(instance.place, f'the size of dimension "{rank}" is missing', f"add `{rank}:` to the instance")
        return None
    return reader.value(node, Kind.POSITIVE, f'the size of dimension "{rank}"')


def _coefficient(reader: Reader, instance: Map, name: str, default: int) -> int:
    node = instance.items.get(name)
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return default
    value = reader.value(node, Kind.INTEGER)
    return default if value is None else value


def _report_misspelled(reader: Reader, instance: Map, known: list[str]) -> None:
    """Layer files carry more keys than a shape uses (H, Wpad); only those close to a used name are reported."""
    for key in instance.items:
        if key not in known and closest(key, known, 0.75) is not None:
            reader.warn(instance.places[key], f'the key "{key}" is not used', nearest(key, known))


def _tensors(reader: Reader, shape: Map, ranks: list[str], coefficients: dict[str, int]) -> tuple[Tensor, ...]:
    tensors: dict[str, Tensor] = {}
    has_output = False
    if shape.get("data_spaces") is None:
        reader.error(shape.place, "the shape has no `data-spaces`", "list its tensors")
        return ()
    for item in reader.sequence(shape.get("data_spaces"), "`data-spaces`"):
        map = reader.map(item, "a data-space")
        if map is None:
            continue
        reader.check_keys(map, _TENSOR_KEYS)
        name = reader.text(map.get("name"), "the tensor's name")
        if name is None:
            reader.error(map.place, "a data-space has no name", "write `name:`")
            continue
        if name in tensors:
            reader.error(map.place_of("name"), f'the tensor "{name}" is listed twice', "rename one")
            continue
        is_output = reader.value(map.get("read_write"), Kind.FLAG)
        has_output = has_output or is_output is not False and map.get("read_write") is not None
        tensors[name] = Tensor(name, _projection(reader, map, name, ranks, coefficients), bool(is_output))
    if tensors and not has_output:
        reader.error(shape.place_of("data_spaces"), "no tensor is written", "mark the output with `read-write: true`")
    return tuple(tensors.values())


def _projection(
    reader: Reader, map: Map, tensor: str, ranks: list[str], coefficients: dict[str, int]
) -> tuple[Axis, ...]:
    node = map.get("projection")
    if node is None:
        reader.error(map.place, f'the tensor "{tensor}" has no `projection`', "list its coordinates")
        return ()
    items = reader.sequence(node, f'the projection of "{tensor}"')
    axes: list[Axis] = []
    for item in items:
        if isinstance(items[0], Scalar):
            term = _term(reader, (item,), item.place, ranks, coefficients)
            axes.append(Axis((term,) if term else ()))
        else:
            axes.append(Axis(tuple(_terms(reader, item, ranks, coefficients))))
    return tuple(axes)


def _terms(reader: Reader, axis: Node, ranks: list[str], coefficients: dict[str, int]) -> list[Term]:
    remedy = "a coordinate is a list of terms, a term is [rank] or [rank, coefficient]: [[[M]], [[P, stride], [R]]]"
    if not isinstance(axis, Sequence):
        reader.error(axis.place, f"a coordinate of the projection is {kind_of(axis)}", remedy)
        return []
    if not axis.items:
        reader.error(axis.place, "a coordinate of the projection is empty", remedy)
    terms: list[Term] = []
    for item in axis.items:
        if not isinstance(item, Sequence):
            reader.error(item.place, f"a term of the projection is {kind_of(item)}", remedy)
            continue
        term = _term(reader, item.items, item.place, ranks, coefficients)
        if term is not None:
            terms.append(term)
    return terms


def _term(
    reader: Reader, parts: tuple[Node, ...], place: Place, ranks: list[str], coefficients: dict[str, int]
) -> Term | None:
    texts = [reader.text(part, "a name in the projection") for part in parts]
    if None in texts:
        return None
    names = [text for text in texts if text is not None]
    if len(names) not in (1, 2):
        reader.error(
            place,
            f"a term of the projection holds {len(names)} names",
            "a term is [rank] or [rank, coefficient]; a sum is a list of terms",
        )
    elif names[0] not in ranks:
        remedy = "write the rank first, then the coefficient" if names[0] in coefficients else nearest(names[0], ranks)
        reader.error(parts[0].place, f'unknown dimension "{names[0]}" in the projection', remedy)
    elif len(names) == 2 and names[1] not in coefficients:
        remedy = nearest(names[1], coefficients) or "declare it in `coefficients`"
        reader.error(parts[1].place, f'unknown coefficient "{names[1]}" in the projection', remedy)
    elif len(names) == 2:
        return Term(names[0], coefficients[names[1]], names[1])
    else:
        return Term(names[0])
    return None
