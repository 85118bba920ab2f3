"""What a call in a captured function means, decided by what is called."""
