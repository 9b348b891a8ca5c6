"""From traffic records to reads, fills and updates of each level (spec/dense.md section 5)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import exact_divide, floor, floor_div, fold, round_half_up, stack
from ..program import Mapping, Program
from .records import Records
from .tiling import Tiles


class Traffic(eqx.Module):
    """Counts per instance. `records` are those of the networks: scaled by bypassing, empty above the outermost level
    that keeps the tensor. `is_active`: 1 up to that level. `exceeds_accesses`: an output's partition is larger than
    what arrives, so that no count of reads exists (the reference aborts)."""

    tile_words: Float[Array, "level tensor *#lane"]
    partition_size: Float[Array, "level tensor *#lane"]
    reads: Float[Array, "level tensor *#lane"]
    fills: Float[Array, "level tensor *#lane"]
    updates: Float[Array, "level tensor *#lane"]
    temporal_reductions: Float[Array, "level tensor *#lane"]
    address_generations: Float[Array, "level tensor *#lane"]
    instances: Float[Array, "level tensor *#lane"]
    instances_x: Float[Array, "level *#lane"]
    instances_y: Float[Array, "level *#lane"]
    compute_x: Float[Array, "*#lane"]
    compute_y: Float[Array, "*#lane"]
    is_active: Float[Array, "level tensor *#lane"]
    exceeds_accesses: Bool[Array, "level tensor *#lane"]
    records: Records


def _partitions(program: Program, tiles: Tiles) -> Array:
    """Words of the whole tensor that one instance of each level is responsible for (5.1)."""
    words, fanned = tiles.tile_words, tiles.fanned_words
    part = words[-1]
    parts = [part]
    for s in reversed(range(program.structure.levels - 1)):
        shared = part * words[s]
        quotient = floor_div if program.structure.conventions.integer_counts else jnp.divide
        spread = jnp.prod(tiles.fan[s + 1], axis=0) > 1.0
        part = jnp.where(spread[None], quotient(shared, fanned[s + 1]), part)
        parts.insert(0, part)
    return stack(parts)


def _parent_share(program: Program, records: Records) -> Array:
    """Words that one child receives from its parent (5.2), per parent level.

    The reference sums the shares of the records in floating point and truncates the sum later, so that a sum just
    below an integer loses a word: the same operations in the same order are needed where counts are integers.
    """
    received = records.accesses * records.multicast
    fanout = records.fanout[:, None]
    if not program.structure.conventions.integer_counts:
        return jnp.sum(received, axis=0) / fanout
    return fold(lambda share, words: share + exact_divide(words, fanout), jnp.zeros_like(received[0]), received)


def _bypass(program: Program, mapping: Mapping, records: Records) -> tuple[Array, Records]:
    """Lets the accesses of a level that bypasses a tensor reach the next outer level (5.3). Also the words that leave
    each level on their way inward, whether it stores them or not."""
    content = jnp.sum(records.accesses, axis=0)
    received = jnp.sum(records.accesses * records.multicast, axis=0)
    stored = mapping.keep > 0.0
    level_content, accesses, links = content[0], [records.accesses[:, 0]], [records.links[0]]
    contents = []
    for s in range(program.structure.levels - 1):
        factor = level_content * records.fanout[s + 1][None] / received[s + 1]
        scaled = records.accesses[:, s + 1] * jnp.where(stored[s], 1.0, factor)[None]
        contents.append(level_content)
        accesses.append(scaled)
        links.append(jnp.where(stored[s], records.links[s + 1], 0.0))
        level_content = jnp.sum(scaled, axis=0)
    contents.append(level_content)
    scaled = Records(
        records.multicast, records.scatter, jnp.moveaxis(stack(accesses), 0, 1), stack(links), records.fanout
    )
    return stack(contents), scaled


def _instances(program: Program, factors: Array) -> tuple[Array, Array]:
    """Instances in use along one mesh axis, per level and of the compute units (spec/dense.md section 3)."""
    spread = jnp.prod(factors, axis=1)
    used, per_level = jnp.ones_like(spread[0]), []
    for s in reversed(range(program.structure.levels)):
        per_level.insert(0, used)
        used = used * spread[s]
    return stack(per_level), used


def storage_traffic(program: Program, mapping: Mapping, tiles: Tiles, records: Records) -> Traffic:
    conventions = program.structure.conventions
    stored = mapping.keep > 0.0
    above, active = jnp.zeros_like(stored[0]), []
    outermost = []
    for s in reversed(range(program.structure.levels)):
        outermost.insert(0, stored[s] & ~above)
        above = above | stored[s]
        active.insert(0, above)
    is_active, is_outermost = stack(active), stack(outermost)

    from_parent = _parent_share(program, records)
    share = jnp.concatenate([from_parent[1:], jnp.zeros_like(from_parent[:1])])
    share = jnp.where(is_outermost, 0.0, share)
    passing, records = _bypass(program, mapping, records)
    content = jnp.where(stored, passing, 0.0)
    accesses = jnp.where(is_active[None], records.accesses, 0.0)
    links = jnp.where(is_active, records.links, 0.0)
    records = Records(records.multicast, records.scatter, accesses, links, records.fanout)

    instances_x, compute_x = _instances(program, mapping.spatial_x)
    instances_y, compute_y = _instances(program, mapping.spatial_y)
    used = (instances_x * instances_y)[:, None]
    peer = exact_divide(jnp.concatenate([links[1:], jnp.zeros_like(links[:1])]), used)

    partitions = _partitions(program, tiles)
    part = jnp.where(stored, partitions, 0.0)
    first_touch = part if conventions.first_read_elision else jnp.zeros_like(part)
    is_output = program.is_output[None] > 0.0
    needed = content + peer - jnp.where(is_output, first_touch, 0.0)
    reads, updates, fills = jnp.maximum(needed, 0.0), jnp.where(is_output, content, 0.0), share + peer
    if conventions.integer_counts:
        reads, updates, fills = round_half_up(reads), round_half_up(updates), floor(fills)
    reads, updates, fills = (jnp.where(stored, count, 0.0) for count in (reads, updates, fills))
    if conventions.streams:
        streamed = (mapping.stream > 0.0) & ~stored & is_active & ~is_output
        words = round_half_up(passing) if conventions.integer_counts else passing
        reads, fills, part = (
            jnp.where(streamed, a, b) for a, b in ((words, reads), (words, fills), (partitions, part))
        )
    return Traffic(
        tile_words=jnp.where(stored, tiles.tile_words, 0.0),
        partition_size=part,
        reads=reads,
        fills=fills,
        updates=updates,
        temporal_reductions=jnp.where(is_output, reads, 0.0),
        address_generations=jnp.where(is_output, updates, reads) + fills,
        instances=jnp.where(is_active, used, 0.0),
        instances_x=instances_x,
        instances_y=instances_y,
        compute_x=compute_x,
        compute_y=compute_y,
        is_active=is_active.astype(part.dtype),
        exceeds_accesses=stored & (needed < 0.0),
        records=records,
    )
