"""Count the words of running text and mark-up."""
