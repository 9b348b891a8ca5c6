"""Readers of the user's files: Timeloop v0.2, v0.3 and the dialect with `arithmetic` and `storage`."""

from .load import read_files as read_files, read_texts as read_texts
