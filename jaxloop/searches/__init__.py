"""Mappings to choose from: the map space of a design, and ways to pick from it."""

from .space import Freedom as Freedom, MapSpace as MapSpace
