"""The sparse oracle: dense counts in, what happens in spite of zeros out (spec/sparse.md sections 0 to 5).

`evaluate(design, dense)` shares nothing with the kernel but the dataclasses of `jaxloop.spec`.
"""

import math
from dataclasses import dataclass, field

from jaxloop.spec.design import Design
from jaxloop.spec.sparse import ActionKind, ActionOptimization, TensorFormat

from .sparse_compute import Computes, States, count_computes, operand_states
from .sparse_cost import (
    Capacity,
    address_energy,
    capacity,
    check_level,
    compute_prices,
    data_prices,
    slowdown,
    storage_energy,
    used_instances,
    words_per_cycle,
)
from .sparse_density import DensityModel
from .sparse_errors import Refusal, Undefined
from .sparse_format import Held, density_models, hold
from .sparse_geometry import Geometry
from .sparse_saf import Saf, find_safs
from .sparse_spatial import Spatial, spatial_skipping
from .sparse_traffic import Counts, DenseCounts, Propagation

Key = tuple[int, str]
"""Storage level, 0 the innermost, and tensor."""


@dataclass
class SparseResult:
    """All by level and tensor unless noted; tensors that a level bypasses have counts of zero. Energies in pJ.

    - `held`: tiles, formats and what is expected of them; `capacity`: the fullest tile. Both of kept tensors only.
    - `models`: by tensor; `safs`: where accesses are removed.
    - `instances`: average number in use (R_avg); `clusters`.
    - `energy_per_instance`: without address generation; `energy`: of all instances; `address_energy`: of all clusters.
    - `states`: of the two operands; `computes`: all instances; `wraps`: see `Traffic`, nothing to compare then.
    - `spatial`: what spatial skipping does, None without; `units`: average number of compute units in use, truncated.
    - `level_cycles`, `slowdown`: by level; `cycles` include network latencies.
    """

    held: dict[Key, Held]
    models: dict[str, DensityModel]
    safs: dict[Key, Saf]
    counts: dict[Key, Counts]
    states: list[States]
    computes: Computes
    wraps: bool
    spatial: Spatial | None = None
    units: int = 0
    capacity: dict[Key, Capacity] = field(default_factory=dict)
    instances: dict[Key, float] = field(default_factory=dict)
    clusters: dict[Key, int] = field(default_factory=dict)
    energy_per_instance: dict[Key, float] = field(default_factory=dict)
    energy: dict[Key, float] = field(default_factory=dict)
    address_energy: dict[Key, float] = field(default_factory=dict)
    compute_energy: float = 0.0
    compute_cycles: int = 0
    level_cycles: list[int] = field(default_factory=list)
    slowdown: list[float] = field(default_factory=list)
    cycles: int = 0
    utilization: float = 0.0

    @property
    def energy_without_networks(self) -> float:
        return self.compute_energy + sum(self.energy.values()) + sum(self.address_energy.values())


def formats_of(geometry: Geometry) -> dict[str, dict[int, TensorFormat]]:
    """Formats by tensor and level."""
    names = [level.name for level in geometry.design.architecture.levels]
    found: dict[str, dict[int, TensorFormat]] = {}
    for target in geometry.design.sparse.targets:
        for form in target.formats:
            found.setdefault(form.tensor, {})[names.index(target.level)] = form
    return found


def actions_of(geometry: Geometry) -> list[tuple[int, ActionOptimization]]:
    names = [level.name for level in geometry.design.architecture.levels]
    targets = geometry.design.sparse.targets
    return [(names.index(target.level), group) for target in targets for group in target.actions]


def evaluate(design: Design, dense: dict[Key, DenseCounts], computes_per_unit: int | None = None) -> SparseResult:
    """**Arguments:** the dense counts per instance of every level and tensor, kept or not; the algorithmic computes
    of one unit, by default those of perfect factors.

    **Raises:** `Refusal` with the level and the reason of the reference; `Undefined` where it aborts.
    """
    geometry = Geometry(design)
    units = used_instances(geometry, -1)
    if computes_per_unit is None:
        computes_per_unit = math.prod(geometry.whole.values()) // units
    held = hold(geometry, formats_of(geometry))
    models = density_models(geometry)
    read_energy = [data_prices(design, level)["random_reads"] for level in design.architecture.levels]
    safs = find_safs(geometry, models, held, actions_of(geometry), read_energy)
    spatial = spatial_skipping(geometry, models, held, actions_of(geometry))
    safs |= _spatial_safs(spatial, safs)
    traffic = Propagation(geometry, held, safs, dense, computes_per_unit * units).run()
    states = operand_states(geometry, models, held, traffic)
    kinds = next((t.compute for t in design.sparse.targets if t.level == design.architecture.compute.name), ())
    computes = count_computes(states, int(traffic.computes), kinds)
    result = SparseResult(held, models, safs, traffic.counts, states, computes, traffic.wraps, spatial)
    _price_computes(geometry, result)
    for level in range(geometry.depth):
        _price_level(geometry, level, result)
    latency = sum(n.network.fill_latency + n.network.drain_latency for n in design.architecture.levels)
    result.cycles = max(result.compute_cycles, *result.level_cycles) + latency
    if result.cycles:
        happening = computes.random + computes.gated
        result.utilization = happening / design.architecture.compute.instances / result.cycles
    return result


