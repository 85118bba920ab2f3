"""Functions that are split where Python is needed, and what runs between."""
