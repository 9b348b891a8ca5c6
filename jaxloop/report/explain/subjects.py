"""What can be explained, and the explanation of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..._errors import Diagnostic, Place, SpecError, nearest
from ...result import Context, Evaluation
from ...spec.design import Design
from .compute import compute_lines
from .counts import count_lines
from .energy import storage_energy_lines
from .level import level_lines
from .safs import position_lines, saf_lines, spatial_lines
from .tile import tile_lines


@dataclass(frozen=True)
class Subject:
    """A tensor at a storage level, a whole level (`tensor` is None), or the compute units (`level` is None)."""

    level: int | None = None
    tensor: int | None = None


def find_subjects(design: Design, wanted: Iterable[str]) -> list[Subject]:
    """The subjects of texts such as `Buffer.Weights`, `Buffer` and `MAC`.

    **Raises:** `SpecError` with every text that names no level or tensor, and the nearest names.
    """
    levels = [level.name for level in design.architecture.levels]
    tensors = [tensor.name for tensor in design.einsum.tensors]
    known = {design.architecture.compute.name: Subject()}
    known |= {level: Subject(s) for s, level in enumerate(levels)}
    known |= {f"{lv}.{tensor}": Subject(s, t) for s, lv in enumerate(levels) for t, tensor in enumerate(tensors)}
    texts = list(wanted)
    unknown = [text for text in texts if text not in known]
    if unknown:
        names = [design.architecture.compute.name, *levels]
        raise SpecError(_complaint(text, names, tensors) for text in unknown)
    return [known[text] for text in texts]


def _complaint(text: str, levels: list[str], tensors: list[str]) -> Diagnostic:
    level, dot, tensor = text.rpartition(".")
    if dot and level == levels[0]:
        message, remedy = f"the compute units {level} store no tensor", f"write {level}"
    elif dot and level in levels:
        message, remedy = f'there is no tensor "{tensor}"', nearest(tensor, tensors)
    else:
        name = level if dot else text
        message, remedy = f'there is no level "{name}"', nearest(name, levels)
    return Diagnostic(Place(f"--explain {text}"), message, remedy)


def explanation(evaluation: Evaluation, subject: Subject) -> str:
    """Readable lines that derive the numbers of the subject, each section with the place of its formulas.

    **Raises:** `ValueError` for a batch.
    """
    context = evaluation.context
    if context is None:
        raise ValueError("an explanation is of one evaluation: evaluate the one mapping of interest")
    if subject.level is None:
        lines = compute_lines(evaluation, context)
    elif subject.tensor is not None:
        lines = _tensor_lines(evaluation, context, subject.level, subject.tensor)
    else:
        lines = level_lines(evaluation, context, subject.level)
        for t in range(len(context.names.tensors)):
            lines += ["", *_tensor_lines(evaluation, context, subject.level, t)]
    return "\n".join(lines) + "\n"


def _tensor_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    names = context.names
    title = f"{names.levels[s]}.{names.tensors[t]}: tensor {names.tensors[t]} at level {names.levels[s]}"
    if not context.mapping.keep[s, t]:
        kept = [level for q, level in enumerate(names.levels) if context.mapping.keep[q, t]]
        bypassed = f"bypassed: the level does not keep it; kept at {', '.join(kept) or 'no level'}"
        if context.program.sparse is None:
            return [title, "", bypassed]
        here = (*spatial_lines(evaluation, context, s, t), *position_lines(evaluation, context, s, t))
        return [title, "", bypassed, *here]
    parts = [tile_lines, saf_lines, count_lines, storage_energy_lines]
    if context.program.sparse is None:
        parts.remove(saf_lines)
    return [title, *(line for part in parts for line in part(evaluation, context, s, t))]
