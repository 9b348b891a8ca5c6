"""What is right for each case: numbers or a refusal. The inputs and the reference's answers are in `cases.jsonl.gz`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """The reference's own numbers, every count and every energy."""

    note: str = ""


@dataclass(frozen=True)
class Accepted:
    """Numbers where the reference refuses or aborts."""

    cycles: int
    pj_per_compute: str
    note: str


@dataclass(frozen=True)
class Refused:
    """An error or an invalid mapping; `message` is a regular expression on its text."""

    message: str
    note: str


@dataclass(frozen=True)
class Case:
    """`warns`: a regular expression on one of the warnings; empty if there must be none."""

    exercises: str
    right: Reference | Accepted | Refused
    warns: str = ""


SAME = Reference()
BOTH = "both refuse"
CRASH = "a message where the reference aborts"
SPARSE = Refused("sparse acceleration features .* not evaluated yet", "sparse designs are not evaluated yet")
IMPERFECT = Refused("imperfect factor .* is not modeled yet", "imperfect factors are not modeled yet")


def _product(rank: str, product: int, size: int) -> str:
    return f"product of all factors of dimension {rank} is {product}, .* dimension size of the workload {size} "


CASES = {
    "c00-dense-base": Case("three levels, four compute units; per-scalar energies, first touch of outputs", SAME),
    "c00-sparse-modules-noopt": Case("densities, but no sparse optimizations", SAME),
    # --- mappings
    "c08-comma-factors": Case("factors with commas", SAME),
    "c08-dup-directive": Case(
        "two temporal directives for a level",
        Refused('second temporal directive for level "Spad".*zero-size', "both refuse; ours names the two lines"),
    ),
    "c08-factor-zero": Case(
        "factor 0 beside other factors", Refused(_product("K", 128, 16) + ".*factor 0 stands for the full size", BOTH)
    ),
    "c08-imperfect": Case("last factor that does not fit", Refused(_product("N", 6, 7), BOTH)),
    "c08-imperfect-ok": Case("imperfect factor N=4,3", IMPERFECT),
    "c08-level-missing": Case("a level without directive", SAME, warns='"Spad" has no temporal directive'),
    "c08-list-factors": Case("factors as a list", Accepted(256, "12.78", "a list is read")),
    "c08-missing-dim": Case("a rank missing in factors and permutation", SAME, warns='"Spad" has no factor for M'),
    "c08-nospace-equals": Case("factors as M1 N2", SAME),
    "c08-null-permutation": Case("permutation without value", SAME, warns="leaves out M N K"),
    "c08-perm-dup": Case(
        "a letter twice in a permutation", Refused('permutation names "K" twice', "both refuse; ours names the letter")
    ),
    "c08-product-mismatch": Case("factors below the rank's size", Refused(_product("K", 8, 16), BOTH)),
    "c08-product-over": Case("factors above the rank's size", Refused(_product("K", 32, 16), BOTH)),
    "c08-semicolon-perm-list": Case("permutation with blanks", SAME),
    "c08-short-permutation": Case("permutation leaves out a rank", SAME, warns="leaves out M: appended outermost"),
    "c08-unknown-dim": Case("a rank that does not exist", Refused('unknown dimension "Q".*valid: M, N, K', BOTH)),
    # --- bypass
    "c09-all-bypass-A": Case(
        "a tensor kept nowhere",
        Refused("tensor A is bypassed at every storage level", "both refuse; ours names the tensor"),
    ),
    "c09-keep-and-bypass": Case(
        "a tensor both kept and bypassed",
        Refused('"A" is both kept and bypassed at level "Spad"', "a contradiction; the reference bypasses in silence"),
    ),
    "c09-main-bypass-A": Case("input bypasses the outermost level", SAME),
    "c09-main-bypass-Z": Case("output bypasses the outermost level", SAME),
    "c09-main-bypass-Z-glb-only": Case("output kept by the middle level only", SAME),
    "c09-spad-bypass-all": Case("all tensors bypass the innermost level", SAME),
    "c09-typo-keep": Case("misspelled tensor in keep", Refused('unknown tensor "Ouptus".*valid: A, B, Z', CRASH)),
    # --- fan-out
    "c10-fanout-over": Case(
        "more units mapped than exist", Refused("level Mac: mapped max Arithmetic instances 8 exceeds .* 4", BOTH)
    ),
    "c10-no-split": Case("spatial directive without split", SAME),
    "c10-split-y": Case(
        "split puts the loops on the wrong axis", Refused("Mac: mapped max Arithmetic Y expansion 4 exceeds .* 1", BOTH)
    ),
    "c10-under-util": Case("half of the units used", SAME),
    # --- capacity
    "c11-capacity": Case(
        "tiles exceed a level",
        Refused(
            r"Spad: mapped tile size 14 exceeds buffer capacity 8 \(words: A 4, B 8, Z 2\)",
            "both refuse; ours lists the words per tensor",
        ),
    ),
    "c11-capacity-exact": Case("tiles fit exactly", SAME),
    "c11-multiple-buffering": Case(
        "double buffering halves the capacity", Refused("tile size 14 exceeds buffer capacity 7 ", BOTH)
    ),
    "c11-no-size": Case("SRAM without size", Refused('level "Glb" has no size .*only .* DRAM may be unlimited', CRASH)),
    "c11-sizeKB-1638400": Case("DRAM of 1.6 GB", SAME),
    "c11-sizeKB-big": Case("DRAM of 4 GiB", Accepted(256, "12.78", "64-bit sizes; the reference overflows to 0")),
    "c11-width-mismatch": Case("width of two blocks: clusters of 2", SAME),
    "c11-zero-entries-bypassed": Case("level of size 0 that keeps nothing", SAME),
    # --- bandwidth
    "c12-bw-deprecated": Case("old key bandwidth", SAME, warns="`bandwidth` is deprecated .* 2 words per cycle each"),
    "c12-bw-gate-main": Case("bandwidth and gating", SPARSE),
    "c12-bw-sparse": Case("bandwidth and skipping", SPARSE),
    "c12-bw-throttle": Case("read bandwidth that throttles", SAME),
    "c12-bw-zero": Case(
        "read bandwidth 0", Refused('"0" is not a number above 0', "the reference takes 0 as unlimited")
    ),
    "c12-shared-bw": Case("shared bandwidth that throttles", SAME),
    # --- convolutions
    "c13-conv-s1": Case("stride 1: tiles with halo", SAME),
    "c13-conv-s2": Case("stride 2", SAME),
    "c13-conv-s2-sparse": Case("stride 2, skipping", SPARSE),
    "c13-conv-s3-d2": Case("stride 3, dilation 2", SAME),
    "c13-conv-s4": Case("stride 4", SAME),
    "c13-depthwise": Case("depthwise convolution", SAME),
    "c13-reuse-P-inner": Case("window: P inside R at one level, 24 input reads", SAME),
    "c13-reuse-R-in-Glb": Case("window: R one level further in, 10 input reads", SAME),
    "c13-reuse-R-inner": Case("window: R inside P at one level, 24 input reads", SAME),
    # --- energy tables
    "c14-ert-args-max": Case("several argument rows: the dearest counts", SAME),
    "c14-ert-missing-action": Case("no read energy", SAME, warns='prices no read of "Spad": using the built-in'),
    "c14-ert-missing-level": Case("a level without table", SAME, warns='"Glb": using the built-in 4 pJ'),
    "c14-ert-name-range-differs": Case("table with another instance range", SAME),
    "c14-ert-read-only": Case("read energy only", SAME, warns='prices no fill, update of "Spad": using the built-in'),
    "c14-ert-v02": Case("energy table of version 0.2", SAME),
    "c14-ert-version": Case("energy table of version 0.4", Accepted(256, "12.78", "read like version 0.3")),
    "c14-no-ert": Case(
        "no energy table at all",
        Accepted(256, "47.41", "the built-in figures, each with a warning; no other program is called"),
        warns='"Main": using the built-in 800 pJ',
    ),
    "c14-vector-access-energy": Case("attribute against table", Reference("the table wins, as in 2022 (a switch)")),
    # --- architecture files
    "c15-arch-no-version": Case(
        "architecture without version",
        Refused("architecture's version is missing .*version: 0.3", "both refuse; ours says what is missing"),
    ),
    "c15-arch-version-04": Case(
        "version 0.4", Refused('"version: 0.4" marks the v0.4 dialect, which is not read yet', BOTH)
    ),
    "c15-arch-version-str": Case("version in quotes", SAME),
    "c15-bitwidth-attr-hyphen": Case(
        "word_bits and block_size with underscores", Accepted(256, "12.78", "both spellings are read")
    ),
    "c15-dup-problem": Case(
        "two problems in two files",
        Refused('top-level key "problem" was already given at prob.yaml:1', "the reference uses the first in silence"),
    ),
    "c15-instances-mismatch": Case(
        "counts of instances that do not divide",
        Refused('"Mac" has 6 instances .*"Spad" has 4 .*4 does not divide 6', CRASH),
    ),
    "c15-range-in-parent": Case("instance range at the parent", SAME),
    "c15-unknown-attr": Case("misspelled attribute", SAME, warns='"read_bandwith".*did you mean "read_bandwidth"'),
    # --- networks
    "c18-multicast-B": Case("wire energy of the table", SAME),
    "c18-network-bw": Case("fill latency of a network", SAME),
    "c18-no-link": Case("no link transfers", SAME),
    "c18-no-multicast": Case("no multicast of a tensor", SAME),
    "c18-no-temporal-reuse": Case("no temporal reuse of a tensor", SAME),
    "c18-wire": Case("wire energy", SAME),
    # --- problems
    "c19-four-operands": Case("three inputs and sparse optimizations", SPARSE),
    "c19-instance-missing-dim": Case(
        "size of a rank missing", Refused('size of dimension "N" is missing .*add `N:`', CRASH)
    ),
    "c19-no-read-write": Case(
        "no tensor is written",
        Refused("no tensor is written .*read-write: true", "the reference counts no accumulation: too cheap"),
    ),
    "c19-read-write-str": Case("read-write: 'yes'", SAME),
    "c19-unknown-shape-name": Case(
        "a shape that does not exist",
        Refused('no problem shape "my-own-shape" .*TIMELOOP_PROBLEM_SHAPE_DIRS', BOTH),
    ),
}
