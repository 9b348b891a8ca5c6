"""From specs to arrays: all numpy, exact; jax enters in the last step of `program.py` and `mapping.py`."""

from .mapping import (
    check_mapping as check_mapping,
    check_nest as check_nest,
    lower_mapping as lower_mapping,
    pad_mapping as pad_mapping,
)
from .masks import with_masks as with_masks
from .program import Lowered as Lowered, lower as lower, to_device as to_device
