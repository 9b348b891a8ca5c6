"""The commands. JAX is imported by those that compute, when they run, so that help is quick."""