def _spatial_safs(spatial: Spatial | None, safs: dict[Key, Saf]) -> dict[Key, Saf]:
    """What spatial skipping removes further in, as SAFs."""
    chances = spatial.chances if spatial is not None else {}
    if chances.keys() & safs.keys():
        raise Undefined("spatial skipping and another SAF of one tensor at one level: the reference aborts")
    return {
        (level, tensor): Saf(tensor, level, ActionKind.SPATIAL_SKIPPING, chance, False, (level, 0))
        for (level, tensor), chance in chances.items()
    }


def _children(geometry: Geometry, spatial: Spatial | None, level: int, tensor: str) -> tuple[int, int, float]:
    """Of one tensor: children of a level along X and Y, all of them, and how many are busy on average."""
    along_x, along_y = geometry.fanouts(level - 1)
    if spatial is None or level == geometry.depth:
        return along_x, along_y, float(along_x * along_y)
    return *spatial.expansions[level, tensor], along_x * along_y * spatial.shares[level, tensor]


def _price_computes(geometry: Geometry, result: SparseResult) -> None:
    """Fan-out check, energy and cycles of the compute units."""
    unit = geometry.design.architecture.compute
    of_tensors = [_children(geometry, result.spatial, 0, tensor) for tensor in geometry.tensors]
    along_x, along_y = (max(of_tensor[axis] for of_tensor in of_tensors) for axis in (0, 1))
    result.units = int(max(average for _, _, average in of_tensors))
    if not result.units:
        raise Undefined("less than one compute unit is busy: the reference divides by zero")
    for what, mapped, limit in (
        ("instances", along_x * along_y, unit.instances),
        ("X expansion", along_x, unit.mesh_x),
        ("Y expansion", along_y, unit.mesh_y),
    ):
        if mapped > limit:
            raise Refusal(unit.name, f"mapped max Arithmetic {what} {mapped} exceeds hardware instances {limit}")
    prices = compute_prices(geometry.design)
    result.compute_energy = sum(getattr(result.computes, kind) * price for kind, price in prices.items())
    result.compute_cycles = math.ceil((result.computes.random + result.computes.gated) / result.units)


def _price_level(geometry: Geometry, level: int, result: SparseResult) -> None:
    """Capacity check, energy and cycles of one level."""
    storage = geometry.design.architecture.levels[level]
    read = write = 0.0
    expansions = []
    for tensor in geometry.tensors:
        key = (level, tensor)
        along_x, along_y, average = _children(geometry, result.spatial, level + 1, tensor)
        expansions.append((along_x, along_y))
        used = along_x * along_y
        clusters = min(used, storage.instances // storage.cluster_size)
        result.instances[key], result.clusters[key] = average, clusters
        result.energy_per_instance[key] = result.energy[key] = result.address_energy[key] = 0.0
        if key not in result.held:
            continue
        held, counts, model = result.held[key], result.counts[key], result.models[tensor]
        # spatial skipping sets the average anew, without regard to empty tiles
        instances = average if result.spatial is not None else used * (1.0 - held.chance_empty)
        result.instances[key] = instances
        result.capacity[key] = capacity(held, model, storage)
        if instances:
            if not used:
                raise Undefined(f"no child is left at {storage.name}: the reference divides by zero")
            each = storage_energy(geometry.design, storage, held, model, counts, clusters / used)
            result.energy_per_instance[key], result.energy[key] = each, each * instances
        is_output = geometry.tensors[tensor].is_output
        result.address_energy[key] = address_energy(storage, is_output, counts, clusters)
        read += words_per_cycle(storage, held, counts, ("reads",), instances, used, result.compute_cycles)
        write += words_per_cycle(storage, held, counts, ("fills", "updates"), instances, used, result.compute_cycles)
    taken = [result.capacity[level, tensor] for tensor in geometry.tensors if (level, tensor) in result.held]
    most = max(result.instances[level, tensor] for tensor in geometry.tensors)
    check_level(storage, taken, most, (max(x for x, _ in expansions), max(y for _, y in expansions)))
    share = slowdown(storage, read, write)
    if not share:
        raise Undefined(f"no compute cycles, but traffic at {storage.name}: the reference divides by zero")
    result.slowdown.append(share)
    result.level_cycles.append(math.ceil(result.compute_cycles / share))
