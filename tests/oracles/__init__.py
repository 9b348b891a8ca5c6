"""Evaluators that share nothing with the package but its dataclasses: slow, and simple enough to be believed."""
