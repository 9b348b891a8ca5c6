"""What a design is, as frozen dataclasses: no arrays, no jax, no dialect of any input file."""
