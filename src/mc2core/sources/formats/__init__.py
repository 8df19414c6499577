"""File formats: archives, MATLAB, XML, tables. Nothing here knows a dataset."""
