"""Problems that users of Timeloop and Sparseloop reported, each with a small input of our own (docs/cases.md)."""
