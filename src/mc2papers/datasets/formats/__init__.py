"""File formats: archives, XML, tables. Nothing here knows a dataset."""
