"""The model as jax.numpy functions, written for one mapping. Start reading at `evaluate.py`."""
