"""How a number came about: `jaxloop evaluate ... --explain LEVEL.TENSOR`."""

from .subjects import Subject as Subject, explanation as explanation, find_subjects as find_subjects
