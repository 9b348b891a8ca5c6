"""Batches: chunks of lanes through the compiled kernel, and the enumeration of links where it matters."""

from .batch import evaluate_lanes as evaluate_lanes, evaluate_one as evaluate_one
