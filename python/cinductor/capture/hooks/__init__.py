"""What rewritten code asks for: the plain thing, and in a captured call besides what the stage hears of."""
