"""From specs to arrays: all numpy, exact; jax enters in the last step of `program.py` and `mapping.py`."""

from .mapping import (
    check_mapping as check_mapping,
    check_streams as check_streams,
    lower_mapping as lower_mapping,
    pad_mapping as pad_mapping,
)
from .program import Lowered as Lowered, lower as lower, to_device as to_device
