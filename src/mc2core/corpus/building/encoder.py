"""Embeddings of texts by a local model of sentence-transformers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mc2core.base import extras, storage
from mc2core.base.progress import work

_BATCH = 256  # number of texts between reports of progress


def encode(texts: Sequence[str], model: str | os.PathLike[str]) -> np.ndarray:
    """Return the embedding of each text by sentence-transformers, (n, D) float32; NaN for empty texts.

    ``model`` is the folder of a model; nothing is downloaded. Embeddings are cached in the folder mc2core/embeddings of
    the user's cache, by the digest of the text, so that no text is encoded twice. There is one file per model.

    Raises ValueError if ``model`` is not a folder, and MissingPackage if sentence-transformers is not installed.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise ValueError(f"--embed {model} is not a folder with a model; download the model there first")
    extras.require("sentence_transformers", extra="embeddings", purpose="--embed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mc2core", "embeddings")
    with work("loading the sentence model"):
        path = cache / f"{storage.digest_path(folder)}.npz"
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = _read_vectors(path)
    new = {digest: text for digest, text in zip(digests, texts, strict=True) if text.strip() and digest not in vectors}
    if new:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        some = list(new)
        with work("texts to embeddings", len(some), "texts") as progress:
            for first in range(0, len(some), _BATCH):
                part = some[first : first + _BATCH]
                rows = encoder.encode([new[digest] for digest in part], show_progress_bar=False)
                vectors |= zip(part, np.asarray(rows, np.float32), strict=True)
                progress.advance(len(part))
        cache.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(vectors), np.uint8).reshape(-1, 32)
        storage.write_arrays(path, {"digests": keys, "vectors": np.stack(list(vectors.values()))})
    if not vectors:
        raise ValueError("--embed: no document has a text")
    missing = np.full(len(next(iter(vectors.values()))), np.nan, np.float32)
    return np.stack([vectors[one] if text.strip() else missing for one, text in zip(digests, texts, strict=True)])


def _read_vectors(path: Path) -> dict[bytes, np.ndarray]:
    """Return the cached embeddings by the digest of the text."""
    if not path.is_file():
        return {}
    arrays = storage.read_arrays(path)
    return {digest.tobytes(): vector for digest, vector in zip(arrays["digests"], arrays["vectors"], strict=True)}
