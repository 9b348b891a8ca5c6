"""Hypergeometric probabilities are the floats nearest to exact fractions, compiled, with lanes and without."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxloop.kernel.density.exact import consecutive_window, prob_empty_exact, start_draws

from .occupancies import Seen, all_seen, scan

NODES = 512
TINY = 1e-260


def populations(seed: int, largest: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, nonzeros (sparse, dense and between) and words per tile (small ones more often)."""
    rng = np.random.default_rng(seed)
    size = np.floor(largest ** rng.random(count)).astype(int)
    share = rng.random(count) ** rng.integers(1, 4, count)
    nonzeros = np.floor(size * np.where(rng.random(count) < 0.2, 1.0 - share, share)).astype(int)
    tile = np.floor((size + 1.0) ** rng.random(count)).astype(int)
    return size, np.clip(nonzeros, 0, size), np.clip(tile, 0, size)


def floats(*arrays: Any) -> list[np.ndarray]:
    return [np.asarray(array, np.float64) for array in arrays]


def walked(size: Any, nonzeros: Any, tile: Any, parts: Any = None, nodes: int = NODES) -> Seen:
    """The first `nodes` numbers of nonzeros, traced; `parts` [part, ...]."""
    none = jnp.zeros((0, *jnp.shape(tile)), jnp.result_type(tile))
    walk = start_draws(size, nonzeros, tile, none if parts is None else parts)
    return scan(walk, lambda at, _: (at.state.visit(at.fixed), at.state.next(at.fixed)), nodes)


def probabilities(size: int, nonzeros: int, tile: int, first: int, last: int) -> list[float]:
    """Of the numbers from `first` to `last`, all of them possible."""
    everything = math.comb(size, tile)
    ways = math.comb(nonzeros, first) * math.comb(size - nonzeros, tile - first)
    found = []
    for count in range(first, last + 1):
        found.append(ways / everything)
        ways = ways * ((nonzeros - count) * (tile - count))
        ways //= (count + 1) * (size - nonzeros - tile + count + 1)
    return found


def none_drawn(size: int, marked: int, drawn: int) -> float:
    fewer, more = sorted((marked, drawn))
    return math.perm(size - more, fewer) / math.perm(size, fewer)


def check_weights(sizes: Any, nonzeros: Any, tiles: Any, shape: tuple[int, ...]) -> int:
    """Of walks that the nodes hold; returns how many do."""
    args = [array.reshape(shape) for array in floats(sizes, nonzeros, tiles)]
    with jax.enable_x64(True):
        seen = jax.jit(walked)(*args)
        first, last = map(np.asarray, jax.jit(consecutive_window)(*args))
    assert np.isfinite(np.asarray(seen.probability)).all()
    np.testing.assert_array_equal(seen.length, last - first + 1.0)
    count, probability = (np.asarray(leaf).reshape(NODES, -1) for leaf in seen[:2])
    first, last = (np.ravel(bound).astype(int) for bound in (first, last))
    fits = last - first < NODES
    for cell in np.flatnonzero(fits):
        low, high = int(first[cell]), int(last[cell])
        right = np.array(probabilities(int(sizes[cell]), int(nonzeros[cell]), int(tiles[cell]), low, high))
        ours = probability[: len(right), cell]
        np.testing.assert_array_equal(count[: len(right), cell], np.arange(low, high + 1))
        assert np.all((ours == right) | (np.maximum(ours, right) < TINY)), (sizes[cell], nonzeros[cell], tiles[cell])
        assert not probability[len(right) :, cell].any()
    return int(fits.sum())


def test_weights():
    assert check_weights(*populations(0, 3000, 240), (3, 4, 20)) == 240


def test_weights_of_large_tensors():
    assert check_weights(*populations(1, 10**6, 100), (100,)) > 60


def test_window_holds_all_but_a_millionth_of_a_last_bit():
    sizes, nonzeros, tiles = populations(2, 3000, 60)
    with jax.enable_x64(True):
        first, last = map(np.asarray, jax.jit(consecutive_window)(*floats(sizes, nonzeros, tiles)))
    for cell, (size, filled, tile) in enumerate(zip(sizes, nonzeros, tiles, strict=True)):
        least, most = max(0, int(tile + filled - size)), int(min(tile, filled))
        every = probabilities(int(size), int(filled), int(tile), least, most)
        outside = [p for count, p in enumerate(every, least) if not first[cell] <= count <= last[cell]]
        assert least <= first[cell] and last[cell] <= most and sum(outside) < 1e-20


def test_shared_tensor_batched_tiles():
    """One tensor for many tiles broadcasts, also mapped over."""
    tiles = np.arange(1.0, 33.0)
    with jax.enable_x64(True):
        together = jax.jit(lambda tile: walked(512.0, 100.0, tile, nodes=64))(tiles)
        mapped = jax.jit(jax.vmap(lambda tile: walked(512.0, 100.0, tile, nodes=64), out_axes=-1))(tiles)
    together = all_seen(together)
    np.testing.assert_array_equal(together.probability, np.asarray(mapped.probability))
    assert together.count[21, 20] == 21.0
    assert together.probability[21, 20] == probabilities(512, 100, 21, 0, 21)[21]


