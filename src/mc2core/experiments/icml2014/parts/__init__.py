"""What the tables and figures of ICML14 are made of: data described and drawn."""
