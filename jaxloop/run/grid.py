"""Runs the kernel over a grid: several lane axes, chunk by chunk, on all cores and devices.

What depends on one lane axis alone is computed along that axis alone: tiles for each mapping, chances for each density,
prices for each table of energies. Points of a product then cost a fraction of as many unrelated evaluations.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..kernel.evaluate import evaluate
from ..program import Mapping, Program, Structure
from ..result import own_axes
from .batch import chunk_lanes, correct_links, precision
from .executables import count_trace, interruptible, make_room, on_crowding, quick_options

ROW = 128
"""Points along the last lane axis of a chunk: enough to fill vector registers many times over."""

SHARING = 4
"""How many times as many points as unrelated ones fill a core's second-level cache where there are several lane axes:
most temporaries are then shared along one of them. Measured (benchmarks/README.md)."""

MOST_LANES = {"cpu": 1024}
"""Points of one call at most, by platform."""

ACCELERATOR_LANES = 2**17
"""The same elsewhere; the memory may allow fewer."""

FEW = 2**12
"""Points up to which a quick compilation saves more time than the slower executable costs."""

MEMORY_SHARE = 0.25
"""Of a device's memory that the temporaries of one call may take."""

AXIS = "devices"
"""Of the mesh."""

Leaves = dict[str, np.ndarray]
Place = tuple[int, ...]
_Call = Callable[[list[jax.Array]], dict[str, jax.Array]]

_EXECUTABLES: dict[Any, _Call] = {}
on_crowding(_EXECUTABLES.clear)


def default_mesh() -> Mesh:
    """All devices of this process along one axis."""
    return Mesh(np.asarray(jax.local_devices()), (AXIS,))


