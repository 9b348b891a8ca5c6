"""Hand-written spec sets with the reference's stats files (docs/cases.md lists them)."""
