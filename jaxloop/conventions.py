"""Which reading of the model is computed: named switches and their presets (design.md section 4).

Code tests a switch, never a preset's name.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conventions:
    """The switches of the model. Frozen and hashable: they are part of the compile key.

    **Attributes:**

    - `integer_counts`: reads and updates are rounded to nearest, fills and router passes are truncated after each
      record, partitions and effective capacities are floored (spec/dense.md 5.1, 5.6, 9.4). Off: exact real values.
    - `whole_blocks`: each action count is rounded up to whole vector accesses (7.3). Off: fractional blocks.
    - `whole_cycles`: a level's cycles are rounded up (7.4).
    - `second_index_motion`: an outer loop's step is taken to start from the second iteration of the loops inside it,
      as the reference extrapolates (4.1, quirk 2). Off: from their last iteration, as the loops really run.
    - `link_transfers`: words already held by a neighbour travel over links (4.6).
    - `first_read_elision`: the first update of an output word needs no read (5.6).
    - `output_network_round_trip`: an output below a level that cannot reduce in place crosses the network twice, less
      one partition per multicast record (9.4, quirk 7).
    - `streams`: the mapping key `stream` counts (docs/model.md 23). Off: it is ignored, as in the public program.
    - `table_over_attributes`: an entry of the ERT wins over `vector-access-energy` in the architecture (quirk 10);
      off: the attribute wins, as in later releases.
    - `soft_maximum`: where the model takes a maximum over levels or bandwidths, the norm of this exponent is taken: a
      smooth upper bound, for gradients (above 1). 0, as in all presets: the maximum itself.

    Of the sparse model (sections and quirks of spec/sparse.md); `integer_counts` also rounds the number of nonzeros up
    (1.4) and floors what gating, skipping and compression remove (3.6, 3.7, 4):

    - `occupancy_sums`: expected metadata is a sum over the occupancies of a tile (2.6). Off: the tower rule, in which
      the occupancy does not appear.
    - `whole_coordinates`: CP rounds the mean number of nonempty elements of a fiber up and takes it for every nonempty
      fiber (2.1, Q5). Off: every nonempty element once. `whole_payloads`: the same for the payload of B.
    - `run_length_fibers`: RLE multiplies the share of nonempty fibers with a mean that already contains it (Q5).
    - `recorded_dummy_tiles`: a format rank without loops has the tile of the innermost loop or of one element (2.4,
      Q10). Off: that of the next inner rank.
    - `least_occupancy_is_empty`: below a level with metadata, the least occupancy of a tile counts as empty even if it
      is not (Q2, Q14). Off: only tiles without nonzeros do.
    - `partial_blocks`: a compressed tile that does not fill its blocks takes more vector accesses than its words need
      (5.3). Off: it does not, as in the artifact, whose answers for blocks of 2 to 64 words show none.
    - `unconditional_blocks`: the vector accesses of a compressed tile count its chance to be empty although the tile
      is known to hold something (Q18).
    - `sequential_leader_scale`: the shrinking of a leader tile along one rank carries over to the next (3.2 step 5c).
    - `merged_scalar_leaders`: where one operation lies below each access of a target, fan-outs further out add to the
      leader tile, as if one access served all of them (3.2). Off: the leader is one element.
    - `dropped_conditions`: a leader that moves with a fan-out of the target and again further out is no condition at
      all (3.2 step 5a). Off: it is.
    - `update_counts_for_metadata_reads`: where two levels gate or skip one tensor, the inner one's metadata reads are
      its metadata updates (Q3).
    - `one_rank_thinning`: outer gating or skipping removes metadata accesses of inner levels only at the innermost
      format rank, and only if the outer level has one (3.7, Q4). Off: at all ranks.
    - `six_decimal_densities`, `six_decimal_safs`: the analysis of operands rounds densities and the chances of
      gating and skipping to six decimals (4).
    - `clamped_states`: chances of operand states are kept in [0, 1]. `double_sided_complement`: if both operands gate
      or skip, all pairs that are not both nonzero count as removed (8.1).
    - `whole_average_units`: the average number of compute units is truncated to an integer (Q20).
    - `spatial_shares_alone`: with spatial skipping, the average number of instances does not count empty tiles, and
      what a directive leaves of it only reaches further in if it narrows the fan-out (3.5). Off: the smaller average
      counts, and a directive always reaches further in.
    - `compressions_of_one_parent`: a level compresses as many words as one instance of the next outer level receives
      (3.8). Off: its own instances share them.
    - `sparse_words_with_metadata`: a tensor with metadata is held to be compressed when capacities are checked (Q12).
    """

    integer_counts: bool = True
    whole_blocks: bool = True
    whole_cycles: bool = True
    second_index_motion: bool = True
    link_transfers: bool = True
    first_read_elision: bool = True
    output_network_round_trip: bool = True
    streams: bool = False
    table_over_attributes: bool = True
    soft_maximum: float = 0.0
    occupancy_sums: bool = True
    whole_coordinates: bool = True
    whole_payloads: bool = True
    run_length_fibers: bool = True
    recorded_dummy_tiles: bool = True
    least_occupancy_is_empty: bool = True
    partial_blocks: bool = True
    unconditional_blocks: bool = True
    sequential_leader_scale: bool = True
    merged_scalar_leaders: bool = True
    dropped_conditions: bool = True
    update_counts_for_metadata_reads: bool = True
    one_rank_thinning: bool = True
    six_decimal_densities: bool = True
    six_decimal_safs: bool = True
    clamped_states: bool = True
    double_sided_complement: bool = False
    whole_average_units: bool = True
    spatial_shares_alone: bool = True
    compressions_of_one_parent: bool = True
    sparse_words_with_metadata: bool = True

    def __post_init__(self) -> None:
        if self.soft_maximum and not self.soft_maximum > 1.0:
            raise ValueError(f"soft_maximum {self.soft_maximum:g} is no exponent of a norm: give 0, or more than 1")


TIMELOOP_2022 = Conventions()
"""The public program of August 2022, integer roundings and quirks included."""

MICRO22 = Conventions(
    streams=True,
    run_length_fibers=False,
    whole_coordinates=False,
    recorded_dummy_tiles=False,
    least_occupancy_is_empty=False,
    partial_blocks=False,
    six_decimal_safs=False,
    clamped_states=False,
    double_sided_complement=True,
    whole_average_units=False,
)
"""What the artifact of the MICRO'22 paper computed (spec/sparse.md 8.1). Its dense model is that of `TIMELOOP_2022` and
`streams`."""

SMOOTH = Conventions(
    streams=True,
    integer_counts=False,
    whole_blocks=False,
    whole_cycles=False,
    second_index_motion=False,
    link_transfers=False,
    occupancy_sums=False,
    whole_coordinates=False,
    whole_payloads=False,
    run_length_fibers=False,
    recorded_dummy_tiles=False,
    least_occupancy_is_empty=False,
    partial_blocks=False,
    unconditional_blocks=False,
    sequential_leader_scale=False,
    merged_scalar_leaders=False,
    dropped_conditions=False,
    update_counts_for_metadata_reads=False,
    one_rank_thinning=False,
    six_decimal_densities=False,
    six_decimal_safs=False,
    whole_average_units=False,
    spatial_shares_alone=False,
    compressions_of_one_parent=False,
    sparse_words_with_metadata=False,
)
"""No rounding, the loops as they really run, exact expectations: the fast and differentiable reading."""

PRESETS = {"timeloop_2022": TIMELOOP_2022, "micro22": MICRO22, "smooth": SMOOTH}