@dataclass
class GridRunner:
    """Evaluates blocks of a grid, all of them with one executable.

    **Attributes:** `fields` of `Evaluation`; `chunk`: points of one call and device along each lane axis; `mesh`:
    devices with one axis, which share every call along the first lane axis; `is_quick`: the compiler takes less time,
    the executable more.
    """

    dtype: np.dtype
    fields: tuple[str, ...]
    chunk: Place
    mesh: Mesh
    is_quick: bool = False

    def run(
        self, program: Program, mapping: Mapping, shape: Place, advance: Callable[[int], None] = lambda points: None
    ) -> Leaves:
        """All points of a block.

        **Arguments:** leaves are numpy arrays with one trailing lane axis per entry of `shape`, of 1 or its size;
        `advance` is called with the number of points of each finished call.

        **Returns:** `{field: [*shape, *own axes]}`.
        """
        leaves, layout = jax.tree.flatten((program, mapping))
        axes = len(shape)
        results: Leaves = {}
        with precision(self.dtype):
            call = self._executable(leaves, layout)
            pieces = _Pieces(shape, self._whole_chunk)
            parts = self._on_device(leaves, pieces)

        def one(at: Place) -> tuple[Place, Leaves]:
            own = [part[tuple(i % n for i, n in zip(at, extent, strict=True))] for extent, part in parts]
            with precision(self.dtype):
                return at, {name: np.asarray(value) for name, value in call(own).items()}

        for at, found in _in_flight(one, pieces.places(), self._calls_at_once):
            advance(pieces.store(at, found, results))
        results = {name: np.moveaxis(leaf, range(-axes, 0), range(axes)) for name, leaf in results.items()}
        _correct(program, mapping, self.dtype, results, axes)
        return {name: np.ascontiguousarray(results[name]) for name in self.fields}

    def _on_device(self, leaves: list[np.ndarray], pieces: "_Pieces") -> list[tuple[Place, dict[Place, jax.Array]]]:
        """Of each leaf the number of its parts along each lane axis, and the parts; one transfer for all."""
        cut = [pieces.cut(leaf, self.dtype) for leaf in leaves]
        arrays = [part for _, parts in cut for part in parts.values()]
        shardings = [self._sharding(leaf) for leaf, (_, parts) in zip(leaves, cut, strict=True) for _ in parts]
        moved = iter(jax.device_put(arrays, shardings))
        return [(extent, {at: next(moved) for at in parts}) for extent, parts in cut]

    def compiled(self, program: Program, mapping: Mapping) -> Any:
        """The executable for such leaves, as JAX's ahead-of-time compilation gives it: for analyses."""
        with precision(self.dtype):
            return self._executable(*jax.tree.flatten((program, mapping)))

    @property
    def _platform(self) -> str:
        return self.mesh.devices.flat[0].platform

    @property
    def _whole_chunk(self) -> Place:
        return (self.chunk[0] * self.mesh.size, *self.chunk[1:])

    @property
    def _calls_at_once(self) -> int:
        """A core each on CPUs; elsewhere one computes while another's results travel."""
        return (os.cpu_count() or 1) if self._platform == "cpu" and self.mesh.size == 1 else 2

    def _executable(self, leaves: list[np.ndarray], layout: Any) -> _Call:
        """Compiled at the first call, and again in smaller chunks if its temporaries exceed the device's memory."""
        while True:
            arguments = [self._argument(leaf) for leaf in leaves]
            wanted = tuple(dict.fromkeys((*self.fields, "needs_enumeration")))
            key = (layout, tuple((a.shape, a.dtype) for a in arguments), wanted, self.chunk, self.mesh, self.is_quick)
            if key in _EXECUTABLES:
                return _EXECUTABLES[key]
            make_room()
            compiled = interruptible(partial(self._compile, arguments, layout, wanted))
            if math.prod(self.chunk) == 1 or _temporaries(compiled) <= MEMORY_SHARE * _memory(self.mesh):
                _EXECUTABLES[key] = compiled
                return compiled
            longest = int(np.argmax(self.chunk))
            self.chunk = tuple(-(-n // 2) if axis == longest else n for axis, n in enumerate(self.chunk))

    def _argument(self, leaf: np.ndarray) -> jax.ShapeDtypeStruct:
        axes = len(self.chunk)
        own, lanes = leaf.shape[: leaf.ndim - axes], leaf.shape[leaf.ndim - axes :]
        part = tuple(c if n > 1 else 1 for n, c in zip(lanes, self._whole_chunk, strict=True))
        return jax.ShapeDtypeStruct((*own, *part), _kind(leaf, self.dtype), sharding=self._sharding(leaf))

    def _sharding(self, leaf: np.ndarray) -> NamedSharding:
        axes = len(self.chunk)
        return NamedSharding(self.mesh, _specification(leaf.ndim - axes, axes, leaf.shape[leaf.ndim - axes] > 1))

    def _compile(self, arguments: list[jax.ShapeDtypeStruct], layout: Any, wanted: tuple[str, ...]) -> Any:
        axes, chunk = len(self.chunk), self.chunk

        def points(leaves: list[jax.Array]) -> dict[str, jax.Array]:
            count_trace("grid")
            result = evaluate(*jax.tree.unflatten(layout, leaves))
            values = {name: getattr(result, name) for name in wanted}
            return {name: jnp.broadcast_to(v, (*v.shape[: v.ndim - axes], *chunk)) for name, v in values.items()}

        function: Any = points
        if self.mesh.size > 1:
            # every device runs the very program that one device alone would run
            given = [argument.sharding.spec for argument in arguments]
            result = {name: _specification(len(own_axes(name)), axes, True) for name in wanted}
            function = jax.shard_map(points, mesh=self.mesh, in_specs=(given,), out_specs=result, check_vma=False)
        options: Any = {"xla_cpu_multi_thread_eigen": False} if self._platform == "cpu" else None
        if self.is_quick:
            options = quick_options()
        with precision(self.dtype):
            return jax.jit(function, compiler_options=options).lower(arguments).compile()


def make_runner(
    structure: Structure,
    dtype: np.dtype,
    fields: tuple[str, ...],
    shape: Place,
    mesh: Mesh | None,
    points: int | None = None,
) -> GridRunner:
    """A runner for blocks of up to `shape` points. `points`: in all, None if there may be many."""
    mesh = mesh or default_mesh()
    platform = mesh.devices.flat[0].platform
    most = MOST_LANES.get(platform, ACCELERATOR_LANES)
    if platform == "cpu":
        most = min(most, chunk_lanes(structure, dtype.itemsize) * (SHARING if len(shape) > 1 else 1))
    return GridRunner(dtype, fields, chunk_shape(shape, most, mesh.size), mesh, points is not None and points <= FEW)


def chunk_shape(shape: Place, lanes: int, devices: int = 1) -> Place:
    """Points of one call along each lane axis: about `lanes`, few of them padding. The last axis comes first, up to
    `ROW` points or what the others leave over."""
    sizes = (-(-shape[0] // devices), *shape[1:])
    chunk = [1] * len(sizes)
    chunk[-1] = _even(sizes[-1], min(lanes, max(ROW, lanes // math.prod(sizes[:-1]))))
    for axis in reversed(range(len(sizes) - 1)):
        chunk[axis] = _even(sizes[axis], lanes // math.prod(chunk))
    return tuple(chunk)


def _even(size: int, most: int) -> int:
    """About `most` points of `size` at a time, in equal parts: a power of two, or a multiple of 8 where that would
    waste more than an eighth."""
    part = -(-size // -(-size // max(most, 1)))
    power = 2 ** math.ceil(math.log2(part))
    return power if power <= 8 or power * -(-size // power) <= size * 1.125 else -(-part // 8) * 8


@dataclass(frozen=True)
class _Pieces:
    """How a block of `shape` is cut into chunks."""

    shape: Place
    chunk: Place

    def places(self) -> Iterator[Place]:
        return product(*(range(-(-n // c)) for n, c in zip(self.shape, self.chunk, strict=True)))

    def cut(self, leaf: np.ndarray, dtype: np.dtype) -> tuple[Place, dict[Place, np.ndarray]]:
        """The number of parts of a leaf along each lane axis (1 where it does not vary), and the parts by place, filled
        up with the last entry."""
        axes = len(self.shape)
        lanes = leaf.shape[leaf.ndim - axes :]
        indices = [
            [np.minimum(np.arange(start, start + (c if n > 1 else 1)), n - 1) for start in range(0, n, c)]
            for n, c in zip(lanes, self.chunk, strict=True)
        ]
        extent = tuple(len(along) for along in indices)
        leaf = leaf.astype(_kind(leaf, dtype), copy=False)
        places = {at: [along[i] for along, i in zip(indices, at, strict=True)] for at in product(*map(range, extent))}
        return extent, {at: leaf[(..., *np.ix_(*along))] for at, along in places.items()}

    def store(self, at: Place, found: Leaves, results: Leaves) -> int:
        """Puts a chunk into its place, without its padding; gives the number of its points."""
        place = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(at, self.chunk, self.shape, strict=True))
        inside = tuple(slice(along.stop - along.start) for along in place)
        for name, leaf in found.items():
            if name not in results:
                own = leaf.shape[: leaf.ndim - len(self.shape)]
                results[name] = np.empty((*own, *self.shape), leaf.dtype)
            results[name][(..., *place)] = leaf[(..., *inside)]
        return math.prod(along.stop for along in inside)


def _in_flight(
    work: Callable[[Place], tuple[Place, Leaves]], places: Iterable[Place], at_once: int
) -> Iterator[tuple[Place, Leaves]]:
    """Results as they come, of a few calls at a time. What has begun ends before an exception leaves."""
    waiting = iter(places)
    first = list(islice(waiting, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    waiting = chain(first, waiting)
    with ThreadPoolExecutor(at_once) as pool:
        running: set[Future[tuple[Place, Leaves]]] = {pool.submit(work, at) for at in islice(waiting, at_once + 1)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, at) for at in islice(waiting, len(done))}
            for future in done:
                yield future.result()


def _correct(program: Program, mapping: Mapping, dtype: np.dtype, results: Leaves, axes: int) -> None:
    """Replaces, in place, the results of points in which links may matter."""
    unsure = np.nonzero(results["needs_enumeration"])
    if not len(unsure[0]):
        return
    chosen = tuple(np.resize(along, max(2, len(along))) for along in unsure)  # lanes of 1 would count as shared

    def at_points(leaf: np.ndarray) -> np.ndarray:
        lanes = leaf.shape[leaf.ndim - axes :]
        return leaf[(..., *(along if n > 1 else np.zeros_like(along) for along, n in zip(chosen, lanes, strict=True)))]

    flat: Leaves = {name: leaf[chosen] for name, leaf in results.items()}
    at_program, at_mapping = jax.tree.map(at_points, (program, mapping))
    correct_links(at_program, at_mapping, dtype, flat)
    for name, leaf in flat.items():
        results[name][chosen] = leaf


def _specification(own: int, axes: int, is_split: bool) -> PartitionSpec:
    """Of `own` axes and then the lane axes, the first of which may be split over the devices."""
    return PartitionSpec(*[None] * own, AXIS if is_split else None, *[None] * (axes - 1))


def _kind(leaf: np.ndarray, dtype: np.dtype) -> Any:
    return np.dtype(np.int32) if np.issubdtype(leaf.dtype, np.integer) else dtype


def _temporaries(compiled: Any) -> float:
    analysis = compiled.memory_analysis()
    return 0.0 if analysis is None else analysis.temp_size_in_bytes


def _memory(mesh: Mesh) -> float:
    """Bytes of one device; of the host, which its cores share, the half of what one of them may take."""
    statistics = mesh.devices.flat[0].memory_stats() or {}
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (os.cpu_count() or 1)
    return statistics.get("bytes_limit", host)
