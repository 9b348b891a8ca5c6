"""jaxloop: an analytical model of sparse tensor accelerators as one compiled, batched, differentiable function."""

from ._api import evaluate as evaluate, load as load, loads as loads, mapping_of as mapping_of
from ._errors import SpecError as SpecError
from .conventions import (
    MICRO22 as MICRO22,
    SMOOTH as SMOOTH,
    TIMELOOP_2022 as TIMELOOP_2022,
    Conventions as Conventions,
)
from .program import Mapping as Mapping, Program as Program
from .result import Evaluation as Evaluation, Status as Status, Violation as Violation
from .spec.design import Design as Design
from .spec.mapping import LevelNest as LevelNest, Loop as Loop, LoopNest as LoopNest

__version__ = "0.1.0"
