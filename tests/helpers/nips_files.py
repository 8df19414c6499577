"""Small archives of NIPS."""

import zipfile

import numpy as np


# -- small corpora written in the official format --------------------------------------------------------------
def small(seed=0, n_documents=5, n_words=6, n_authors=4):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8, (n_documents, n_words)) + np.eye(n_documents, n_words, dtype=int)
    return {
        "counts": counts,
        "words": [f"word{'abcdefghijklmnop'[v]}" for v in range(n_words)],
        "titles": [f"On Title, number {'abcdefghijklmnop'[j] * 3}" for j in range(n_documents)],
        "names": [f"nips{j % 13:02d}/{j:04d}.txt" for j in range(n_documents)],
        "authors": rng.random((n_documents, n_authors)) < 0.4,
        "author_names": [f"Name{a}_X" for a in range(n_authors)],
        "labels": rng.integers(0, 3, n_documents),
        "label_names": ["Theory", "Vision", "Uncategorised"],
    }


def text_members(data):
    counts = data["counts"]
    lines = [" ".join([str((row > 0).sum()), *(f"{v}:{row[v]}" for v in np.flatnonzero(row))]) for row in counts]
    totals = zip(data["words"], counts.sum(0), (counts > 0).sum(0), strict=True)
    members = {
        "nips.corpus": "\n".join([*lines, "", ""]),
        "nips.vocab": "".join(f"{word} = {v} = {n} {d} \r\n" for v, (word, n, d) in enumerate(totals)),
        "nips.authors": "".join(" ".join(map(str, np.flatnonzero(row))) + "\n" for row in data["authors"]),
        "nips.authors.key": "".join(f"{name} \n" for name in data["author_names"]),
        "nips.docs": "".join(f"{title}\n" for title in data["titles"]),
        "nips.docnames": "".join(f"{name}\n" for name in data["names"]),
        "nips.vols": "".join(f"{int(name[4:6])}\r\n" for name in data["names"]),
        "nips.labels": "".join(f"{label}\r\n" for label in data["labels"]),
        "nips.labels.key": "".join(f"{name}\r\n" for name in data["label_names"]),
    }
    return {name: text.encode("latin-1") for name, text in members.items()}


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"corpus-example/{name}", content)
    return path
