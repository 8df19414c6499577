"""Small folders of NUS-WIDE."""

import numpy as np

FOLDERS = ("actor", "cat", "wolf", "zebra")


def small(seed=0, n_train=12, n_test=8):
    """Images of four folders, each animal in both parts; visual words, tags, and the order of Imagelist.txt."""
    rng = np.random.default_rng(seed)
    n_images = n_train + n_test
    folders = [FOLDERS[i % 4] for i in range(n_train)] + [FOLDERS[i % 4] for i in range(n_test)]
    return {
        "images": [f"{folder}\\{i:04d}_{rng.integers(10**9)}.jpg" for i, folder in enumerate(folders)],
        "n_train": n_train,
        "words": rng.poisson(0.3, (n_images, 500)),
        "tags": rng.random((n_images, 1000)) < 0.002,
        "order": rng.permutation(n_images),
    }


def lines(rows):
    return "".join(f"{row}\r\n" for row in rows).encode()


def official(data, whole=False):
    """File contents by their official names; ``whole``: the files of all images instead of those of the parts."""
    train, test = slice(None, data["n_train"]), slice(data["n_train"], None)
    words = np.array([" ".join(map(str, row)) + " " for row in data["words"]])
    tags = np.array(["\t".join("01"[cell] for cell in row) + "\t" for row in data["tags"].astype(int)])
    files = {
        "ImageList/TrainImagelist.txt": lines(data["images"][train]),
        "ImageList/TestImagelist.txt": lines(data["images"][test]),
        "NUS_WID_Tags/TagList1k.txt": lines(f"tag{number}" for number in range(1000)),
    }
    if whole:
        files["ImageList/Imagelist.txt"] = lines(data["images"][i] for i in data["order"])
        files["Low_Level_Features/BoW_int.dat"] = lines(words[data["order"]])
        files["NUS_WID_Tags/AllTags1k.txt"] = lines(tags[data["order"]])
    else:
        for name, part in (("Train", train), ("Test", test)):
            files[f"Low_Level_Features/BoW_{name}_int.dat"] = lines(words[part])
            files[f"NUS_WID_Tags/{name}_Tags1k.dat"] = lines(tags[part])
    return files
