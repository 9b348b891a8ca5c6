"""Energy of a tensor at a level, of the compute units: counts times prices, and where each price comes from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...program import Conversion, Fate
from ...result import Context, Evaluation
from ...spec.sparse import COMPRESSED
from ..sparse import accessed_bits, rank_formats, used_instances
from .counts import ACTIONS
from .text import aligned, number, picojoules, section

_FATES = {Fate.ACTUAL: "actual", Fate.GATED: "gated", Fate.SKIPPED: "skipped"}
_ROUNDING = 1e-9
_CONVERSIONS = {Conversion.DECOMPRESSION: "decompressions", Conversion.COMPRESSION: "compressions"}


@dataclass(frozen=True)
class Item:
    """One kind of access or operation.

    **Attributes:** `name`; `amount` in `unit`; `charged`: what the energy table charges for, such as vector accesses;
    `price`: pJ of each; `origin`: where the price comes from.
    """

    name: str
    amount: float
    unit: str
    charged: float
    price: float
    origin: str

    @property
    def energy_pj(self) -> float:
        return self.charged * self.price


def storage_items(evaluation: Evaluation, context: Context, s: int, t: int) -> list[Item]:
    """What one instance with a tile spends. Their energies times `instances_charged` sum to
    `Evaluation.energy_pj_by_tensor`."""
    return [*data_items(evaluation, context, s, t), *_other_items(evaluation, context, s, t)]


def instances_charged(evaluation: Evaluation, context: Context, s: int, t: int) -> float:
    """Instances that spend as much: instances that share a cluster share its energy."""
    used = float(used_instances(evaluation, context)[s, t])
    return float(evaluation.instances[s, t]) * float(evaluation.clusters[s, t]) / used if used else 0.0


def data_items(evaluation: Evaluation, context: Context, s: int, t: int) -> list[Item]:
    """Reads, fills and updates of words, by what becomes of them."""
    ratio = block_ratio(evaluation, context, s, t)
    return list(_data_items(evaluation, context, s, t, ratio))


def block_ratio(evaluation: Evaluation, context: Context, s: int, t: int) -> float:
    """Vector accesses of a compressed tile, against those of one that fills its blocks (spec/sparse.md 5.3). It depends
    on the distribution of occupancies, which an evaluation does not hold: found from the energy."""
    compressed = any(rank_format in COMPRESSED for rank_format in rank_formats(context, s, t))
    blocks = context.program.structure.conventions.whole_blocks and context.program.block_size[s] > 1
    plain = sum(item.energy_pj for item in _data_items(evaluation, context, s, t, 1.0))
    charged = instances_charged(evaluation, context, s, t)
    if _may_overbook(context) or not (
        compressed and blocks and evaluation.expected_density[s, t] < 1 and plain > 0 and charged > 0
    ):
        return 1.0
    other = sum(item.energy_pj for item in _other_items(evaluation, context, s, t))
    return (float(evaluation.energy_pj_by_tensor[s, t]) / charged - other) / plain


def _may_overbook(context: Context) -> bool:
    structure = context.program.structure.sparse
    return structure is not None and structure.overbooking


def _data_items(evaluation: Evaluation, context: Context, s: int, t: int, ratio: float) -> Iterator[Item]:
    program, block = context.program, float(context.program.block_size[s])
    prices = {Fate.ACTUAL: program.action_energy}
    if program.sparse is not None:
        prices |= {Fate.GATED: program.sparse.gated_energy, Fate.SKIPPED: program.sparse.skipped_energy}
    for action, name in ACTIONS.items():
        for fate, price in prices.items():
            words = float(evaluation.accesses[fate, action, s, t])
            if words:
                charged = _whole(context, words / block) * ratio
                origin = _origin(context, s, _operation(fate, action.name.lower()))
                yield Item(f"{_FATES[fate]} {name}", words, "words", charged, float(price[action, s, t]), origin)


def _other_items(evaluation: Evaluation, context: Context, s: int, t: int) -> Iterator[Item]:
    """Metadata and changes of representation."""
    sparse = context.program.sparse
    if sparse is None:
        return
    bits, width = accessed_bits(evaluation, context)[:, :, s, t], float(sparse.metadata_width[s])
    for action, name in ACTIONS.items():
        for fate, prefix in _FATES.items():
            if bits[fate, action] > 0:
                price = float(sparse.metadata_energy[fate, action, s, t])
                origin = _origin(context, s, _operation(fate, f"metadata_{action.name.lower()}"))
                charged = _whole(context, float(bits[fate, action]) / width)
                yield Item(f"{prefix} metadata {name}", float(bits[fate, action]), "bits", charged, price, origin)
    for conversion, counts in zip(_CONVERSIONS, (evaluation.decompressions, evaluation.compressions), strict=True):
        words = float(counts[s, t])
        if words:
            origin = _origin(context, s, conversion.name.lower())
            price = float(sparse.conversion_energy[conversion, s, t])
            yield Item(_CONVERSIONS[conversion], words, "words", words, price, origin)


def _whole(context: Context, blocks: float) -> float:
    return float(np.ceil(blocks)) if context.program.structure.conventions.whole_blocks else blocks


def _operation(fate: Fate, what: str) -> str:
    """The name of an operation in `Context.provenance`."""
    return what if fate == Fate.ACTUAL else f"{_FATES[fate]}_{what}"


def _origin(context: Context, s: int, operation: str) -> str:
    return context.provenance[context.names.levels[s], operation]


def compute_items(evaluation: Evaluation, context: Context) -> list[Item]:
    """What all compute units spend. The energies sum to `Evaluation.compute_energy_pj`."""
    program, unit = context.program, context.names.compute
    prices = {Fate.ACTUAL: program.compute_energy}
    if program.sparse is not None:
        prices |= {
            Fate.GATED: program.sparse.gated_compute_energy,
            Fate.SKIPPED: program.sparse.skipped_compute_energy,
        }
    items = []
    for fate, price in prices.items():
        count = float(evaluation.computes_by_fate[fate])
        if count:
            origin = context.provenance[unit, _operation(fate, "compute")]
            items.append(Item(f"{_FATES[fate]} computes", count, "", count, float(price), origin))
    return items


def storage_energy_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """Items, their sum, and the factor from one instance to all."""
    items = storage_items(evaluation, context, s, t)
    per_instance = sum(item.energy_pj for item in items)
    block, ratio = context.program.block_size[s], block_ratio(evaluation, context, s, t)
    notes = [f"words per vector access: {number(block)}"] if block > 1 else []
    if any(item.unit == "bits" for item in items):
        assert context.program.sparse is not None
        notes.append(f"bits of metadata per access: {number(context.program.sparse.metadata_width[s])}")
    if ratio != 1:
        notes.append(f"accesses of data x {number(ratio)}: the nonzeros of a tile do not fill its blocks")
    used, clusters = used_instances(evaluation, context)[s, t], evaluation.clusters[s, t]
    shared = f" x {number(clusters)} clusters / {number(used)} instances" if clusters != used else ""
    total = per_instance * instances_charged(evaluation, context, s, t)
    lines = [
        *item_table(items, "accesses"),
        *notes,
        f"one instance with a tile: {picojoules(per_instance)} pJ",
        f"x {number(evaluation.instances[s, t])} instances on average{shared} = {picojoules(total)} pJ",
    ]
    printed = float(evaluation.energy_pj_by_tensor[s, t])
    if abs(printed - total) > _ROUNDING * abs(printed):
        what = "what exceeds the planned tile is read at the next outer level, and inner levels read so here"
        lines.append(f"with overbooking {picojoules(printed)} pJ: {what}")
    if context.program.address_energy[s] > 0:
        generated, price = evaluation.address_generations[s, t], context.program.address_energy[s]
        product = f"{number(generated)} x {number(price)} pJ x {number(clusters)} clusters"
        lines.append(f"generation of addresses: {product} = {picojoules(evaluation.address_energy_pj[s, t])} pJ")
    return section("Energy", "energy", lines)


def item_table(items: list[Item], charged: str) -> list[str]:
    """One line per item, and what they sum to."""
    if not items:
        return ["nothing happens: 0 pJ"]
    rows = [("", "", "", charged, "pJ each", "", "pJ")]
    for item in items:
        numbers = number(item.charged), number(item.price), f"({item.origin})", picojoules(item.energy_pj)
        rows.append((item.name, number(item.amount) if item.unit else "", item.unit, *numbers))
    return aligned(rows, left=(0, 2, 5))
