"""The banded model against the plain-Python oracle and against counting in real matrices."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxloop.conventions import SMOOTH, TIMELOOP_2022, Conventions
from jaxloop.kernel.density.banded import Banded, nodes_needed
from jaxloop.kernel.density.base import Box, Nonzeros

from ..helpers import QUICK
from ..oracles import sparse_density as oracle
from .occupancies import Seen, look

Case = tuple[int, int, int, int]
"""Side, half band width, height and width of a tile."""

WIDEST = 4
SIDES = (1, 2, 3, 4, 6, 7, 8, 12)


@cache
def _cases(divisors: bool) -> list[Case]:
    found = []
    for side in SIDES:
        extents = [h for h in range(1, side + 1) if not (divisors and side % h)]
        found += [(side, b, h, w) for b in range(min(side, WIDEST + 1)) for h in extents for w in extents]
    return found


def _repeated(cases: list[Case]) -> list[Case]:
    """As many as there are in all, for the same executable."""
    return [cases[i % len(cases)] for i in range(len(_cases(divisors=False)))]


def _inputs(cases: list[Case], conventions: Conventions, dtype: type = np.float64) -> tuple[Nonzeros, Box]:
    """One tensor; the cases are lanes."""
    side, half, height, width = (np.asarray(column, dtype)[None] for column in zip(*cases, strict=True))
    words, ones, half, side = map(jnp.asarray, (side * side, np.ones_like(side), half, side))
    tile = Box(jnp.asarray(height * width), jnp.asarray(height), jnp.asarray(width))
    return Nonzeros(words, ones, half, side, conventions), tile


def _matrix(side: int, half: int) -> np.ndarray:
    rows, columns = np.indices((side, side))
    return np.abs(rows - columns) <= half


def _counts(case: Case) -> np.ndarray:
    """Nonzeros of every tile of a real matrix."""
    side, half, height, width = case
    tiles = _matrix(side, half).reshape(side // height, height, side // width, width)
    return tiles.sum(axis=(1, 3)).ravel()


def _is_exact(case: Case) -> bool:
    """Whether the row groups between the first and the last are alike, so that one may stand for all."""
    side, half, height, width = case
    return height % width == 0 or side // height - 2 * -(-half // height) <= 1


@partial(jax.jit, static_argnames="model", compiler_options=QUICK)
def _answers(model: Banded, nonzeros: Nonzeros, tile: Box) -> dict[str, Any]:
    return {
        "empty": model.prob_empty(nonzeros, tile),
        "mean": model.mean(nonzeros, tile),
        "largest": model.largest(nonzeros, tile),
        "least": model.least(nonzeros, tile),
    }


@cache
def _all_answers(conventions: Conventions) -> dict[Case, dict[str, Any]]:
    """Answers by case; occupancies as a distribution."""
    cases = _cases(divisors=False)
    found = _numpy(_answers(Banded(WIDEST), *_inputs(cases, conventions)))
    seen = look(Banded(WIDEST), *_inputs(cases, conventions), nodes_needed(WIDEST))
    np.testing.assert_array_equal(seen.length, np.sum(seen.probability > 0.0, axis=0))
    answers = {}
    for lane, case in enumerate(cases):
        answers[case] = {key: found[key][0, lane] for key in ("empty", "mean", "largest")}
        answers[case]["least"] = tuple(value[0, lane] for value in found["least"])
        answers[case]["occupancies"] = _distribution(seen, lane)
    return answers


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def _distribution(seen: Seen, lane: int) -> dict[float, float]:
    pairs = zip(seen.count[:, 0, lane], seen.probability[:, 0, lane], strict=True)
    used = [(float(k), float(p)) for k, p in pairs if p > 0.0]
    assert used == sorted(used) and len({k for k, _ in used}) == len(used)
    return dict(used)


def _numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def test_equals_the_oracle():
    for (side, half, height, width), ours in _all_answers(TIMELOOP_2022).items():
        theirs = oracle.Banded(half, (side, side))
        entries = theirs.entries((height, width))
        assert ours["empty"] == theirs.empty((height, width))
        assert ours["mean"] == pytest.approx(height * width * theirs.average, rel=1e-14)
        assert ours["largest"] == theirs.maximum((height, width))
        assert ours["least"] == (entries[0][0], 0.0)
        assert ours["occupancies"] == dict(entries)


@pytest.mark.parametrize("conventions", [TIMELOOP_2022, SMOOTH])
def test_equals_a_real_matrix_without_quirks(conventions: Conventions):
    cases = [case for case in _cases(divisors=True) if _is_exact(case)]
    if conventions.integer_counts:  # quirk Q15 where the row groups at the upper and lower edge overlap
        cases = [case for case in cases if 2 * -(-case[1] // case[2]) <= case[0] // case[2]]
    assert len(cases) > 200
    for case in cases:
        ours, counts = _all_answers(conventions)[case], _counts(case)
        values, numbers = np.unique(counts, return_counts=True)
        shares = {float(k): int(n) / len(counts) for k, n in zip(values, numbers, strict=True)}
        assert ours["occupancies"] == shares
        assert ours["empty"] == shares.get(0.0, 0.0)
        assert ours["mean"] == pytest.approx(counts.mean(), rel=1e-14)
        assert ours["largest"] == counts.max()
        assert ours["least"] == (counts.min(), 0.0)


def test_probabilities_sum_to_one_when_smooth():
    for ours in _all_answers(SMOOTH).values():
        assert sum(ours["occupancies"].values()) == pytest.approx(1.0, rel=1e-14)
        assert 0.0 <= ours["empty"] <= 1.0


@pytest.mark.parametrize("conventions", [TIMELOOP_2022, SMOOTH])
def test_probability_of_an_empty_tile_is_one(conventions: Conventions):
    nonzeros, tile = _inputs(_repeated([(8, 2, 0, 0), (8, 2, 0, 4), (4, 3, 0, 0)]), conventions)
    found = _numpy(_answers(Banded(WIDEST), nonzeros, tile))
    seen = look(Banded(WIDEST), nonzeros, tile, nodes_needed(WIDEST))
    assert np.all(found["empty"] == 1.0) and not np.any(found["mean"]) and not np.any(found["largest"])
    assert not np.any(found["least"])
    assert all(_distribution(seen, lane) == {0.0: 1.0} for lane in range(3))


def test_tiles_beyond_the_tensor_are_the_tensor():
    nonzeros, large = _inputs(_repeated([(6, 1, 9, 6), (6, 1, 6, 7), (6, 1, 50, 50)]), TIMELOOP_2022)
    _, whole = _inputs(_repeated([(6, 1, 6, 6)]), TIMELOOP_2022)
    ours, theirs = (_answers(Banded(WIDEST), nonzeros, tile) for tile in (large, whole))
    for key in ("empty", "largest", "least"):
        assert jax.tree.all(jax.tree.map(np.array_equal, ours[key], theirs[key]))
    assert not np.any(ours["empty"]) and np.all(ours["largest"] == 16.0)


def test_within_equals_the_oracle():
    """All parts of all tiles, given every occupancy that occurs."""
    outer, parts, counts, expected = [], [], [], []
    for case in _cases(divisors=False):
        side, half, height, width = case
        if side not in (4, 6, 7, 8):
            continue
        model = oracle.Banded(half, (side, side))
        known = [k for k, _ in model.entries((height, width))]
        for part in {(height, width), (1, 1), (height, 1), (1, width), (-(-height // 2), -(-width // 3)), (2, 3)}:
            if part[0] > height or part[1] > width:
                continue
            for k in known:
                outer.append(case)
                parts.append((side, half, *part))
                counts.append(k)
                expected.append(model.empty(part, ((height, width), k)))
    nonzeros, tile = _inputs(outer, TIMELOOP_2022)
    _, part = _inputs(parts, TIMELOOP_2022)
    given = jnp.asarray(counts, jnp.float64)[None, None]
    ours = jax.jit(Banded(WIDEST).prob_empty_within)(nonzeros, tile, given, part)
    assert ours.shape == given.shape and len(expected) > 5000
    assert 0.1 < np.mean(np.array(expected) < 1.0) < 0.9
    assert np.array_equal(ours[0, 0], expected)


def test_within_a_large_tile_at_the_corner():
    """Few rows of many long parts and the other way round, against counting."""
    cases, parts = [], []
    for side, half, part in [(60, 7, (3, 5)), (60, 7, (5, 4)), (60, 0, (1, 60)), (60, 31, (7, 1)), (59, 2, (11, 13))]:
        cases.append((side, half, side, side))
        parts.append((side, half, *part))
    nonzeros, tile = _inputs(cases, TIMELOOP_2022)
    _, part = _inputs(parts, TIMELOOP_2022)
    everything = jnp.asarray([_matrix(side, half).sum() for side, half, _, _ in cases], jnp.float64)[None, None]
    ours = np.asarray(jax.jit(Banded(WIDEST).prob_empty_within)(nonzeros, tile, everything, part))
    for lane, (side, half, height, width) in enumerate(parts):
        down, across = side // height, side // width
        whole = _matrix(side, half)[: down * height, : across * width]
        empty = ~whole.reshape(down, height, across, width).any(axis=(1, 3))
        assert ours[0, 0, lane] == pytest.approx(empty.mean(), abs=1e-14)


def test_unconditional_without_integer_counts():
    nonzeros, tile = _inputs([(8, 1, 4, 4), (8, 2, 8, 4)], SMOOTH)
    parts = [(8, 1, 2, 1), (8, 2, 2, 2)]
    ours = jax.jit(Banded(WIDEST).prob_empty_within)(nonzeros, tile, jnp.ones((5, 1, 2)), _inputs(parts, SMOOTH)[1])
    assert np.array_equal(ours, np.broadcast_to([np.mean(_counts(part) == 0) for part in parts], (5, 1, 2)))


def test_too_few_nodes_keep_probability_and_mean():
    cases = [(12, 4, 3, 2), (24, 4, 8, 2)]
    count, probability = jax.jit(Banded(WIDEST).occupancies, static_argnums=2)(*_inputs(cases, SMOOTH), 3)
    np.testing.assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-14)
    means = (count * probability).sum(axis=0)[0]
    for mean, counts in zip(np.asarray(means), map(_counts, cases), strict=True):
        assert len(np.unique(counts)) > 3
        assert mean == pytest.approx(counts.mean(), rel=1e-14)


@pytest.mark.parametrize("half", range(4))
def test_nodes_needed(half: int):
    """Enough, and no more than two to spare."""
    model = oracle.Banded(half, (26, 26))
    most = max(len(model.entries((h, w))) for h in range(1, 2 * half + 7) for w in range(1, 2 * half + 7))
    assert nodes_needed(half) - 2 <= most <= nodes_needed(half)


def test_single_precision_and_axes():
    """Tiles [level, tensor, lane] of tensors [tensor, lane]; nothing is promoted."""
    cases = [(12, 2, 3, 4), (8, 1, 2, 2), (6, 0, 3, 2), (12, 4, 5, 7)]
    nonzeros, tile = _inputs(cases, SMOOTH, np.float32)
    levels = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), tile)
    model, nodes = Banded(WIDEST), nodes_needed(WIDEST)

    def everything(nonzeros: Nonzeros, tile: Box) -> tuple[dict[str, Any], Seen]:
        whole = jax.tree.map(lambda leaf: leaf[None], tile)
        return _numpy(_answers(model, nonzeros, tile)), look(model, nonzeros, tile, nodes, whole)

    found, seen = everything(nonzeros, levels)
    assert seen.count.shape == seen.probability.shape == (nodes, 2, 1, 4)
    assert seen.part_empty.shape == (nodes, 1, 2, 1, 4) and all(leaf.dtype == np.float32 for leaf in seen)
    assert all(leaf.shape == (2, 1, 4) and leaf.dtype == np.float32 for leaf in jax.tree.leaves(found))
    for lane, case in enumerate(cases):
        side, half, height, width = (jnp.asarray(value, jnp.float32) for value in case)
        nonzeros = Nonzeros(side * side, jnp.ones_like(side), half, side, SMOOTH)
        alone = everything(nonzeros, Box(height * width, height, width))
        together = jax.tree.map(lambda leaf, lane=lane: leaf[..., 1, 0, lane], (found, seen))
        assert jax.tree.all(jax.tree.map(np.array_equal, alone, together))


@pytest.mark.parametrize("conventions", [TIMELOOP_2022, SMOOTH])
def test_probabilities_and_gradients_of_real_sizes(conventions: Conventions):
    draw, lanes = np.random.default_rng(0), len(_cases(divisors=False))
    side = draw.choice([1.0, 5.0, 8.0, 24.0], lanes)
    height, width = (np.clip(side ** draw.uniform(0, 1, lanes), 1.0, side) for _ in range(2))
    height[:5], width[5:10] = 0.0, 0.0
    half = np.minimum(draw.integers(0, WIDEST + 1, lanes), side - 1.0)
    side, half, height, width = (jnp.asarray(value)[None] for value in (side, half, height, width))
    model, one = Banded(WIDEST), jnp.ones_like(side)

    def inputs(height: Any, width: Any, half: Any) -> tuple[Nonzeros, Box]:
        return Nonzeros(side * side, one, half, side, conventions), Box(height * width, height, width)

    def total(height: Any, width: Any, half: Any) -> tuple[Any, list[Any]]:
        nonzeros, tile = inputs(height, width, half)
        empty = model.prob_empty(nonzeros, tile)
        within = model.prob_empty_within(nonzeros, tile, model.mean(nonzeros, tile)[None], Box(one, one, one))
        values = [empty, within]
        if not conventions.integer_counts:  # the rest is the same code in both
            values += [*model.least(nonzeros, tile), model.largest(nonzeros, tile)]
        return sum(jnp.sum(value) for value in values), values

    slopes = jax.jit(jax.grad(total, argnums=(0, 1, 2), has_aux=True), compiler_options=QUICK)
    gradients, values = slopes(height, width, half)
    chances = values[:2]
    if not conventions.integer_counts:  # those of the other add up to more than 1 in places (quirk Q15)
        seen = look(model, *inputs(height, width, half), nodes_needed(WIDEST))
        values, chances = [*values, seen.count], [*chances, seen.probability]
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((gradients, values)))
    assert all(np.all((value >= 0.0) & (value <= 1.0)) for value in chances)


def test_gradient_of_the_mean():
    """Words times the band's share of the matrix."""

    def mean(words, half):
        nonzeros = Nonzeros(jnp.asarray(64.0), jnp.asarray(1.0), half, jnp.asarray(8.0), SMOOTH)
        return Banded(WIDEST).mean(nonzeros, Box(words, words, jnp.asarray(1.0)))

    slopes = jax.grad(mean, argnums=(0, 1))(jnp.asarray(4.0), jnp.asarray(2.0))
    assert slopes[0] == pytest.approx((8 + 2 * 7 + 2 * 6) / 64)
    assert slopes[1] == pytest.approx(4 / 64 * (2 * 8 - 2 * 2 - 1))


def test_missing_extents_are_refused():
    nonzeros, tile = _inputs([(4, 1, 2, 2)], SMOOTH)
    with pytest.raises(ValueError, match="height and width"):
        Banded(1).prob_empty(nonzeros, Box(tile.words))
