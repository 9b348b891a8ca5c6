"""The `sparse_optimizations:` section (spec/inputs.md section 6, spec/sparse.md 2.1 and 6)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .._errors import Place, nearest
from ..spec.architecture import Architecture, Storage
from ..spec.einsum import Einsum
from ..spec.mapping import LoopNest
from ..spec.sparse import (
    COMPRESSED,
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
    fitting_bits,
)
from .nodes import Map, Node, Scalar, Sequence
from .schema import Kind, Reader

_KINDS = {str(kind): kind for kind in ActionKind}
_KIND_ALIASES = {"spatial_skipping": "skipping_spatial"}
_SINGLE = {ActionKind.SPATIAL_SKIPPING: "spatial skipping", ActionKind.POSITION_SKIPPING: "position skipping"}
_COMPUTE_KINDS = {str(kind): kind for kind in (ActionKind.GATING, ActionKind.SKIPPING)}
_COMPUTE_ALIASES = {"gate_on_zero_operand": "gating", "skip_on_not_aligned_operands": "skipping"}
_FORMATS = {spelling: f for f in RankFormat for spelling in (str(f), str(f).lower())}
_ORDERS = {"inner_to_outer": True, "outer_to_inner": False}
_SECTIONS = ("representation_format", "action_optimization", "compute_optimization")
_WORD_BITS = {"payload_word_bits": "payload-word-bits", "metadata_word_bits": "metadata-word-bits"}
_FORMAT_REMEDY = (
    "write one of UOP, CP, B, RLE, UB per rank, outermost first; CSR is UOP then CP, COO is CP with flattened-rankIDs"
)


@dataclass
class _Target:
    """What all entries for one level say, and where they say it."""

    formats: dict[str, TensorFormat] = field(default_factory=dict)
    actions: list[ActionOptimization] = field(default_factory=list)
    compute: list[ActionKind] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    format_places: dict[str, Place] = field(default_factory=dict)


class SparseReader:
    """Reads the section against the levels and tensors of a design. Names are not checked against an architecture or
    an einsum that is None (because its section is broken)."""

    def __init__(self, reader: Reader, architecture: Architecture | None, einsum: Einsum | None):
        self._reader = reader
        self._compute = architecture.compute.name if architecture is not None else None
        self._levels = {level.name: level for level in architecture.levels} if architecture is not None else {}
        self._names = [*self._levels, architecture.compute.name] if architecture is not None else None
        self._tensors = [tensor.name for tensor in einsum.tensors] if einsum is not None else None
        self._ranks = einsum.ranks if einsum is not None else None
        self._targets: dict[str, _Target] = {}

    def read(self, section: Node | None, place: Place) -> SparseOptimizations:
        """All targets, in the order of the file. A section without targets is present but has no effect."""
        map = self._reader.map(section, "`sparse_optimizations`")
        if map is not None:
            self._reader.check_keys(map, ("targets",), ("version",))
        targets = map.get("targets") if map is not None else None
        if targets is None:
            self._reader.warn(place, "`sparse_optimizations` has no `targets`: nothing is optimized")
        for item in self._reader.sequence(targets, "`targets`"):
            entry = self._reader.map(item, "a target")
            if entry is not None:
                self._entry(entry)
        built = tuple(
            SparseTarget(level, tuple(target.formats.values()), tuple(target.actions), tuple(target.compute))
            for level, target in self._targets.items()
        )
        return SparseOptimizations(built, is_present=True, place=place)

    def report_bypassed(self, nest: LoopNest) -> None:
        """Warns about formats of tensors that the mapping bypasses at that level: they have no effect."""
        kept = {level.level: level.keep for level in nest.levels}
        for level, target in self._targets.items():
            for tensor, place in target.format_places.items():
                if tensor not in kept.get(level, (tensor,)):
                    self._reader.warn(
                        place,
                        f'the format of tensor "{tensor}" at level "{level}" has no effect: the mapping bypasses the'
                        " tensor there",
                    )

    def _entry(self, entry: Map) -> None:
        self._reader.check_keys(entry, ("name", "target", *_SECTIONS))
        node = entry.get("name") or entry.get("target")
        if node is None:
            self._reader.error(entry.place, "a target has no name", "write `name:` and a level")
            return
        level = self._reader.known(node, self._names, "level")
        given = [section for section in _SECTIONS if entry.get(section) is not None]
        if not given:
            self._reader.warn(entry.place, "the target has nothing to optimize", f"give one of {', '.join(_SECTIONS)}")
        if level is None:
            return
        target = self._targets.setdefault(level, _Target())
        for section in given:
            if section in target.places:
                self._reader.error(
                    entry.place_of(section),
                    f'level "{level}" already has `{section}` at line {target.places[section].line}',
                    "merge the two",
                )
                continue
            target.places[section] = entry.place_of(section)
            if self._compute is not None and (section == "compute_optimization") != (level == self._compute):
                self._reader.error(
                    entry.place_of(section),
                    f'"{level}" is {"the compute unit" if level == self._compute else "a storage level"} and cannot'
                    f" have `{section}`",
                    f'`compute-optimization` belongs to "{self._compute}", the other two to storage levels',
                )
            elif section == "representation_format":
                self._formats(entry.get(section), level, target)
            elif section == "action_optimization":
                self._actions(entry.get(section), level, target)
            else:
                self._computes(entry.get(section), target)

    def _formats(self, node: Node | None, level: str, target: _Target) -> None:
        section = self._reader.map(node, "`representation-format`")
        if section is None:
            return
        self._reader.check_keys(section, ("data_spaces",))
        for item in self._reader.sequence(section.get("data_spaces"), "`data-spaces`"):
            map = self._reader.map(item, "a data-space")
            if map is None:
                continue
            self._reader.check_keys(map, ("name", "rank_application_order", "compression_rate", "ranks"))
            if map.get("name") is None:
                self._reader.error(map.place, "a data-space has no name", "write `name:` and a tensor")
            tensor = self._reader.known(map.get("name"), self._tensors, "tensor")
            if tensor in target.formats:
                self._reader.error(
                    map.place, f'level "{level}" has two formats for tensor "{tensor}"', "keep one of them"
                )
            elif tensor is not None:
                target.formats[tensor] = self._format(map, tensor, level)
                target.format_places[tensor] = map.place

    def _format(self, map: Map, tensor: str, level: str) -> TensorFormat:
        where = f'the format of tensor "{tensor}" at level "{level}"'
        nodes = self._reader.sequence(map.get("ranks"), f"`ranks` of {where}")
        if not nodes and not isinstance(map.get("ranks"), (Map, Scalar)):
            self._reader.error(map.place, f"{where} has no `ranks`", "list them, outermost first")
        ranks = [rank for item in nodes for rank in self._rank(item, where, self._levels.get(level))]
        formats = [rank.format for rank in ranks]
        for position in range(len(formats) - 1):
            if formats[position] in COMPRESSED and formats[position + 1] not in COMPRESSED:
                self._reader.error(
                    nodes[position].place,
                    f"{where}: rank {position} ({formats[position]}, counted from the outermost) is compressed above"
                    f" the uncompressed rank {position + 1} ({formats[position + 1]})",
                    "put uncompressed ranks (UOP, UB) outermost",
                )
                break
        rate = self._reader.value(map.get("compression_rate"), Kind.COST)
        if rate is not None and not any(rank in COMPRESSED for rank in formats):
            self._reader.error(
                map.place_of("compression_rate"), f"{where} compresses nothing", "remove `compression-rate`"
            )
        order = self._reader.enum(map.get("rank_application_order"), "rank-application-order", _ORDERS, {})
        return TensorFormat(tensor, tuple(ranks), bool(order), rate)

    def _rank(self, node: Node, where: str, level: Storage | None) -> Iterable[FormatRank]:
        map = self._reader.map(node, f"a rank of {where}")
        if map is None:
            return
        self._reader.check_keys(map, ("format", "payload_word_bits", "metadata_word_bits", "flattened_rankIDs"))
        name = self._reader.text(map.get("format"), "the format")
        if name is None:
            self._reader.error(map.place, f"a rank of {where} has no `format`", _FORMAT_REMEDY)
            return
        if name not in _FORMATS:
            self._reader.error(map.place_of("format"), f'unknown rank format "{name}" in {where}', _FORMAT_REMEDY)
            return
        rank_format = _FORMATS[name]
        payload, metadata = (self._word_bits(map, key, rank_format, level) for key in _WORD_BITS)
        yield FormatRank(
            rank_format,
            payload,
            metadata,
            tuple(
                tuple(self._reader.names(group, self._ranks, "dimension"))
                for group in self._reader.sequence(map.get("flattened_rankIDs"), "`flattened-rankIDs`")
            ),
        )

    def _word_bits(self, map: Map, key: str, rank_format: RankFormat, level: Storage | None) -> int | None:
        """The width as the hardware can store it: raised to a divisor of the metadata row (spec/sparse.md 2.1)."""
        bits = self._reader.value(map.get(key), Kind.COUNT)
        if bits is not None and rank_format is RankFormat.UB:
            self._reader.warn(map.place_of(key), f"UB ignores `{_WORD_BITS[key]}`", "remove the key")
            return None
        if bits is None and rank_format is RankFormat.B and key == "metadata_word_bits":
            bits = 1
        if not bits or level is None:
            return bits
        width = level.metadata.width
        if bits > width:
            row = f"its metadata row has {width} bits" if width else "it declares no metadata row"
            self._reader.error(
                map.place_of(key),
                f'the {_WORD_BITS[key]} {bits} of {rank_format} do not fit level "{level.name}": {row}',
                "raise `metadata_storage_width`, or write 0 for metadata that costs nothing",
            )
            return bits
        fitting = fitting_bits(bits, width)
        if fitting != bits:
            self._reader.warn(
                map.place_of(key),
                f"the {_WORD_BITS[key]} {bits} are raised to {fitting}, which divides the metadata row of {width} bits"
                f' of level "{level.name}"',
            )
        return fitting

    def _actions(self, node: Node | None, level: str, target: _Target) -> None:
        kind: ActionKind | None = None
        for item in self._reader.sequence(node, "`action-optimization`"):
            map = self._reader.map(item, "an action optimization")
            if map is None:
                continue
            self._reader.check_keys(map, ("type", "options", "target", "condition_on"))
            kind = self._kind(map, kind)
            options = self._options(map, level, kind) if kind is not None else ()
            if kind is not None and kind in _SINGLE and len(options) > 1:
                self._reader.error(map.place_of("options"), f"{_SINGLE[kind]} takes one option", "keep one")
            if kind is not None and options:
                self._report_redundant(map.place, level, target, kind, options)
                target.actions.append(ActionOptimization(kind, options))

    def _kind(self, map: Map, previous: ActionKind | None) -> ActionKind | None:
        node = map.get("type")
        if node is None:
            if previous is None:
                self._reader.error(map.place, "an action optimization has no `type`", nearest("", _KINDS))
            return previous
        return self._reader.enum(node, "action-optimization type", _KINDS, _KIND_ALIASES)

    def _options(self, map: Map, level: str, kind: ActionKind) -> tuple[Intersection, ...]:
        if map.get("options") is None:
            option = self._intersection(map, level, kind)
            return (option,) if option else ()
        found: list[Intersection] = []
        for item in self._reader.sequence(map.get("options"), "`options`"):
            entry = self._reader.map(item, "an option")
            if entry is None:
                continue
            self._reader.check_keys(entry, ("target", "condition_on"))
            option = self._intersection(entry, level, kind)
            if option is not None:
                found.append(option)
        return tuple(found)

    def _intersection(self, map: Map, level: str, kind: ActionKind) -> Intersection | None:
        if map.get("target") is None:
            self._reader.error(map.place, "an action optimization has no `target`", "write the tensor to act on")
        target = self._reader.known(map.get("target"), self._tensors, "tensor")
        node = map.get("condition_on")
        is_empty = node is None or (isinstance(node, Sequence) and not node.items)
        if kind is ActionKind.POSITION_SKIPPING:
            if not is_empty:
                message = f'position skipping of target "{target}" at level "{level}" has conditions'
                self._reader.error(map.place_of("condition_on"), message, "write `condition-on: []`")
            return Intersection(target, ()) if target is not None and is_empty else None
        if is_empty:
            self._reader.error(
                map.place_of("condition_on"),
                f'the `condition-on` of target "{target}" at level "{level}" is empty',
                "name the tensors whose zeros let the access be dropped, or write `type: position-skipping`",
            )
            return None
        if isinstance(node, Scalar):
            name = self._reader.known(node, self._tensors, "tensor")
            conditions = [name] if name is not None else []
        else:
            conditions = self._reader.names(node, self._tensors, "tensor")
        if target is not None and target in conditions:
            self._reader.error(
                map.place_of("condition_on"),
                f'tensor "{target}" is conditioned on itself',
                "name other tensors in `condition-on`",
            )
        return Intersection(target, tuple(conditions)) if target is not None and conditions else None

    def _report_redundant(
        self, place: Place, level: str, target: _Target, kind: ActionKind, options: tuple[Intersection, ...]
    ) -> None:
        """Skipping removes the accesses that gating at the same place would only silence."""
        for earlier in target.actions:
            shared = {option.target for option in earlier.options} & {option.target for option in options}
            if shared and {earlier.kind, kind} == {ActionKind.GATING, ActionKind.SKIPPING}:
                self._reader.warn(
                    place,
                    f'level "{level}" both gates and skips tensor "{min(shared)}": skipping comes first',
                    "the gating is redundant where the conditions are the same",
                )

    def _computes(self, node: Node | None, target: _Target) -> None:
        entries = (node,) if isinstance(node, Map) else self._reader.sequence(node, "`compute-optimization`")
        for item in entries:
            map = self._reader.map(item, "a compute optimization")
            if map is None:
                continue
            self._reader.check_keys(map, ("type",))
            if map.get("type") is None:
                self._reader.error(map.place, "a compute optimization has no `type`", "write gating or skipping")
            kind = self._reader.enum(map.get("type"), "compute-optimization type", _COMPUTE_KINDS, _COMPUTE_ALIASES)
            if kind is not None and kind not in target.compute:
                target.compute.append(kind)
