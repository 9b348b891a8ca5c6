"""What is right for each case: numbers or a refusal. The inputs and the reference's answers are in `cases.jsonl.gz`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """The reference's own numbers, every count and every energy."""

    note: str = ""


@dataclass(frozen=True)
class Accepted:
    """Numbers where the reference refuses, aborts or overlooks a key."""

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
SPELLINGS = "both spellings are read"
OVERLOOKED = "both spellings are read; the reference overlooks the keys and evaluates a dense design"
PERCENT = "not from 0 to 1 .*not a percentage"
FANOUT = Refused("Spad: Required fanoutX 8 does not meet hardware constraint 4", BOTH)
IMPERFECT = Refused("imperfect factor .* is not modeled yet", "imperfect factors are not modeled yet")


def _product(rank: str, product: int, size: int) -> str:
    return f"product of all factors of dimension {rank} is {product}, .* dimension size of the workload {size} "


CASES = {
    "c00-dense-base": Case("three levels, four compute units; per-scalar energies, first touch of outputs", SAME),
    "c00-sparse-modules-noopt": Case("densities, but no sparse optimizations", SAME),
    # --- format ranks
    "c01-enough-ranks": Case("as many format ranks as loops", SAME),
    "c01-extra-ranks-inner": Case("more format ranks than loops, from the innermost loop outward", SAME),
    "c01-extra-ranks-outer": Case("more format ranks than loops, from the outermost loop inward", SAME),
    "c01-few-ranks-all": Case(
        "fewer format ranks than loops",
        Refused("Glb: more compression ranks needed than supported in hardware.*: A", BOTH),
    ),
    # --- gating and skipping
    "c02-gate-and-skip-same": Case(
        "gating and skipping of one tensor at one level",
        SAME,
        warns='"Spad" both gates and skips tensor "B": skipping comes first',
    ),
    "c02-gate-at-Main": Case("gating at the outermost level: hardly any tile is empty", SAME),
    "c02-gate-compute": Case("gating at the compute units: same time, less energy", SAME),
    "c02-gate-plus-skip-compute": Case("skipping at the innermost level leaves nothing to gate", SAME),
    "c02-mutual-skip": Case("skipping both inputs: their densities multiply", SAME),
    "c02-skip-B-on-A": Case("skipping one input", SAME),
    "c02-skip-Z-on-AB": Case("skipping the output: less energy, same time", SAME),
    "c02-skip-at-Glb": Case("skipping whole tiles further out: hardly any is empty", SAME),
    "c02-skip-compute": Case("skipping at the compute units without metadata: nothing to skip", SAME),
    "c02-skip-options": Case("skipping as a list of options", SAME),
    "c03-empty-condition": Case(
        "empty condition-on", Refused('`condition-on` of target "B" at level "Spad" is empty', CRASH)
    ),
    "c03-position-skipping": Case(
        "position-skipping, known from the paper's artifact, beside an output",
        Refused('position skipping at level "Spad" beside output "Z" is not modeled', CRASH),
    ),
    "c03-scalar-condition": Case(
        "condition-on without brackets", Accepted(128, "12.06", "one name is a list of one; the reference refuses")
    ),
    "c03-self-condition": Case("a tensor conditioned on itself", Refused('"A" is conditioned on itself', CRASH)),
    "c03-unknown-level": Case(
        "a level that does not exist", Refused('unknown level "Buffer".*valid: Spad, Glb, Main, Mac', BOTH)
    ),
    "c03-unknown-tensor": Case("a tensor that does not exist", Refused('unknown tensor "W".*valid: A, B, Z', CRASH)),
    "c03-unknown-type": Case("misspelled action type", Refused('type "skip" .*did you mean "skipping"', CRASH)),
    # --- spellings
    "c04-data-spaces-underscore": Case("data_spaces", Accepted(256, "12.78", SPELLINGS)),
    "c04-flattened-hyphen": Case("flattened-rankIDs", SAME),
    "c04-flattened-matters-hyphen": Case(
        "flattened-rankIDs with too few ranks", Refused("Glb: more compression ranks needed .*: A", BOTH)
    ),
    "c04-flattened-matters-underscore": Case(
        "flattened_rankIDs with too few ranks", Refused("Glb: more compression ranks needed .*: A", BOTH)
    ),
    "c04-flattened-underscore": Case("flattened_rankIDs", SAME),
    "c04-sparse-optimizations-hyphen": Case("sparse-optimizations", Accepted(64, "11.70", OVERLOOKED)),
    "c04-target-key-v04": Case("a target named as in version 0.4", Accepted(64, "11.70", SPELLINGS)),
    "c04-underscore-keys": Case("action_optimization, condition_on", Accepted(64, "11.70", OVERLOOKED)),
    # --- formats
    "c05-fmt-B": Case("bitmask", SAME),
    "c05-fmt-CP": Case("coordinates", SAME),
    "c05-fmt-RLE": Case("run lengths", SAME),
    "c05-fmt-UB": Case("uncompressed bitmask", SAME),
    "c05-fmt-lower": Case("formats in lower case", SAME),
    "c05-fmt-unknown": Case(
        "a format called CSR",
        Refused('unknown rank format "CSR".*CSR is UOP then CP', "both refuse; ours says how to write it"),
    ),
    "c05-format-on-bypassed": Case(
        "a format where the tensor is bypassed",
        SAME,
        warns='format of tensor "A" at level "Spad" has no effect: the mapping bypass',
    ),
    "c05-format-on-bypassed-control": Case("the same without that format", SAME),
    "c05-md-bits-0": Case("metadata words of 0 bits", SAME),
    "c05-md-bits-3": Case("metadata words of 3 bits", SAME, warns="metadata-word-bits 3 are raised to 4"),
    "c05-md-bits-32": Case(
        "metadata words wider than a row",
        Refused('metadata-word-bits 32 of CP do not fit level "Glb": its metadata row has 16 bits', BOTH),
    ),
    "c05-md-overflow": Case(
        "metadata that does not fit",
        Refused(
            r"Glb: mapped metadata tile size 61 exceeds metadata buffer capacity 16 \(bits: A 61\)",
            "both refuse; ours lists the bits per tensor",
        ),
    ),
    "c05-no-md-depth": Case("no metadata_storage_depth", SAME),
    "c05-no-md-store": Case("no metadata storage", SAME),
    "c05-no-ranks": Case(
        "a format without ranks",
        Refused('format of tensor "A" at level "Spad" has no `ranks`', "both refuse; ours says what is missing"),
    ),
    "c05-order-bad": Case(
        "inner_to_outer, compressed further in only",
        Refused(
            "Spad: compressed, but not at the next outer level.*: A",
            "the underscore is read; the reference aborts on a compressed level inside an uncompressed one",
        ),
    ),
    "c05-order-effect-inner": Case("ranks applied from the innermost loop outward", SAME),
    "c05-order-effect-outer": Case("ranks applied from the outermost loop inward", SAME),
    "c05-outer-compressed": Case(
        "compressed rank above an uncompressed one",
        Refused(r"rank 0 \(CP, .*compressed above the uncompressed rank 1 \(UOP\)", BOTH),
    ),
    # --- densities
    "c06-actual-data": Case(
        "densities from data",
        Refused('tensor "A" has no `data_file_path`', "both refuse; ours says the remedy"),
    ),
    "c06-commonDensity": Case("one density for all tensors", SAME),
    "c06-density-gt1": Case("density 1.5", Refused(f'1.5 of tensor "A" is {PERCENT}', CRASH)),
    "c06-density-gt1-fs": Case("fixed-structured density 1.5", Refused(f'1.5 of tensor "A" is {PERCENT}', CRASH)),
    "c06-density-neg": Case("density -0.1", Refused(f'-0.1 of tensor "A" is {PERCENT}', CRASH)),
    "c06-density-percent": Case("density 25", Refused(f'25 of tensor "A" is {PERCENT}', CRASH)),
    "c06-density-scalar": Case("a density as one number", SAME),
    "c06-density-str": Case("density 25%", Refused('"25%" is not a number .*tensor "A" from 0 to 1', CRASH)),
    "c06-dist-missing": Case("no distribution", Refused('density of tensor "A" has no `distribution`', CRASH)),
    "c06-dist-underscore": Case("fixed_structured", Accepted(64, "11.70", SPELLINGS)),
    "c06-dist-unknown": Case(
        "a distribution that does not exist", Refused('unknown distribution "uniform".*valid: fixed_structured', BOTH)
    ),
    "c06-fs-not-integral": Case("308 of 1024 operations", SAME),
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
    "c12-bw-gate-main": Case("bandwidth and gating", SAME),
    "c12-bw-sparse": Case("bandwidth and skipping", SAME),
    "c12-bw-throttle": Case("read bandwidth that throttles", SAME),
    "c12-bw-zero": Case(
        "read bandwidth 0", Refused('"0" is not a number above 0', "the reference takes 0 as unlimited")
    ),
    "c12-shared-bw": Case("shared bandwidth that throttles", SAME),
    # --- convolutions
    "c13-conv-s1": Case("stride 1: tiles with halo", SAME),
    "c13-conv-s2": Case("stride 2", SAME),
    "c13-conv-s2-sparse": Case("stride 2, skipping", SAME),
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
    # --- special patterns
    "c17-banded": Case("band matrix", SAME),
    "c17-fs-24": Case("2:4 structured", SAME),
    "c17-spatial-skip": Case("spatial skipping that saves no unit", FANOUT),
    "c17-spatial-skip-fmt": Case("spatial skipping of a compressed tensor that saves no unit", FANOUT),
    # --- networks
    "c18-multicast-B": Case("wire energy of the table", SAME),
    "c18-network-bw": Case("fill latency of a network", SAME),
    "c18-no-link": Case("no link transfers", SAME),
    "c18-no-multicast": Case("no multicast of a tensor", SAME),
    "c18-no-temporal-reuse": Case("no temporal reuse of a tensor", SAME),
    "c18-wire": Case("wire energy", SAME),
    # --- problems
    "c19-four-operands": Case(
        "three inputs and sparse optimizations",
        Refused(r"need 2 tensors that are only read; this problem has 3 \(A, B, Cc\)", CRASH),
    ),
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
