"""Mappings to choose from, and ways to choose: the map space of a design, search, gradients."""

from .driver import Budget as Budget
from .objectives import Metric as Metric
from .result import Failures as Failures, SearchResult as SearchResult
from .search import search as search
from .space import Freedom as Freedom, MapSpace as MapSpace
from .tune import TuneResult as TuneResult, tune as tune
