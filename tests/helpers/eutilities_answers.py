"""Answers of PubMed's servers."""

KEYS = [str(key) for key in range(1001, 1008)]


def search(keys, count=None):
    ids = "".join(f"<Id>{key}</Id>" for key in keys)
    found = len(keys) if count is None else count
    return f"<eSearchResult><Count>{found}</Count><RetMax>9</RetMax><IdList>{ids}</IdList></eSearchResult>".encode()
