"""Words handed over by a neighbour, by enumerating the children of a fan-out (spec/dense.md section 4.6).

Runs only for mappings whose closed form reports candidates. The children lie on a grid; when a loop advances, a child
whose new tile equals the previous tile of a neighbour is served over a link. What remains is multicast among fewer
children, and a link is used only if that reduces the number of groups. The work per candidate is a comparison of all
pairs of children; `Structure.elements` bounds their number. Written for arrays without lanes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import floor_div
from ..program import Mapping, Program
from .fanout import FanOut, fan_outs
from .multicast import Multicast
from .record_list import CODE, RecordList, distinct_multiplicities, shorten
from .records import Records, after_partial, link_candidates
from .temporal import Reuse
from .tiling import Tiles


class _Children(eqx.Module):
    """The children of one (level, tensor): their numbers and the keys of their tiles' offsets."""

    number: Float[Array, " element"]
    key: Float[Array, "element key"]
    used: Float[Array, ""]
    width: Float[Array, ""]
    height: Float[Array, ""]

    def linked(self, motion_key: Float[Array, " key"]) -> Bool[Array, " element"]:
        """Children whose tile after the motion is a neighbour's tile before it. The numbers are decoded with the
        physical grid's width, though they count along the mapped one: so does the reference."""
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
            found = found | (inside & jnp.all(self.key[place] == self.key + motion_key, axis=1))
        return found & (self.number < self.used)

    def histogram(self, members: Bool[Array, " element"], separate: Bool[Array, ""]) -> Float[Array, " multiple"]:
        """Number of groups of equal offsets among `members`, per multiplicity 1, 2, ..."""
        masked = jnp.where(members[:, None], self.key, jnp.inf)
        equal = jnp.all(self.key[:, None] == masked[None], axis=2)
        count = jnp.where(separate, 1, jnp.sum(equal, axis=1, dtype=jnp.int32))
        size = self.number.shape[0]
        total = jnp.zeros(size, self.number.dtype).at[jnp.maximum(count, 1) - 1].add(members.astype(self.number.dtype))
        return floor_div(total, jnp.arange(1, size + 1, dtype=total.dtype))


def _children(program: Program, fan: FanOut, s: Array, t: Array) -> _Children:
    number = jnp.arange(program.structure.elements, dtype=fan.used.dtype)
    quotient = floor_div(number[:, None], fan.radix[s][None])
    digits = quotient - fan.bounds[s][None] * floor_div(quotient, fan.bounds[s][None])
    return _Children(
        number, jnp.sum(digits[:, :, None] * fan.step_key[s][:, t], axis=1), fan.used[s], fan.width[s], fan.height[s]
    )


HISTOGRAMS = 2
"""Places for records that links leave, as multiples of the longest possible histogram of a fan-out. A mapping that
needs more says so (`Status.UNCOUNTED_LINKS`)."""


def enumerate_records(
    program: Program,
    mapping: Mapping,
    tiles: Tiles,
    reuse: Reuse,
    multicast: Multicast,
) -> tuple[Records, Bool[Array, ""]]:
    """The traffic records with links, and whether they could not all be counted."""
    structure = program.structure
    fan = fan_outs(program, mapping, tiles)
    candidates, keys = link_candidates(program, mapping, tiles, reuse, multicast, fan)
    fits = fan.used <= structure.elements
    base_multicast, base_scatter = _whole_fan_out(program, mapping, fan, multicast)
    walk = _Walk(program, mapping, fan, reuse, keys, jnp.sum(base_scatter, axis=0))
    # the records of the whole fan-out come first: their accesses are known when all links are
    extra = HISTOGRAMS * distinct_multiplicities(structure.elements)
    first = base_scatter.shape[0]
    code = jnp.where(base_scatter > 0.0, base_multicast * CODE + base_scatter, jnp.inf)
    code = jnp.concatenate([code, jnp.full((extra, *code.shape[1:]), jnp.inf, code.dtype)])
    taken = jnp.full(reuse.delivered.shape, first)
    none = jnp.zeros_like(reuse.delivered)
    state = _Accumulation(RecordList(code, jnp.zeros_like(code), taken, jnp.zeros((), bool)), links=none, served=none)
    running = jnp.cumsum((candidates & fits[:, None, None, None]).reshape(-1))

    def step(carry: tuple[Int[Array, ""], _Accumulation]):
        index, state = carry
        place = jnp.unravel_index(jnp.argmax(running > index), candidates.shape)
        return index + 1, walk.add_loop(state, *place)

    _, state = jax.lax.while_loop(lambda carry: carry[0] < running[-1], step, (jnp.zeros_like(running[-1]), state))
    shared = (reuse.delivered - state.served)[None] * base_scatter
    accesses = state.records.accesses.at[:first].add(shared)
    records = RecordList(state.records.code, accesses, state.records.used, state.records.overflow)
    uncounted = jnp.any(candidates & ~fits[:, None, None, None]) | records.overflow
    if structure.irregular:
        uncounted = uncounted | jnp.any(~fits)
    return Records(*records.ascending(), links=state.links, fanout=multicast.fanout), uncounted


class _Accumulation(eqx.Module):
    """`records` of the loops served over links; `links`: words over links; `served`: words per child that those loops
    deliver."""

    records: RecordList
    links: Float[Array, "level tensor"]
    served: Float[Array, "level tensor"]


def _whole_fan_out(program: Program, mapping: Mapping, fan: FanOut, multicast: Multicast) -> tuple[Array, Array]:
    """Multicast factors and groups of all children [entry, level, tensor]: in closed form, or counted where there is
    none."""
    structure = program.structure
    if not structure.irregular:
        return multicast.factors, multicast.groups_by_multiple

    def count(place: Array) -> tuple[Array, Array]:
        s, t = place // structure.tensors, place % structure.tensors
        children = _children(program, fan, s, t)
        return shorten(children.histogram(children.number < children.used, mapping.no_multicast[s, t] > 0.0))

    factors, groups = jax.lax.map(count, jnp.arange(structure.levels * structure.tensors))
    shape = (-1, structure.levels, structure.tensors)
    return jnp.moveaxis(factors, 0, 1).reshape(shape), jnp.moveaxis(groups, 0, 1).reshape(shape)


class _Walk(eqx.Module):
    """Adds one loop after the other to an accumulation."""

    program: Program
    mapping: Mapping
    fan: FanOut
    reuse: Reuse
    keys: Float[Array, "level outer position tensor key"]
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
        factor, scatter = shorten(groups)
        return _Accumulation(
            records=state.records.add(s, t, factor, jnp.where(served > 0.0, scatter, 0.0), served * scatter),
            links=state.links.at[s, t].add(served * jnp.sum(linked, dtype=served.dtype)),
            served=state.served.at[s, t].add(served),
        )
