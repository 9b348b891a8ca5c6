"""Words handed over by a neighbour, by enumerating the children of a fan-out (spec/dense.md section 4.6).

Runs only for mappings whose closed form reports candidates. The children lie on a grid; when a loop advances, a child
whose new tile equals the previous tile of a neighbour is served over a link. What remains is multicast among fewer
children, and a link is used only if that reduces the number of groups. The work per candidate is a comparison of all pairs
of children; `Structure.elements` bounds their number. Written for arrays without lanes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._math import floor_div
from ..program import Mapping, Program
from .fanout import FanOut, fan_outs
from .multicast import Multicast
from .records import Records, after_partial, link_candidates
from .temporal import Reuse
from .tiling import Tiles


class _Children(eqx.Module):
    """The children of one (level, tensor): their numbers and the keys of their tiles' offsets."""

    number: Float[Array, " element"]
    key: Float[Array, " element"]
    used: Float[Array, ""]
    width: Float[Array, ""]
    height: Float[Array, ""]

    def linked(self, motion_key: Float[Array, ""]) -> Bool[Array, " element"]:
        """Children whose tile after the motion is a neighbour's tile before it. The numbers are decoded with the physical
        grid's width, though they count along the mapped one: so does the reference."""
        row = floor_div(self.number, self.width)
        column = self.number - row * self.width
        tall, wide = self.height > 1.0, self.width > 1.0
        neighbours = (
            (-self.width, tall & (row > 0.0)),
            (self.width, tall & (row < self.height - 1.0)),
            (-1.0, wide & (column > 0.0)),
            (1.0, wide & (column < self.width - 1.0)),
        )
        found = jnp.zeros_like(self.number, dtype=bool)
        for step, exists in neighbours:
            other = self.number + step
            inside = exists & (other >= 0.0) & (other < self.used)
            place = jnp.clip(other, 0.0, self.number.shape[0] - 1.0).astype(jnp.int32)
            found = found | (inside & (self.key[place] == self.key + motion_key))
        return found & (self.number < self.used)

    def histogram(self, members: Bool[Array, " element"], separate: Bool[Array, ""]) -> Float[Array, " multiple"]:
        """Number of groups of equal offsets among `members`, per multiplicity 1, 2, ..."""
        equal = (self.key[:, None] == self.key[None]) & members[None]
        count = jnp.where(separate, 1, jnp.sum(equal, axis=1))
        size = self.number.shape[0]
        total = jnp.zeros(size, self.number.dtype).at[jnp.maximum(count, 1) - 1].add(members.astype(self.number.dtype))
        return total / jnp.arange(1, size + 1)


def _children(program: Program, fan: FanOut, s: Array, t: Array) -> _Children:
    number = jnp.arange(program.structure.elements, dtype=fan.used.dtype)
    quotient = floor_div(number[:, None], fan.radix[s][None])
    digits = quotient - fan.bounds[s] * floor_div(quotient, fan.bounds[s][None])
    return _Children(number, digits @ fan.step_key[s][:, t], fan.used[s], fan.width[s], fan.height[s])


