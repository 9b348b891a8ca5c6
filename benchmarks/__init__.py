"""Measurements of speed and memory; see README.md here."""
