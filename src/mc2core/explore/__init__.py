"""Present the results of a fit: tables, and an HTML report of them."""
