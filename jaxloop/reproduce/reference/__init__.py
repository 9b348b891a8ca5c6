"""The answers that the MICRO'22 artifact of Sparseloop publishes, as facts to compare with; none of its inputs.

One file per result. `source` says where the numbers are from. `designs` holds per shipped design the cycles, the energy
(pJ, all instances) and per level and tensor the energy and the words read, filled and updated by what becomes of them,
per instance; fates without any word are left out.
"""

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def reference(name: str) -> dict[str, Any]:
    """What the artifact publishes for one result: the file `name`.json beside this module."""
    return json.loads((resources.files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
