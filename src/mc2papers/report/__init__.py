"""Write the files of tables and figures, judge claims, and write the reproduction report."""
