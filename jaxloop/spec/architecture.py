"""The hardware: compute units below a chain of storage levels (spec/dense.md sections 2, 7 and 9).

Levels are ordered innermost first: `levels[0]` stands next to the compute units, `levels[-1]` is the backing store.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Network:
    """The network between a storage level and whatever lies directly below it.

    - `word_bits`: bits per transferred word.
    - `router_energy`: pJ per router passed; `wire_energy`: pJ per bit and mm; `tile_width`: hop length in um (None:
      derived from the areas of the tile below); `energy_per_hop`: pJ per word and hop (overrides wire energy).
    - `fill_latency`, `drain_latency`: cycles.
    """

    word_bits: int = 16
    router_energy: float | None = None
    wire_energy: float | None = None
    tile_width: float | None = None
    energy_per_hop: float | None = None
    fill_latency: int = 0
    drain_latency: int = 0


@dataclass(frozen=True, slots=True)
class Metadata:
    """Storage of a level's format metadata: word bits, words per block, bits per row, rows."""

    word_bits: int = 0
    block_size: int = 1
    width: int = 0
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Storage:
    """One storage level.

    - `word_bits`; `block_size`: words per vector access; `cluster_size`: instances that share one physical row.
    - `size`: capacity in words per instance, None when unlimited; `multiple_buffering` divides it.
    - `min_utilization`: least share of the effective capacity that a mapping must use.
    - `read_bandwidth`, `write_bandwidth`, `shared_bandwidth`: words per cycle and instance, None when unlimited.
    - `reduction_supported`: partial sums arriving from below are added in place.
    - `vector_access_energy`: pJ per vector access, `address_energy`: pJ per generated address, `area`: um^2 per
      instance, each None when the file gives none (`cluster-area` is divided by the cluster size by the reader).
    - the four flags at the end concern compressed tensors.
    """

    name: str
    technology: str = "SRAM"
    word_bits: int = 16
    block_size: int = 1
    cluster_size: int = 1
    size: int | None = None
    multiple_buffering: float = 1.0
    min_utilization: float = 0.0
    mesh_x: int = 1
    mesh_y: int = 1
    read_bandwidth: float | None = None
    write_bandwidth: float | None = None
    shared_bandwidth: float | None = None
    reduction_supported: bool = True
    vector_access_energy: float | None = None
    address_energy: float | None = None
    area: float | None = None
    network: Network = field(default_factory=Network)
    metadata: Metadata = field(default_factory=Metadata)
    compression_supported: bool = False
    decompression_supported: bool = False
    concordant_traversal: bool = False
    allow_overbooking: bool = False

    @property
    def instances(self) -> int:
        return self.mesh_x * self.mesh_y


@dataclass(frozen=True, slots=True)
class Compute:
    """The compute units. `energy` in pJ per operation and `area` in um^2 per instance, None when the file gives
    none."""

    name: str
    word_bits: int = 16
    mesh_x: int = 1
    mesh_y: int = 1
    energy: float | None = None
    area: float | None = None

    @property
    def instances(self) -> int:
        return self.mesh_x * self.mesh_y


@dataclass(frozen=True, slots=True)
class Architecture:
    compute: Compute
    levels: tuple[Storage, ...]

    def fanout(self, level: int) -> tuple[int, int]:
        """Children of one instance of `levels[level]` along X and Y (exact by the reader's checks)."""
        inner = self.levels[level - 1] if level else self.compute
        outer = self.levels[level]
        return inner.mesh_x // outer.mesh_x, inner.mesh_y // outer.mesh_y

    def network_name(self, level: int) -> str:
        """Timeloop's name of the inferred network below `levels[level]`."""
        inner = self.levels[level - 1].name if level else self.compute.name
        return f"{self.levels[level].name} <==> {inner}"
