"""Computes a plan block by block; while one block is computed the next is prepared and the last one delivered."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from jax.sharding import Mesh

from ..run.grid import make_runner
from .fields import derive, kernel_fields
from .plan import Box, Plan

Deliver = Callable[[int, Box, dict[str, np.ndarray]], None]
"""Takes the number of a block, its box and its values [*dimensions, *own axes] by field."""


def compute(
    plan: Plan, numbers: Iterable[int], deliver: Deliver, mesh: Mesh | None, advance: Callable[[int], None]
) -> None:
    """All blocks of `numbers`, delivered in their order.

    **Arguments:** `mesh`: devices, None for all of this process; `advance`: is told the points done, call by call.

    An exception, an interruption by the user included, leaves after the running calls of the kernel and the running
    delivery have ended.
    """
    wanted = kernel_fields(plan.fields)
    structure = plan.lowered.program.structure
    runner = make_runner(structure, plan.dtype, wanted, plan.lane_shape, mesh, plan.points)
    delivered: Future[None] | None = None
    with ThreadPoolExecutor(1) as preparing, ThreadPoolExecutor(1) as delivering:
        boxes = [(number, plan.box(number)) for number in numbers]
        ready = preparing.submit(plan.arrays, boxes[0][1]) if boxes else None
        for place, (number, box) in enumerate(boxes):
            assert ready is not None
            program, mapping, shape = ready.result()
            if place + 1 < len(boxes):
                ready = preparing.submit(plan.arrays, boxes[place + 1][1])
            values = derive(runner.run(program, mapping, shape, advance), plan.fields)
            if delivered is not None:
                delivered.result()
            arranged = {name: plan.unflatten(leaf, box) for name, leaf in values.items()}
            delivered = delivering.submit(deliver, number, box, arranged)
        if delivered is not None:
            delivered.result()
