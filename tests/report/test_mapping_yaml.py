"""Mapping files that are written are read back as the same nest."""

from dataclasses import replace

import pytest
import yaml

from jaxloop import LoopNest, loads
from jaxloop.report import mapping_text
from jaxloop.searches import MapSpace
from jaxloop.spec.mapping import Loop
from tests.frontend.base import TEXTS
from tests.searches.designs import design_of

BASE = {name: text for name, text in TEXTS.items() if name != "mapping.yaml"}
DESIGN = loads(BASE)


def read_back(text: str) -> LoopNest:
    design = loads(BASE | {"mapping.yaml": text})
    assert design.nest is not None and not [w for w in design.warnings if w.place.file == "mapping.yaml"]
    return design.nest


def test_members_of_a_space_come_back():
    space = MapSpace(DESIGN)
    for number in space.sample(0, 200):
        nest = space[int(number)]
        assert read_back(mapping_text(DESIGN, nest)) == nest


def test_the_mapping_of_the_files_comes_back():
    nest = loads(TEXTS).nest
    assert nest is not None
    assert read_back(mapping_text(DESIGN, nest)) == nest


def test_directives_come_back():
    space = MapSpace(DESIGN)
    spad, glb, main = space[space.size - 1].levels
    nest = LoopNest(
        (
            replace(spad, keep=("B",), stream=("A",), no_temporal_reuse=("B",)),
            replace(glb, no_link_transfer=("A",), no_multicast=("A", "Z")),
            main,
        )
    )
    assert read_back(mapping_text(DESIGN, nest)) == nest


def test_text():
    (spad, glb, main) = loads(TEXTS).nest.levels  # type: ignore[union-attr]
    wanted = {
        "mapping": [
            {"target": "Spad", "type": "datatype", "keep": ["A", "B"], "bypass": ["Z"]},
            {"target": "Glb", "type": "datatype", "keep": ["A", "B", "Z"], "bypass": []},
            {"target": "Main", "type": "datatype", "keep": ["A", "B", "Z"], "bypass": []},
            {"target": "Spad", "type": "temporal", "factors": "M=1 N=2 K=4", "permutation": "KNM"},
            {"target": "Glb", "type": "spatial", "factors": "M=4 N=1 K=1", "permutation": "MNK", "split": 1},
            {"target": "Glb", "type": "temporal", "factors": "M=2 N=2 K=2", "permutation": "KNM"},
            {"target": "Main", "type": "temporal", "factors": "M=1 N=2 K=2,1", "permutation": "KNM"},
        ]
    }
    imperfect = replace(main, temporal=(Loop("K", 2, 1), *main.temporal[1:]))
    assert yaml.safe_load(mapping_text(DESIGN, LoopNest((spad, glb, imperfect)))) == wanted


def test_what_no_file_can_say():
    nest = loads(TEXTS).nest
    assert nest is not None
    spad, glb, main = nest.levels
    with pytest.raises(ValueError, match='spatial loops at "Main", which has no fan-out'):
        mapping_text(DESIGN, LoopNest((spad, glb, replace(main, spatial_x=(Loop("M", 2, 2),)))))
    with pytest.raises(ValueError, match="the nest has the levels Spad, Glb, Main, the design L0, L1"):
        mapping_text(design_of({"M": 2}, [(1, 1)] * 3), nest)
