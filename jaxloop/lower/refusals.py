"""Sparse designs that are refused, or warned of, by name: what the model does not cover."""

import math
from collections.abc import Mapping as Dict
from typing import Any

import numpy as np

from .._errors import Diagnostics, Place, nearest
from ..conventions import Conventions
from ..spec.density import Distribution
from ..spec.design import Design
from ..spec.sparse import ActionKind, ActionOptimization, SparseTarget
from .masks import LARGEST_TABLE, has_real_data, is_real, table_entries
from .sparse import DENSE, OPERANDS, formats, uses_default


def refuse_unmodeled_sparse(design: Design, report: Diagnostics) -> None:
    """Errors for what the sparse model does not cover, by name."""
    if not design.sparse.has_effect:
        return
    place = design.sparse.place
    operands = [tensor.name for tensor in design.einsum.tensors if not tensor.is_output]
    if len(operands) != OPERANDS:
        report.error(
            place,
            f"sparse optimizations need {OPERANDS} tensors that are only read; this problem has {len(operands)}"
            f" ({', '.join(operands)})",
            "remove the key to evaluate the design as dense",
        )
    for target in design.sparse.targets:
        for group in target.actions:
            if group.kind is ActionKind.SPATIAL_SKIPPING:
                _refuse_spatial(target, group, report, place)
            if group.kind is ActionKind.POSITION_SKIPPING:
                _refuse_positions(design, target.level, group.options[0].target, report)
    _refuse_real_data(design, report)
    levels = {level.name: level for level in design.architecture.levels}
    for target, tensor_format in formats(design):
        metadata = levels[target].metadata
        if metadata.word_bits > metadata.width and any(uses_default(rank) for rank in tensor_format.ranks):
            row = f"its metadata row has {metadata.width} bits" if metadata.width else "it declares no metadata row"
            report.error(
                place,
                f'the metadata word bits {metadata.word_bits} of level "{target}", default of its format of tensor'
                f' "{tensor_format.tensor}", do not fit: {row}',
                "give `metadata_storage_width`, or 0 word bits for metadata that costs nothing",
            )


def _refuse_spatial(target: SparseTarget, group: ActionOptimization, report: Diagnostics, place: Place) -> None:
    """One target of spatial skipping has one condition (spec/sparse.md 3.5)."""
    tensor = group.options[0].target
    same = [other for other in target.actions if other.kind is group.kind and other.options[0].target == tensor]
    conditions = [condition for other in same for condition in other.options[0].condition_on]
    if len(conditions) > 1 and same[0] is group:
        report.error(
            place,
            f'spatial skipping takes one condition, tensor "{tensor}" at level "{target.level}" has {len(conditions)}'
            f" ({', '.join(conditions)})",
            "keep one",
        )


def _refuse_real_data(design: Design, report: Diagnostics) -> None:
    """What counts in a mask do not tell."""
    for tensor in (tensor for tensor in design.einsum.tensors if is_real(design, tensor)):
        density, shape = design.densities[tensor.name], tensor.extents(design.einsum.size_of)
        words, place = math.prod(shape), Place("", 0, f"density of tensor {tensor.name}")
        ranks = [term.rank for axis in tensor.axes for term in axis.terms]
        if density.mask is None:
            remedy = "put the file there, or pass masks={...} to jaxloop.evaluate"
            report.error(
                place, f'the nonzeros of tensor "{tensor.name}" are not there: no file "{density.path}"', remedy
            )
        elif len(density.mask) != words:
            size = " x ".join(str(extent) for extent in shape)
            message = (
                f'the mask of tensor "{tensor.name}" has {len(density.mask)} elements, the tensor {size} = {words}'
            )
            report.error(place, message, "one character per element, the first axis of the projection fastest")
        if tensor.is_output:
            report.error(place, f'output "{tensor.name}" as real data is not modeled', "give it a distribution")
        if len(set(ranks)) < len(ranks) or any(t.coefficient < 0 for axis in tensor.axes for t in axis.terms):
            what = "a rank that moves two axes, or backward"
            report.error(
                place, f'real data of tensor "{tensor.name}" with {what} are not modeled', "give a distribution"
            )
    if has_real_data(design):
        entries = table_entries(design)
        if entries > LARGEST_TABLE:
            message = (
                f"counts of the real data would take a table of {entries:,} entries, {LARGEST_TABLE:,} are allowed"
            )
            report.error(design.sparse.place, message, "give one of the operands a distribution, or tile the problem")
        kinds = {group.kind for target in design.sparse.targets for group in target.actions}
        faults = {
            "position skipping": ActionKind.POSITION_SKIPPING in kinds,
            "a level that may be overbooked": any(level.allow_overbooking for level in design.architecture.levels),
        }
        for fault in (fault for fault, holds in faults.items() if holds):
            report.error(design.sparse.place, f"real data with {fault} are not modeled", "give a distribution instead")


def _refuse_positions(design: Design, level: str, tensor: str, report: Diagnostics) -> None:
    """What no answer of the artifact tells about position skipping (docs/model.md 24)."""
    innermost = design.architecture.levels[0].name
    is_output = any(t.is_output for t in design.einsum.tensors if t.name == tensor)
    banded = design.densities.get(tensor, DENSE).distribution is Distribution.BANDED
    faults = {
        f' at level "{level}" is not modeled: only at the innermost level': level != innermost,
        ", an output, is not modeled": is_output,
        ", which is banded, is not modeled": banded,
    }
    for fault in (text for text, holds in faults.items() if holds):
        remedy = f'write it for level "{innermost}"' if level != innermost else "remove it"
        report.error(design.sparse.place, f'position skipping of tensor "{tensor}"{fault}', remedy)


def warn_of_full_tensors(design: Design, conventions: Conventions, report: Diagnostics) -> None:
    """Warns where the reference takes full tiles for empty ones (spec/sparse.md, quirk Q2)."""
    formatted = {tensor_format.tensor for _, tensor_format in formats(design)}
    for tensor, density in design.densities.items():
        full = density.distribution is Distribution.HYPERGEOMETRIC and density.density >= 1.0
        if full and tensor in formatted and conventions.least_occupancy_is_empty:
            report.warn(
                design.sparse.place,
                f'tensor "{tensor}" is hypergeometric with density 1: as in the reference, its tiles count as empty'
                " below a level with metadata, and cost nothing",
                "write `distribution: fixed-structured`, or evaluate with conventions least_occupancy_is_empty=False",
            )


def check_densities(design: Design, densities: Dict[str, Any], report: Diagnostics) -> None:
    """Errors for the user's densities: unknown tensors, banded ones, values outside [0, 1]."""
    names = [tensor.name for tensor in design.einsum.tensors]
    for tensor, value in densities.items():
        place, array = Place("", 0, f"densities[{tensor!r}]"), np.asarray(value, float)
        good = (array >= 0.0) & (array <= 1.0)
        if tensor not in names:
            report.error(place, f'no tensor "{tensor}"', nearest(tensor, names))
        elif design.densities.get(tensor, DENSE).distribution is Distribution.BANDED:
            report.error(place, f'tensor "{tensor}" is banded: its band width gives its density', "leave it out")
        elif design.densities.get(tensor, DENSE).distribution is Distribution.REAL_DATA:
            report.error(place, f'tensor "{tensor}" is real data: its mask gives its density', "leave it out")
        elif not good.all():
            report.error(place, f"{array[~good].reshape(-1)[0]:g} is no density", "give shares of nonzeros from 0 to 1")
