"""What is made of an `Evaluation`: a table on the screen, a Timeloop-style stats file, explanations."""

from .explain import Subject as Subject, explanation as explanation, find_subjects as find_subjects
from .figures import render as render
from .files import write_atomically as write_atomically
from .mapping_yaml import mapping_text as mapping_text
from .stats import stats_text as stats_text
from .sweep_plots import plots_of as plots_of, write_plots as write_plots
from .table import print_table as print_table, table as table
