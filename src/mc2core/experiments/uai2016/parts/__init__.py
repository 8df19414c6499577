"""What the tables and figures of UAI16 are made of: data described and drawn."""
