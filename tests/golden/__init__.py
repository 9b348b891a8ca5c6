"""Golden cases: specs of our own with the answers of the reference program (tests/golden/README.md)."""
