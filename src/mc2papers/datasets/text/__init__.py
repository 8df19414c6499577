"""From running text and mark-up to counted words."""