def _record_places(elements: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All (multicast, scatter) pairs with product <= elements in ascending order, and where each multicast begins."""
    factors = np.arange(1, elements + 1)
    counts = elements // factors
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    multicast = np.repeat(factors, counts)
    scatter = np.arange(counts.sum()) - np.repeat(begin, counts) + 1
    return multicast, scatter, begin


def enumerate_records(
    program: Program,
    mapping: Mapping,
    tiles: Tiles,
    reuse: Reuse,
    multicast: Multicast,
    no_link: Float[Array, "level tensor"],
) -> tuple[Records, Bool[Array, ""]]:
    """The traffic records with links, and whether some candidate's fan-out exceeds `Structure.elements`."""
    structure = program.structure
    fan = fan_outs(program, mapping, tiles)
    candidates, keys = link_candidates(program, tiles, reuse, multicast, fan, no_link)
    fits = fan.used <= structure.elements
    state = _Accumulation(
        table=jnp.zeros((_record_places(structure.elements)[0].size, structure.levels, structure.tensors), fan.used.dtype),
        links=jnp.zeros_like(reuse.delivered),
        served=jnp.zeros_like(reuse.delivered),
    )
    base = _base_histogram(program, mapping, fan, multicast)
    counted = candidates & fits[:, None, None, None]
    running = jnp.cumsum(counted.reshape(-1))
    walk = _Walk(program, mapping, fan, reuse, keys, jnp.sum(base.groups, axis=0))

    def step(carry: tuple[Int[Array, ""], _Accumulation]):
        index, state = carry
        place = jnp.unravel_index(jnp.argmax(running > index), candidates.shape)
        return index + 1, walk.add_loop(state, *place)

    _, state = jax.lax.while_loop(lambda carry: carry[0] < running[-1], step, (jnp.zeros_like(running[-1]), state))
    records = _merge(structure.elements, state, base, reuse.delivered - state.served, fits, multicast.fanout)
    return records, jnp.any(candidates & ~fits[:, None, None, None])


class _Accumulation(eqx.Module):
    """`table`: accesses per (multicast, scatter) pair of the loops served over links; `links`: words over links;
    `served`: words per child that those loops deliver."""

    table: Float[Array, "place level tensor"]
    links: Float[Array, "level tensor"]
    served: Float[Array, "level tensor"]


class _Base(eqx.Module):
    """Histogram of the whole fan-out: number of groups per multicast factor."""

    factor: Float[Array, "multiple level tensor"]
    groups: Float[Array, "multiple level tensor"]


def _base_histogram(program: Program, mapping: Mapping, fan: FanOut, multicast: Multicast) -> _Base:
    structure = program.structure
    closed = multicast.groups_by_multiple
    multiple = jnp.arange(1, closed.shape[0] + 1, dtype=closed.dtype)[:, None, None]
    if not structure.irregular:
        return _Base(factor=multicast.repeats[None] * multiple, groups=closed)

    def count(place: Array) -> Array:
        s, t = place // structure.tensors, place % structure.tensors
        children = _children(program, fan, s, t)
        return children.histogram(children.number < children.used, mapping.no_multicast[s, t] > 0.0)

    places = jnp.arange(structure.levels * structure.tensors)
    groups = jnp.moveaxis(jax.lax.map(count, places), 0, 1)
    groups = groups.reshape(structure.elements, structure.levels, structure.tensors)
    factor = jnp.arange(1, structure.elements + 1, dtype=groups.dtype)[:, None, None]
    return _Base(factor=jnp.broadcast_to(factor, groups.shape), groups=groups)


class _Walk(eqx.Module):
    """Adds one loop after the other to an accumulation."""

    program: Program
    mapping: Mapping
    fan: FanOut
    reuse: Reuse
    keys: Float[Array, "level outer position tensor"]
    groups: Float[Array, "level tensor"]

    def _weight(self, s: Array, outer: Array, position: Array, t: Array) -> Array:
        """How often the loop's advance delivers a linkable tile: always, but for the innermost loop with partial
        deliveries."""
        reuse, structure = self.reuse, self.program.structure
        active = (reuse.loops.advances > 0.0) & (jnp.arange(structure.levels) >= s)[:, None]
        is_innermost = jnp.argmax(active.reshape(-1)) == outer * structure.ranks + position
        partial = reuse.reuses[s, t] & (reuse.step_words[s, t] < reuse.whole_words[s, t])
        repeats = after_partial(self.program, reuse)[s, t]
        return jnp.where(partial & is_innermost, repeats, reuse.loops.advances[outer, position])

    def add_loop(self, state: _Accumulation, s: Array, outer: Array, position: Array, t: Array) -> _Accumulation:
        reuse = self.reuse
        words = jnp.where(reuse.reuses[s, t], reuse.step_words[s, t], reuse.whole_words[s, t])
        served = self._weight(s, outer, position, t) * words
        children = _children(self.program, self.fan, s, t)
        linked = children.linked(self.keys[s, outer, position, t])
        rest = (children.number < children.used) & ~linked
        groups = children.histogram(rest, self.mapping.no_multicast[s, t] > 0.0)
        served = jnp.where(jnp.sum(groups) < self.groups[s, t], served, 0.0)
        begin = jnp.asarray(_record_places(self.program.structure.elements)[2])
        place = begin + groups.astype(begin.dtype) - 1
        added = jnp.where(groups > 0.0, served * groups, 0.0)
        return _Accumulation(
            table=state.table.at[jnp.where(groups > 0.0, place, 0), s, t].add(added),
            links=state.links.at[s, t].add(served * jnp.sum(linked)),
            served=state.served.at[s, t].add(served),
        )


def _merge(elements: int, state: _Accumulation, base: _Base, delivered: Array, fits: Array, fanout: Array) -> Records:
    """Joins the loops without links, which share the whole fan-out's histogram, with those over links. A fan-out too wide
    for the table keeps its histogram behind it (it has no other records)."""
    multicast, scatter, begin = (jnp.asarray(places) for places in _record_places(elements))
    levels, tensors = delivered.shape
    accesses = delivered[None] * base.groups
    inside = (fits[None, :, None] & (base.groups > 0.0)) & (base.factor <= elements)
    factor = jnp.where(inside, base.factor, 1.0).astype(begin.dtype)
    place = jnp.where(inside, begin[factor - 1] + base.groups.astype(begin.dtype) - 1, 0)
    row, column = jnp.arange(levels)[None, :, None], jnp.arange(tensors)[None, None, :]
    table = state.table.at[place, row, column].add(jnp.where(inside, accesses, 0.0))
    shape, dtype = table.shape, table.dtype
    return Records(
        multicast=jnp.concatenate([jnp.broadcast_to(multicast.astype(dtype)[:, None, None], shape), base.factor]),
        scatter=jnp.concatenate([jnp.broadcast_to(scatter.astype(dtype)[:, None, None], shape), base.groups]),
        accesses=jnp.concatenate([table, jnp.where(inside, 0.0, accesses)]),
        links=state.links,
        fanout=fanout,
    )
