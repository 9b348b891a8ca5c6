"""Tensors that pass through a level without being stored there (`stream` in a mapping, docs/model.md 23)."""

from dataclasses import replace

import numpy as np
import pytest

import jaxloop as jl
from jaxloop._errors import SpecError

ARCH = """
architecture:
  version: 0.3
  subtree:
  - name: chip
    local: [{name: Dram, class: DRAM, attributes: {word-bits: 16}}]
    subtree:
    - name: core
      local:
      - {name: Buffer, class: SRAM, attributes: {depth: 64, width: 16, word-bits: 16, instances: 1}}
      - {name: Spad, class: regfile, attributes: {depth: 64, width: 16, word-bits: 16, instances: 4, meshX: 4}}
      - {name: Mac, class: intmac, attributes: {instances: 4, meshX: 4}}
ERT:
  version: 0.3
  tables:
  - {name: chip.Dram, actions: [{name: read, energy: 100}, {name: write, energy: 100}, {name: update, energy: 100}]}
  - {name: chip.Buffer, actions: [{name: read, energy: 7}, {name: write, energy: 11}, {name: update, energy: 11}]}
  - {name: chip.Spad, actions: [{name: read, energy: 1}, {name: write, energy: 1}, {name: update, energy: 1}]}
  - {name: chip.Mac, actions: [{name: mac, energy: 1}]}
"""
PROBLEM = """
problem:
  shape:
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[N]], [[K]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance: {M: 8, N: 16, K: 4}
"""
MAPPING = """
mapping:
- {type: temporal, target: Dram, factors: M=2 N=2 K=1, permutation: KMN}
- {type: bypass, target: Buffer, keep: [B], bypass: [A, Z], stream: [STREAM]}
- {type: temporal, target: Buffer, factors: M=1 N=4 K=1, permutation: KMN}
- {type: spatial, target: Buffer, factors: M=2 N=2 K=1, permutation: KMN, split: 3}
- {type: temporal, target: Spad, factors: M=2 N=1 K=4, permutation: KMN}
"""
SPARSE = """
sparse_optimizations:
  targets:
  - name: Dram
    representation-format: {data-spaces: [{name: A, ranks: [{format: UOP}, {format: CP}]}]}
"""


def design(stream: str = "", sparse: str = "") -> jl.Design:
    texts = {"arch.yaml": ARCH, "prob.yaml": PROBLEM, "map.yaml": MAPPING.replace("STREAM", stream)}
    return jl.loads(texts | ({"sparse.yaml": sparse} if sparse else {}))


def test_words_that_pass_are_written_and_read_once():
    """Of two rows of Spads, each receives 2 x 4 words of A, kept while N advances in Buffer but not in Dram, where N
    lies outside M: 4 times 16 words in all, to the two Spads of a row at once."""
    without, streamed = (jl.evaluate(design(s), conventions=jl.MICRO22) for s in ("", "A"))
    assert streamed.reads[1].tolist()[:1] == [64] and streamed.fills[1].tolist()[:1] == [64]
    assert not without.reads[1, 0] and not without.fills[1, 0]
    assert streamed.energy_pj - without.energy_pj == 64 * (7 + 11)
    # nothing is stored, and no other count moves
    for name in ("tile_words", "updates", "cycles", "network_energy_pj", "record_accesses"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(without, name), err_msg=name)
    np.testing.assert_array_equal(streamed.reads[[0, 2]], without.reads[[0, 2]])
    assert streamed.reads[2, 0] == 64
    assert streamed.to_dict()["levels"][2]["keep"]["A"] == 0


def test_kept_tensors_do_not_pass():
    kept, streamed = (jl.evaluate(design(s), conventions=jl.MICRO22).to_dict() for s in ("", "B"))
    assert kept == streamed


def test_bandwidth_counts_words_that_pass():
    slow = jl.evaluate(design("A"), conventions=jl.MICRO22, hardware={"Buffer.write_bandwidth": 0.125})
    words = float(slow.fills[1].sum())
    assert slow.cycles == np.ceil(words / 0.125)


def test_the_public_program_ignores_it():
    streamed = jl.evaluate(design("A"))
    assert streamed.to_dict() == jl.evaluate(design()).to_dict()
    (warning,) = [w for w in streamed.warnings if "passes through" in str(w)]
    assert 'tensor "A" passes through level "Buffer": not counted' in str(warning)


@pytest.mark.parametrize("stream, sparse, what", [("Z", "", "an output"), ("A", SPARSE, "a tensor with a")])
def test_what_is_not_modeled_is_refused(stream: str, sparse: str, what: str):
    with pytest.raises(SpecError, match=f'`stream` of "{stream}" through level "Buffer": {what}'):
        jl.evaluate(design(stream, sparse), conventions=jl.MICRO22)


def test_in_a_batch():
    """Whether a tensor passes through is data."""
    own = jl.mapping_of(design())
    stream = np.zeros((2, *own.stream.shape))
    stream[1, 1, 0] = 1.0
    many = jl.evaluate(design(), mappings=replace(own, stream=stream), conventions=jl.MICRO22)
    assert many.energy_pj[1] - many.energy_pj[0] == 64 * (7 + 11)
    stream[1, 1, 2] = 1.0
    with pytest.raises(SpecError, match="an output"):
        jl.evaluate(design(), mappings=replace(own, stream=stream), conventions=jl.MICRO22)
