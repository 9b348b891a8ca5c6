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
    - `table_over_attributes`: an entry of the ERT wins over `vector-access-energy` in the architecture (quirk 10);
      off: the attribute wins, as in later releases.
    """

    integer_counts: bool = True
    whole_blocks: bool = True
    whole_cycles: bool = True
    second_index_motion: bool = True
    link_transfers: bool = True
    first_read_elision: bool = True
    output_network_round_trip: bool = True
    table_over_attributes: bool = True


TIMELOOP_2022 = Conventions()
"""The public program of August 2022, integer roundings and quirks included."""

MICRO22 = Conventions()
"""What the artifact of the MICRO'22 paper computed. Its dense model is that of `TIMELOOP_2022`."""

SMOOTH = Conventions(
    integer_counts=False,
    whole_blocks=False,
    whole_cycles=False,
    second_index_motion=False,
    link_transfers=False,
)
"""No rounding and the loops as they really run: the fast and differentiable reading."""

PRESETS = {"timeloop_2022": TIMELOOP_2022, "micro22": MICRO22, "smooth": SMOOTH}
