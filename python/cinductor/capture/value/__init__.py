"""Values of the user's frame, traced and not: what they are, compared, walked, rebuilt, shared."""