def test_long_recurrences_stay_exact():
    """Thousands of occupancies, also of so many words that products of counts are rounded."""
    cases = [(10**9, 4 * 10**4, 5 * 10**8), (400_000, 200_000, 160_000), (2 * 10**15, 2 * 10**15 - 900, 10**15)]
    with jax.enable_x64(True):
        seen = all_seen(jax.jit(lambda *args: walked(*args, nodes=4096))(*floats(*zip(*cases, strict=True))))
    assert np.all(seen.length > 300) and np.isfinite(seen.probability).all()
    for (size, filled, tile), count, chance in zip(cases, seen.count.T, seen.probability.T, strict=True):
        mean, part = Fraction(filled * tile, size), Fraction((size - filled) * (size - tile), size * (size - 1))
        assert math.fsum(chance) == pytest.approx(1.0, rel=1e-12)
        offset = count - float(mean)
        assert math.fsum(offset * chance) == pytest.approx(0.0, abs=1e-7)
        assert math.fsum(offset * offset * chance) == pytest.approx(float(mean * part), rel=1e-9)


def test_parts_along_a_walk():
    """Single words and others, of tiles that hold least occupancies of any size and up to 40 more: so many more words
    and nonzeros the tensor has."""
    rng = np.random.default_rng(3)
    tiles = np.floor(2000.0 ** rng.random(300)).astype(int)
    parts = np.stack([np.ones_like(tiles), rng.integers(0, tiles + 3), rng.integers(0, np.minimum(tiles, 70) + 1)])
    lows = np.where(rng.random(300) < 0.5, 0, rng.integers(0, np.minimum(tiles, 200) + 1))
    with jax.enable_x64(True):
        args = floats(tiles + 40, lows + 40, tiles, parts)
        found = np.asarray(jax.jit(lambda *args: walked(*args, nodes=41))(*args).part_empty)
    seen = 0
    for (row, cell), part in np.ndenumerate(parts):
        tile, low = int(tiles[cell]), int(lows[cell])
        ours = found[: min(40, tile - low) + 1, row, cell]
        filled = range(low, low + len(ours))
        expected = np.array([none_drawn(tile, k, int(part)) if part <= tile else float(k == 0) for k in filled])
        if min(low, part) <= 64 or part >= tile:
            assert np.all((ours == expected) | (np.maximum(ours, expected) < TINY)), (tile, low, part)
            seen += len(ours)
        else:
            np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=0.0)
    assert seen > 10_000


def test_prob_empty():
    for largest in (3000, 10**6):
        sizes, nonzeros, tiles = populations(4, largest, 1500)
        with jax.enable_x64(True):
            found = np.asarray(jax.jit(prob_empty_exact)(*floats(sizes, nonzeros, tiles)))
        for size, filled, tile, ours in zip(sizes, nonzeros, tiles, found, strict=True):
            if min(filled, tile) <= 64:
                assert ours == none_drawn(int(size), int(filled), int(tile))
            else:
                assert 0.0 <= ours <= 1.0


def walk_leaves(size: Any, nonzeros: Any, tile: Any) -> Any:
    """Probabilities and chances of empty parts of any size."""
    seen = walked(size, nonzeros, tile, size[None], 80)
    return jnp.concatenate([seen.probability[:, None], seen.part_empty], axis=1)


CALLS: dict[str, Callable[..., Any]] = {"walk": walk_leaves, "prob_empty": prob_empty_exact}
EDGES = [axis.ravel() for axis in np.meshgrid(*3 * [[0.0, 1.0, 2.0, 2.5, 7.0, 30.0, 63.9, 64.0, 70.0]])]
"""Words, nonzeros and words per tile at the ends of all ranges, beyond them, and between integers."""


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_are_finite_and_close_in_single_precision(call: Callable):
    """Nothing of that is in double."""
    singles = [axis.astype(np.float32) for axis in EDGES]
    lowered = jax.jit(call).lower(*singles)
    assert "f64" not in lowered.as_text()
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(call)(*EDGES))
    assert np.all((found >= 0.0) & (found <= 1.0 + 1e-12))
    np.testing.assert_allclose(np.asarray(lowered.compile()(*singles)), found, atol=1e-5)


def test_gradients_are_finite():
    with jax.enable_x64(True):
        slope = jax.grad(lambda *args: jnp.sum(prob_empty_exact(*args)), argnums=(0, 1, 2))
        assert np.isfinite(np.asarray(jax.jit(slope)(*EDGES))).all()


def test_gradient_of_an_empty_tile():
    with jax.enable_x64(True):
        by_nonzeros = float(jax.jit(jax.grad(prob_empty_exact, argnums=1))(200.0, 60.0, 2.0))
    step = Fraction(1, 1000)
    near = [Fraction(140 - s, 200) * Fraction(139 - s, 199) for s in (step, -step)]
    assert by_nonzeros == pytest.approx(float((near[0] - near[1]) / (2 * step)), rel=1e-8)
