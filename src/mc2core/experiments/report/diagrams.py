"""Plate diagrams of MC2 (ICML14 figure 1, UAI16 figure 1) and the variational factorisation (UAI16 figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import daft
import pandas as pd
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Node:
    """A variable at (x, y). kind: "latent", "observed" or "fixed" (a parameter, drawn as a dot)."""

    name: str
    label: str
    x: float
    y: float
    kind: str = "latent"


@dataclass(frozen=True)
class Plate:
    """A box (x, y of its lower left corner, width, height) around what is repeated."""

    x: float
    y: float
    width: float
    height: float
    label: str
    corner: str = "bottom right"


@dataclass(frozen=True)
class Diagram:
    """Nodes, edges by name, plates, and a title under which it stands."""

    title: str
    nodes: Sequence[Node]
    edges: Sequence[tuple[str, str]]
    plates: Sequence[Plate] = field(default_factory=tuple)


GENERATIVE = Diagram(
    "generative view",
    (
        Node("alpha", r"$\alpha$", 0.6, 4.9, "fixed"),
        Node("H", r"$H$", 0.6, 4.0, "fixed"),
        Node("U", r"$U$", 1.7, 4.4),
        Node("v", r"$v$", 2.8, 4.9, "fixed"),
        Node("Q0", r"$Q_0$", 2.8, 3.9),
        Node("eta", r"$\eta$", 3.9, 4.4, "fixed"),
        Node("S", r"$S$", 3.9, 3.4, "fixed"),
        Node("G", r"$(\phi_j, Q_j)$", 1.7, 3.0),
        Node("theta", r"$\theta_{ji}$", 2.45, 1.9),
        Node("x", r"$x_j$", 0.95, 1.9, "observed"),
        Node("w", r"$w_{ji}$", 2.45, 0.95, "observed"),
    ),
    (
        ("alpha", "U"),
        ("H", "U"),
        ("v", "U"),
        ("Q0", "U"),
        ("eta", "Q0"),
        ("S", "Q0"),
        ("U", "G"),
        ("G", "theta"),
        ("G", "x"),
        ("theta", "w"),
    ),
    (
        Plate(0.4, 0.15, 2.85, 3.4, "$J$ documents", "bottom left"),
        Plate(1.95, 0.45, 1.1, 1.95, "$N_j$"),
    ),
)
STICKS = Diagram(
    "stick-breaking view",
    (
        Node("alpha", r"$\alpha$", 0.6, 4.9, "fixed"),
        Node("pi", r"$\pi$", 0.6, 4.0),
        Node("z", r"$z_j$", 0.95, 2.9),
        Node("x", r"$x_j$", 0.95, 1.9, "observed"),
        Node("phi", r"$\phi_k$", -0.7, 1.9),
        Node("H", r"$H$", -0.7, 2.9, "fixed"),
        Node("l", r"$l_{ji}$", 2.45, 1.9),
        Node("w", r"$w_{ji}$", 2.45, 0.95, "observed"),
        Node("tau", r"$\tau_k$", 2.45, 4.0),
        Node("v", r"$v$", 2.45, 4.9, "fixed"),
        Node("epsilon", r"$\epsilon$", 3.9, 4.0),
        Node("eta", r"$\eta$", 3.9, 4.9, "fixed"),
        Node("psi", r"$\psi_m$", 3.9, 0.95),
        Node("S", r"$S$", 3.9, 2.0, "fixed"),
    ),
    (
        ("alpha", "pi"),
        ("pi", "z"),
        ("z", "x"),
        ("phi", "x"),
        ("H", "phi"),
        ("z", "l"),
        ("tau", "l"),
        ("v", "tau"),
        ("epsilon", "tau"),
        ("eta", "epsilon"),
        ("l", "w"),
        ("psi", "w"),
        ("S", "psi"),
    ),
    (
        Plate(0.4, 0.15, 2.85, 3.25, "$J$ documents", "bottom left"),
        Plate(1.95, 0.45, 1.1, 1.95, "$N_j$"),
        Plate(-1.2, 1.35, 1.0, 1.05, r"$\infty$", "bottom left"),
        Plate(1.95, 3.55, 1.0, 0.95, r"$\infty$"),
        Plate(3.4, 0.4, 1.05, 1.05, r"$\infty$"),
    ),
)
TABLES = Diagram(
    "stick-breaking view with tables",
    (
        Node("alpha", r"$\alpha$", 0.6, 4.9, "fixed"),
        Node("beta", r"$\beta$", 0.6, 4.0),
        Node("z", r"$z_j$", 0.95, 2.9),
        Node("x", r"$x_j$", 0.95, 1.9, "observed"),
        Node("phi", r"$\phi_k$", -0.7, 1.9),
        Node("H", r"$H$", -0.7, 2.9, "fixed"),
        Node("t", r"$t_{ji}$", 2.45, 2.3),
        Node("w", r"$w_{ji}$", 2.45, 0.95, "observed"),
        Node("v", r"$v$", 2.6, 5.15, "fixed"),
        Node("tau", r"$\tau_k$", 2.6, 4.2),
        Node("c", r"$c_{kt}$", 4.0, 4.2),
        Node("epsilon", r"$\epsilon$", 5.5, 4.2),
        Node("eta", r"$\eta$", 5.5, 5.15, "fixed"),
        Node("psi", r"$\psi_m$", 4.5, 0.95),
        Node("S", r"$S$", 5.5, 0.95, "fixed"),
    ),
    (
        ("alpha", "beta"),
        ("beta", "z"),
        ("z", "x"),
        ("phi", "x"),
        ("H", "phi"),
        ("z", "t"),
        ("tau", "t"),
        ("v", "tau"),
        ("epsilon", "c"),
        ("eta", "epsilon"),
        ("t", "w"),
        ("z", "w"),
        ("c", "w"),
        ("psi", "w"),
        ("S", "psi"),
    ),
    (
        Plate(0.4, 0.15, 2.65, 3.25, "$J$ documents", "bottom left"),
        Plate(1.95, 0.45, 0.95, 2.4, "$N_j$"),
        Plate(-1.2, 1.35, 1.0, 1.05, r"$K$", "bottom left"),
        Plate(2.1, 3.6, 2.75, 1.1, r"$K$", "bottom left"),
        Plate(3.5, 3.75, 1.05, 0.85, r"$T$"),
        Plate(4.0, 0.4, 1.0, 1.05, r"$M$"),
    ),
)
VARIATIONAL = Diagram(
    "variational family: cluster and tables of a document stay coupled",
    (
        Node("beta", r"$\beta$", 0.0, 3.3),
        Node("lambda_beta", r"$\lambda^{\beta}$", 0.0, 4.3, "fixed"),
        Node("epsilon", r"$\epsilon$", 1.2, 3.3),
        Node("lambda_epsilon", r"$\lambda^{\epsilon}$", 1.2, 4.3, "fixed"),
        Node("tau", r"$\tau_k$", 2.6, 3.3),
        Node("lambda_tau", r"$\lambda^{\tau}_k$", 2.6, 4.3, "fixed"),
        Node("c", r"$c_{kt}$", 4.2, 3.3),
        Node("mu_c", r"$\mu^{c}_{kt}$", 4.2, 4.3, "fixed"),
        Node("phi", r"$\phi_k$", 0.0, 0.9),
        Node("lambda_phi", r"$\lambda^{\phi}_k$", 0.0, 1.9, "fixed"),
        Node("psi", r"$\psi_m$", 1.2, 0.9),
        Node("lambda_psi", r"$\lambda^{\psi}_m$", 1.2, 1.9, "fixed"),
        Node("z", r"$z_j$", 2.6, 0.9),
        Node("mu_z", r"$\mu^{z}_j$", 2.6, 1.9, "fixed"),
        Node("t", r"$t_{ji}$", 4.2, 0.9),
        Node("mu_t", r"$\mu^{t}_{ji}$", 4.2, 1.9, "fixed"),
    ),
    (
        ("lambda_beta", "beta"),
        ("lambda_epsilon", "epsilon"),
        ("lambda_tau", "tau"),
        ("mu_c", "c"),
        ("lambda_phi", "phi"),
        ("lambda_psi", "psi"),
        ("mu_z", "z"),
        ("mu_t", "t"),
        ("z", "t"),
    ),
    (
        Plate(2.05, 2.65, 2.8, 2.3, r"$K$", "bottom left"),
        Plate(3.6, 2.8, 1.1, 2.0, r"$T$"),
        Plate(-0.5, 0.35, 1.0, 2.1, r"$K$", "bottom left"),
        Plate(0.7, 0.35, 1.0, 2.1, r"$M$", "bottom left"),
        Plate(2.05, 0.2, 2.8, 2.35, r"$J$", "bottom left"),
        Plate(3.6, 0.35, 1.1, 2.1, r"$N_j$"),
    ),
)
DIAGRAMS: Mapping[str, tuple[Diagram, ...]] = {
    "icml2014_figure1": (GENERATIVE, STICKS),
    "uai2016_figure1": (TABLES,),
    "uai2016_figure2": (VARIATIONAL,),
}


_GAP = 6.2  # from one diagram of a figure to the next


def draw(name: str) -> tuple[Figure, pd.DataFrame]:
    """The diagrams of one figure side by side, and its edges as a table: diagram, from, to."""
    pgm = daft.PGM(node_unit=0.8, grid_unit=1.9, line_width=0.9, dpi=200)
    for i, diagram in enumerate(DIAGRAMS[name]):
        _add(pgm, diagram, i)
    pgm.render()
    edges = [(diagram.title, one, other) for diagram in DIAGRAMS[name] for one, other in diagram.edges]
    return pgm.figure, pd.DataFrame(edges, columns=["diagram", "from", "to"])


def _add(pgm: daft.PGM, diagram: Diagram, place: int) -> None:
    shift = place * _GAP
    for node in diagram.nodes:
        if node.kind == "fixed":
            pgm.add_node(f"{node.name}{place}", node.label, node.x + shift, node.y, fixed=True, offset=(0, 4))
        else:
            pgm.add_node(
                f"{node.name}{place}",
                node.label,
                node.x + shift,
                node.y,
                observed=node.kind == "observed",
                aspect=1.0 if len(node.label) < 14 else 1.9,
            )
    for one, other in diagram.edges:
        pgm.add_edge(f"{one}{place}", f"{other}{place}")
    for plate in diagram.plates:
        pgm.add_plate(
            [plate.x + shift, plate.y, plate.width, plate.height], plate.label, position=plate.corner, fontsize=9
        )
    left = min(node.x for node in diagram.nodes)
    pgm.add_text(left + shift, max(node.y for node in diagram.nodes) + 0.9, diagram.title, fontsize=10)
