"""The charts of the page as Vega specifications, drawn by Altair; the page's script fills in the data."""

from __future__ import annotations

from typing import Any

from mc2core.base import extras


def charts() -> dict[str, Any]:
    """Vega specifications by name: map, bars, trend."""
    import altair as alt

    return {
        name: draw(alt).to_dict(format="vega") for name, draw in (("map", _map), ("bars", _bars), ("trend", _trend))
    }


def library() -> str:
    """The source of Vega, a script that needs no network."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def refuse_without() -> None:
    """MissingPackage where a package is missing that the page needs; cheap."""
    for module in ("altair", "vl_convert", "sklearn"):
        extras.require(module, extra="explore", purpose="the page")


def _map(alt: Any) -> Any:
    """Data "points" (x, y, colour, opacity, size) and "names" (x, y, name); the script gives colours."""
    axis = {"axis": None, "scale": alt.Scale(domain=[-0.02, 1.02], nice=False, zero=False)}
    place = {"x": alt.X("x:Q", **axis), "y": alt.Y("y:Q", **axis)}
    zoom = alt.selection_interval(name="zoom", bind="scales")
    points = (
        alt.Chart(alt.NamedData("points"))
        .mark_circle(clip=True, stroke=None)
        .encode(
            **place,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("opacity:Q", scale=None),
            size=alt.Size("size:Q", scale=None),
            tooltip=alt.Tooltip("document:N"),
        )
        .add_params(zoom)
    )
    names = (
        alt.Chart(alt.NamedData("names"))
        .mark_text(fontSize=12, fontWeight="bold", clip=True)
        .encode(**place, text="name:N", color=alt.Color("colour:N", scale=None))
    )
    return _bare(alt.layer(points, names), width="container", height="container")


def _bars(alt: Any) -> Any:
    """Data "bars" (word, probability, everywhere, place): probability here, and in the whole corpus as a mark."""
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y(
            "word:N",
            sort=alt.SortField("place"),
            title=None,
            axis=alt.Axis(labelLimit=140, labelFontSize=12, ticks=False, domain=False),
        )
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        x=alt.X(
            "probability:Q", title="probability; the mark: in the whole corpus", axis=alt.Axis(tickCount=4, format="~g")
        ),
        tooltip=alt.Tooltip("word:N"),
    )
    marks = base.mark_tick(thickness=2).encode(x="everywhere:Q", color=alt.value("#E69F00"))
    return _bare(alt.layer(bars, marks), width="container", height={"step": 19})


def _trend(alt: Any) -> Any:
    """Data "trend" (start, share)."""
    chart = (
        alt.Chart(alt.NamedData("trend"))
        .mark_line(point={"size": 30}, interpolate="linear", strokeWidth=2)
        .encode(
            x=alt.X("start:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format="~d", tickCount=6)),
            y=alt.Y("share:Q", title=None, axis=alt.Axis(format="~%", tickCount=4)),
            tooltip=alt.Tooltip("start:Q"),
        )
    )
    return _bare(chart, width="container", height=110)


def _bare(chart: Any, **size: Any) -> Any:
    return chart.properties(**size, background="transparent").configure_view(stroke=None)
