"""What a fit found, for people: tables, and one HTML report that shows them."""
