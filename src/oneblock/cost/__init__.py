"""What a model costs, in closed form from its spec: nothing is built, no tensor library is needed."""

from oneblock.cost.bound import Bound, bound
from oneblock.cost.cache import CacheBytes, cache_bytes
from oneblock.cost.count import active, distinct, parameters
from oneblock.cost.crossover import Crossover, crossovers
from oneblock.cost.job import Job
from oneblock.cost.machines import MACHINES, Machine, machine
from oneblock.cost.parts import Part, parts
from oneblock.cost.terms import COLUMNS, HELD, Column, Line, Term
from oneblock.cost.whole import Cost, cost

__all__ = [
    "COLUMNS",
    "HELD",
    "MACHINES",
    "Bound",
    "CacheBytes",
    "Column",
    "Cost",
    "Crossover",
    "Job",
    "Line",
    "Machine",
    "Part",
    "Term",
    "active",
    "bound",
    "cache_bytes",
    "cost",
    "crossovers",
    "distinct",
    "machine",
    "parameters",
    "parts",
]
