import io
from functools import cache

import numpy as np
import pytest
from rich.console import Console

import jaxloop
from jaxloop.report import print_table
from jaxloop.report.numbers import count_text
from tests.kernel.test_position_skipping import texts as compacted_texts
from tests.report.conftest import sparse_texts

DESIGNS = ("04", "06", "07", "08", "6 hierarchical", "advanced-1-60")


def _lines(evaluation, width: int) -> list[str]:
    screen = io.StringIO()
    print_table(evaluation, Console(file=screen, width=width))
    return screen.getvalue().splitlines()


def _rows(evaluation, width: int = 160) -> list[list[str]]:
    return [line.split() for line in _lines(evaluation, width)]


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("name", DESIGNS)
def test_fits_the_screen_and_loses_no_digit(name, width, sparse):
    evaluation = sparse(name)
    lines = _lines(evaluation, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    shown = {word for line in lines for word in line.split()}
    kept = evaluation.context.mapping.keep.astype(bool)
    for values in (*evaluation.accesses.reshape(-1, *kept.shape), evaluation.tile_words, evaluation.stored_words):
        assert {count_text(value) for value in values[kept] if value} <= shown
    assert {count_text(count) for count in evaluation.computes_by_fate} <= shown


def test_accesses_by_what_becomes_of_them(sparse):
    rows = _rows(sparse("06"))
    assert ["Local", "A", "reads", "12,288", "1,233", "-", "1,840", "9,215", "9,864", "-", "14,720"] in rows
    assert ["fills", "512", "129", "-", "-", "383", "1,032", "-", "-"] in rows
    assert ["Acc", "Z", "reads", "11,904", "1,193", "-", "10,711", "-"] in rows
    gated = _rows(sparse("07"))
    assert ["B", "reads", "1,024", "296", "728", "-", "-"] in gated


def test_operations(sparse):
    rows = _rows(sparse("07"))
    assert ["MAC", "2,048", "444", "148", "0", "1,456"] in rows
    assert " ".join(["100.0 %", "21.7 %", "7.2 %", "0.0 %", "71.1 %"]).split() in rows
    assert any(row[-3:] == ["actual", "computes", "444"] for row in rows)


def test_tiles_expected_and_at_most_against_the_capacity(sparse):
    rows = _rows(sparse("06"))
    first = rows.index(["Local", "A", "32", "8.001", "32", "0.0", "64", "256", "1.00", "3.199"])
    assert rows[first + 1] == ["B", "768", "308", "308", "-", "2,696", "2,696", "1.00", "4.450"]
    assert rows[first + 2] == ["capacity", "of", "1,024", "of", "8,192", "of", "1"]
    levels = next(row for row in rows if row[:1] == ["Local"])
    assert levels[4:6] == ["33.2", "36.0"]


def test_average_instances(sparse):
    """One in eight tiles of `A` is empty, so that an eighth of the two instances has none."""
    rows = _rows(sparse("07"))
    assert ["R", "A", "16", "4.857", "5", "12.5", "1.75", "0.214"] in rows


def test_narrow_screens_get_more_tables_not_fewer_numbers(sparse):
    evaluation = sparse("06")
    wide, narrow = (_rows(evaluation, width) for width in (160, 80))
    assert len(narrow) > len(wide)
    assert ["level", "tensor", "instances", "energy"] in narrow and [
        "level",
        "tensor",
        "instances",
        "energy",
    ] not in wide
    assert ["Local", "A", "1.00", "3.199"] in narrow
    # a table about metadata leaves out rows without any
    bits = narrow.index(["level", "tensor", "actual", "gated", "skipped"])
    assert ["Local", "A", "reads", "9,864", "-", "14,720"] in narrow[bits:]
    assert not any("Z" in row for row in narrow[bits:])


@cache
def _changed(name: str, old: str, new: str) -> jaxloop.Evaluation:
    texts = sparse_texts(name)
    assert any(old in text for text in texts.values())
    return jaxloop.evaluate(jaxloop.loads({file: text.replace(old, new) for file, text in texts.items()}))


def test_too_much_metadata():
    evaluation = _changed("06", "metadata_storage_depth: 1024", "metadata_storage_depth: 100")
    lines = _lines(evaluation, 100)
    assert "INVALID mapping" in lines[0]
    assert "metadata tile size 2952 exceeds metadata buffer capacity 800" in " ".join(lines[1].split())
    level = next(line.split() for line in lines if line.startswith("Local"))
    assert level[5] == "369.0"
    assert any(line.split() == ["capacity", "of", "1,024", "of", "800", "of", "1"] for line in lines)


def test_bandwidth_counts_metadata_and_no_skipped_words():
    """Local reads 1,233 words of A and of B, and 1,233 words of metadata of A and 100 + 1,248 of B."""
    slow = _changed("06", "block_size: 1,", "block_size: 1, read_bandwidth: 2,")
    words = 1233 + 1233 + 1233 + 100 + 1248
    assert float(slow.slowdown[1]) == pytest.approx(2 / (words / 1232))
    note = f"* Local reads {words / 1232:.4g} words/cycle per instance at full speed, its bandwidth is 2"
    assert note in _lines(slow, 120)


def test_says_what_the_words_mean(sparse):
    text = " ".join(_lines(sparse("06"), 160))
    assert "Eliminated: zeros that a compressed tensor does not store" in text
    assert "Empty: tiles without nonzeros" in text


def test_energies_of_tensors_sum_to_those_of_the_levels(sparse):
    evaluation = sparse("06")
    rows = _rows(evaluation)
    scale = 1000.0
    shown = sum(float(row[-1]) for row in rows if row[-2:-1] == ["1.00"])
    assert shown == pytest.approx(float(np.sum(evaluation.energy_pj_by_tensor)) / scale, abs=0.004)


def test_position_skipping_is_noted():
    densities = {"A": "fixed-structured 0.25", "B": "fixed-structured 0.75"}
    evaluation = jaxloop.evaluate(jaxloop.loads(compacted_texts(densities)), conventions=jaxloop.MICRO22)
    assert ["Buffer", "A", "reads", "128", "32", "-", "-", "96"] in [row[:8] for row in _rows(evaluation)]
    assert "Position skipping of A and B at Buffer: reads of steps left out are" in "\n".join(_lines(evaluation, 80))
