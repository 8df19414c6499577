"""Files of AnnData as their tests make them."""

import h5py
import numpy as np
import scipy.sparse as sp

from mc2core.corpus.building.columns import ContextColumn

TEXT = h5py.string_dtype()


def matrix(parent, name, counts, kind):
    if kind == "array":
        parent[name] = counts.astype(np.float32)
        parent[name].attrs["encoding-type"] = "array"
        return
    packed = {"csr_matrix": sp.csr_matrix, "csc_matrix": sp.csc_matrix}[kind](counts.astype(np.float32))
    node = parent.create_group(name)
    node.attrs.update({"encoding-type": kind, "encoding-version": "0.1.0", "shape": np.array(counts.shape)})
    node["data"], node["indices"], node["indptr"] = packed.data, packed.indices, packed.indptr


def write(path, counts, kind="csr_matrix"):
    """Three kinds of columns: numbers, text, categories (the last cell is missing)."""
    n_cells, n_genes = counts.shape
    with h5py.File(path, "w") as file:
        matrix(file, "X", np.log1p(counts), kind)
        matrix(file.create_group("layers"), "counts", counts, kind)
        for name, size in (("obs", n_cells), ("var", n_genes)):
            group = file.create_group(name)
            group.attrs["_index"] = "names"
            group.create_dataset("names", data=[f"{name}{i}" for i in range(size)], dtype=TEXT)
        obs = file["obs"]
        obs["age"] = np.arange(n_cells) + 0.5
        obs.create_dataset("donor", data=["ann" if i % 2 else "bob" for i in range(n_cells)], dtype=TEXT)
        tissue = obs.create_group("tissue")
        tissue.attrs["encoding-type"] = "categorical"
        tissue.create_dataset("categories", data=["skin", "lung"], dtype=TEXT)
        tissue["codes"] = np.array([i % 2 for i in range(n_cells - 1)] + [-1], dtype=np.int8)
        depth = obs.create_group("depth")
        depth.attrs["encoding-type"] = "nullable-integer"
        depth["values"], depth["mask"] = np.arange(n_cells), np.arange(n_cells) == 0
    return path


CONTEXTS = {
    "age": ContextColumn("age", "number"),
    "depth": ContextColumn("depth", "number"),
    "tissue": ContextColumn("tissue", "bag"),
}
