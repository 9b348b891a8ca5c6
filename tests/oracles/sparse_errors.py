"""Why the sparse oracle has no answer."""


class Refusal(Exception):
    """The reference refuses the design: the level's name and its words."""

    def __init__(self, level: str, reason: str):
        super().__init__(f"couldn't map level {level}: {reason}")


class Undefined(Exception):
    """The reference aborts or computes garbage, or the oracle does not model it: nothing to compare with."""
