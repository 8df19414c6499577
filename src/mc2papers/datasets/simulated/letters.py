"""Simulate the letters data of ICML14 (section 4.1): four words, thirteen letters of 7 x 5 pixels, and a number.

A cluster is one of the words INTERNATIONAL, CONFERENCE, MACHINE and LEARNING. Its topics are the distinct letters of
the word, with equal proportions. A topic is uniform over the dark pixels of its letter, so the vocabulary is the 35
pixels. The context of a document is a number from a normal distribution. The mean is 2, 4, 6 or 8, depending on the
cluster. The variances differ, but the paper does not print them. CONTEXT_SD is our choice, with which neighbouring
clusters overlap a little.
"""

from __future__ import annotations

import numpy as np

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2papers.datasets.simulated.shapes import draw_counts
from mc2papers.datasets.simulated.truth import Truth

WORDS = ("INTERNATIONAL", "CONFERENCE", "MACHINE", "LEARNING")
CONTEXT_MEANS = (2.0, 4.0, 6.0, 8.0)
CONTEXT_SD = (0.2, 0.3, 0.4, 0.5)
N_ROWS, N_COLUMNS = 7, 5

# M and N share both stems, and I and T share the stem and the top bar, because the paper says that LDA and HDP mix them
# up. The closest pair of topics has an L1 distance of 0.4. A learnt topic counts as recovered within 0.25.
_BITMAPS = """
A      C      E      F      G      H      I
..#..  .####  #####  #####  .####  #...#  #####
.#.#.  #....  #....  #....  #....  #...#  ..#..
.#.#.  #....  #....  #....  #....  #...#  ..#..
#...#  #....  ####.  ####.  #..##  #####  ..#..
#####  #....  #....  #....  #...#  #...#  ..#..
#...#  #....  #....  #....  #...#  #...#  ..#..
#...#  .####  #####  #....  .####  #...#  #####

L      M      N      O      R      T
#....  ##.##  #...#  ..#..  ####.  #####
#....  ##.##  ##..#  .#.#.  #...#  ..#..
#....  #.#.#  ##..#  #...#  #...#  ..#..
#....  #.#.#  #.#.#  #...#  ####.  ..#..
#....  #...#  #..##  #...#  #.#..  ..#..
#....  #...#  #..##  .#.#.  #..#.  ..#..
#####  #...#  #...#  ..#..  #...#  ..#..
"""


def bitmaps() -> dict[str, np.ndarray]:
    """Return the thirteen letters in alphabetical order: ``{letter: (7, 5) bool, True if dark}``."""
    images: dict[str, np.ndarray] = {}
    for panel in _BITMAPS.strip().split("\n\n"):
        names, *rows = (line.split() for line in panel.splitlines())
        for name, pixels in zip(names, zip(*rows, strict=True), strict=True):
            images[name] = np.array([[sign == "#" for sign in row] for row in pixels])
    return images


def simulate(
    seed: int, n_documents: int = 400, n_tokens: int = 50, noise: float = 0.0, with_context: bool = True
) -> tuple[Corpus, Truth]:
    """Draw the letters data; the defaults are the sizes of figure 2, and figure 7 needs other sizes.

    Parameters
    ----------
    n_documents : number J of documents; each word has a quarter of them (to within one), in random order.
    n_tokens : number N_j of tokens, the same for every document.
    noise : probability that a token is a uniformly drawn pixel instead of a pixel of its letter.
    with_context : whether the corpus has the context ``number``.

    Returns
    -------
    corpus : (J, 35) pixel counts, pixel ``r*5 + c``; labels are the words.
    truth : topics are the letters without noise, in alphabetical order.

    Raises
    ------
    ValueError
        If there are no documents or no tokens, or if noise is outside 0..1.
    """
    for name, value in (("n_documents", n_documents), ("n_tokens", n_tokens)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is {noise}; it must lie between 0 and 1")
    images = bitmaps()
    word_given_topic = np.array([image.ravel() / image.sum() for image in images.values()])
    topic_given_cluster = np.array([[(letter in word) / len(set(word)) for letter in images] for word in WORDS])
    rng = streams.generator(seed, "letters")
    cluster = rng.permutation(np.arange(n_documents) % len(WORDS))
    numbers = rng.normal(np.array(CONTEXT_MEANS)[cluster], np.array(CONTEXT_SD)[cluster])
    content = draw_counts(
        cluster,
        np.full(n_documents, n_tokens),
        topic_given_cluster,
        (1.0 - noise) * word_given_topic + noise / (N_ROWS * N_COLUMNS),
        seed,
        "letters pixels",
    )
    corpus = Corpus(
        content,
        [f"row{row + 1}column{column + 1}" for row in range(N_ROWS) for column in range(N_COLUMNS)],
        contexts={"number": numbers} if with_context else None,
        labels=cluster,
        label_names=WORDS,
    )
    contexts = {"number": np.column_stack([CONTEXT_MEANS, CONTEXT_SD])} if with_context else {}
    return corpus, Truth(cluster, np.full(len(WORDS), 0.25), topic_given_cluster, word_given_topic, contexts)
