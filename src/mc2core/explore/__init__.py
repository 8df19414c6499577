"""What a fit found, for people: tables, and one page that shows them."""
