"""Read general file formats (archives, LDA-C); these modules do not depend on a dataset."""
