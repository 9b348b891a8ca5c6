"""A whole design point: workload, hardware, mapping, tables, SAFs."""

from dataclasses import dataclass, field

from .._errors import Diagnostic
from .architecture import Architecture
from .constraints import Constraints, MapperOptions
from .density import Density
from .einsum import Einsum
from .mapping import LoopNest
from .sparse import SparseOptimizations
from .tables import AreaTable, EnergyTable


@dataclass(frozen=True)
class Design:
    """What `jaxloop.load` returns: everything read from the user's files, checked and cross-referenced.

    **Attributes:**

    - `einsum`, `architecture`: the workload and the hardware.
    - `nest`: the mapping of the files, None when they hold none (then `evaluate` needs `mappings=`).
    - `energy_table`, `area_table`: the ERT and the ART, None when absent.
    - `densities`: per tensor name; tensors that are not named are dense.
    - `sparse`: the sparse acceleration features.
    - `constraints`: what a mapper must respect; they may contradict each other, which a `MapSpace` finds out.
    - `mapper`: the options of the `mapper` section, None without one.
    - `warnings`: what the readers had to say short of an error.
    - `name`: for reports.
    """

    einsum: Einsum
    architecture: Architecture
    nest: LoopNest | None = None
    energy_table: EnergyTable | None = None
    area_table: AreaTable | None = None
    densities: dict[str, Density] = field(default_factory=dict)
    sparse: SparseOptimizations = field(default_factory=SparseOptimizations)
    constraints: Constraints = field(default_factory=Constraints)
    mapper: MapperOptions | None = None
    warnings: tuple[Diagnostic, ...] = ()
    name: str = ""
