"""Documents of a user: tables, UCI bags of words."""
