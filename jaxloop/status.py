"""Why a mapping is not valid."""

from enum import IntEnum, IntFlag


class Status(IntFlag):
    """Why a mapping is not valid; 0 when it is. Several bits may be set."""

    OK = 0
    OVER_CAPACITY = 1
    """A level's tiles exceed its effective size."""
    UNDER_UTILIZED = 2
    """A level's tiles are less than its minimum utilization."""
    OVER_INSTANCES = 4
    """More instances of a level (or of the compute units) are used than exist."""
    OVER_MESH_X = 8
    OVER_MESH_Y = 16
    NOT_STORED = 32
    """A tensor is bypassed at every level."""
    NOT_COVERING = 64
    """The product of a rank's factors differs from its size."""
    NEGATIVE_READS = 128
    """An output is read less often than its partition is first touched: the reference aborts here; reads are 0."""
    UNCOUNTED_LINKS = 256
    """The enumeration of a fan-out's children could not hold them, or the kinds of groups that they form, where links
    or irregular tensors need it: counts are those of the closed form, or lack some links."""
    OVER_METADATA_CAPACITY = 512
    """The metadata of a level's fullest tiles exceeds its metadata storage."""
    FORMATS_DO_NOT_FIT = 1024
    """A representation does not fit the mapping or its neighbors (`Evaluation.format_violation`)."""
    NO_SOURCE = 2048
    """The target of gating or skipping is stored neither at the level that does it nor further out."""
    OVER_FAN_OUT = 4096
    """Spatial skipping leaves more children of a level than there are."""
    MIXED_SAFS = 8192
    """A level leaves out children for a tensor and gates or skips its accesses too: the reference aborts."""
    UNEVEN_FIBERS = 16384
    """Spatial skipping would count elements that do not fill their fiber: the reference aborts."""


class FormatViolation(IntEnum):
    """What is wrong with the representation of a tensor at a level, in the order in which the reference tests."""

    NONE = 0
    NO_DECOMPRESSION = 1
    """The next outer level holds it compressed, this one does not and cannot decompress."""
    NO_COMPRESSION = 2
    """The same of an output on its way back."""
    RUNTIME_PARTITION = 3
    """The next outer level has fewer format ranks."""
    MISALIGNED = 4
    """The ranks of the next inner level are not the innermost ones of this level."""
    TOO_FEW_RANKS = 5
    """More loops than format ranks."""
    COMPRESSED_INSIDE = 6
    """It is compressed, but not at the next outer level."""


class Violation(IntEnum):
    """What is wrong with one level, at most one per level, in the order in which the reference tests."""

    NONE = 0
    CAPACITY = 1
    UTILIZATION = 2
    INSTANCES = 3
    MESH_X = 4
    MESH_Y = 5
    METADATA_CAPACITY = 6
    """Tested after the capacity for data."""
