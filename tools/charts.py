"""Make the charts of the HTML report and its copy of Vega, with vl-convert-python: ``python tools/charts.py``.

Run this script after a change of a specification in this file, or of the version in ``constraints.txt``. Then check the
licences in ``vega.LICENSE``. A test compares the stored files with the specifications. ``charts.js`` of the report adds
the data by their names.
"""

import json
from importlib import metadata
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "src/mc2core/explore/assets"
MAKER = "vl-convert-python"


def place(field):
    """Return the encoding of a coordinate of a document or a name on the map, whose axes run from 0 to 1."""
    scale = {"domain": [-0.02, 1.02], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def given(field, kind):
    """Return the encoding of a colour, an opacity or a size that the script of the report sets."""
    return {"field": field, "type": kind, "scale": None}


def names(data, size, anchor="middle"):
    """Return two layers of names above all other marks: a wide outline in the background colour, and the text."""
    mark = {"type": "text", "fontSize": size, "clip": True, "align": {"middle": "center", "start": "left"}[anchor]}
    place_of = {"x": place("x"), "y": place("y")} if data == "names" else {"x": unit("x"), "y": unit("y")}
    text = {**place_of, "text": {"field": "name", "type": "nominal"}, "tooltip": {"field": "name", "type": "nominal"}}
    bold = {**mark, "fontWeight": "bold"}
    outline = {**bold, "strokeWidth": 3, "strokeJoin": "round"}
    return [
        {
            "data": {"name": data},
            "mark": outline,
            "encoding": {**text, "color": given("halo", "nominal"), "stroke": given("halo", "nominal")},
        },
        {"data": {"name": data}, "mark": bold, "encoding": {**text, "color": given("ink", "nominal")}},
    ]


def unit(field, reverse=False):
    """Return the encoding of a coordinate from 0 to 1 that the script of the report sets."""
    scale = {"domain": [0, 1], "nice": False, "zero": False, "reverse": reverse}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def number(field, axis=None, **scale):
    return {"field": field, "type": "quantitative", "title": None, "axis": axis or {}, "scale": scale}


def keyed(field, place):
    """Return a transform that puts the position and a blank before each name; labels do not show them.

    Vega stores the names by which it groups as properties of objects. A name such as ``constructor`` would be confused
    with a built-in property.
    """
    return {"calculate": f"datum.{place} + ' ' + datum.{field}", "as": f"{field}_key"}


def nominal(field, place, **axis):
    """Return the encoding of the names that ``keyed`` makes, sorted by position.

    The script of the report limits the length of their labels.
    """
    said = "slice(datum.label, indexof(datum.label, ' ') + 1)"
    return {
        "field": f"{field}_key",
        "type": "nominal",
        "sort": {"field": place, "op": "min"},
        "title": None,
        "axis": {"ticks": False, "domain": False, "labelFontSize": 12, "labelExpr": said, **axis},
    }


#: documents, and names of their clusters
MAP = {
    "width": "container",
    "height": "container",
    "layer": [
        {
            "data": {"name": "points"},
            "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
            "mark": {"type": "point", "filled": True, "clip": True, "strokeWidth": 1.3},
            "encoding": {
                "x": place("x"),
                "y": place("y"),
                "shape": given("shape", "nominal"),
                "color": given("colour", "nominal"),
                "stroke": given("colour", "nominal"),
                "fillOpacity": given("inside", "quantitative"),
                "strokeOpacity": given("opacity", "quantitative"),
                "size": given("size", "quantitative"),
                "tooltip": {"field": "document", "type": "nominal"},
            },
        },
        *names("names", 12),
    ],
}
#: topics, with sizes proportional to their frequency
TOPICS = {
    "width": "container",
    "height": "container",
    "layer": [
        {
            "data": {"name": "topics"},
            "mark": {"type": "point", "filled": True, "shape": "circle", "fillOpacity": 0.35, "strokeWidth": 1.5},
            "encoding": {
                "x": unit("x"),
                "y": unit("y"),
                "color": given("colour", "nominal"),
                "stroke": given("colour", "nominal"),
                "size": given("size", "quantitative"),
                "tooltip": {"field": "topic", "type": "nominal"},
            },
        },
        *names("labels", 11),
    ],
}
#: probabilities of words in a cluster or topic (bars) and in the whole corpus (marks)
BARS = {
    "width": "container",
    "height": {"step": 19},
    "data": {"name": "bars"},
    "transform": [keyed("word", "place")],
    "encoding": {"y": nominal("word", "place")},
    "layer": [
        {
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {
                "x": {
                    "field": "probability",
                    "type": "quantitative",
                    "stack": None,
                    "title": "probability; the mark: in the whole corpus",
                    "axis": {"tickCount": 4, "format": "~g"},
                },
                "tooltip": {"field": "word", "type": "nominal"},
            },
        },
        {
            "mark": {"type": "tick", "thickness": 2},
            "encoding": {"x": {"field": "everywhere", "type": "quantitative"}, "color": {"value": "#E69F00"}},
        },
    ],
}
#: shares by a number: one line with its interval per cluster or topic
TREND = {
    "width": "container",
    "height": 170,
    "data": {"name": "trend"},
    "encoding": {
        "x": number("start", {"format": "~f", "tickCount": 6}, zero=False),
        "color": given("colour", "nominal"),
        "detail": {"field": "name", "type": "nominal"},
    },
    "layer": [
        {
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"y": number("low", {"format": "~%", "tickCount": 4}), "y2": {"field": "high"}},
        },
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": number("share")}},
        {
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 1},
            "encoding": {
                "y": number("share"),
                "shape": given("shape", "nominal"),
                "tooltip": {"field": "start", "type": "quantitative"},
            },
        },
    ],
}
#: shares by value: one point with its interval per value and cluster or topic
GROUPS = {
    "width": "container",
    "height": {"step": 11, "for": "offset"},
    "data": {"name": "groups"},
    "transform": [keyed("value", "place")],
    "encoding": {
        "y": nominal("value", "place", labelPadding=9),
        "yOffset": {"field": "name", "type": "nominal", "sort": {"field": "series", "op": "min"}},
        "color": given("colour", "nominal"),
    },
    "layer": [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
            "encoding": {"x": number("low", {"format": "~%", "tickCount": 4}), "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
            "encoding": {
                "x": number("share"),
                "shape": given("shape", "nominal"),
                "tooltip": {"field": "value", "type": "nominal"},
            },
        },
    ],
}
#: a number by the number of documents that have arrived
COURSE = {
    "width": "container",
    "height": 170,
    "data": {"name": "course"},
    "encoding": {
        "x": {**number("so_far", {"format": "~s", "tickCount": 6}), "title": "documents that have come"},
        "y": number("value", {"format": "~g", "tickCount": 4}, zero=False),
    },
    "layer": [
        {"mark": {"type": "line", "strokeWidth": 2}},
        {
            "mark": {"type": "circle", "size": 40, "opacity": 1},
            "encoding": {
                "color": given("colour", "nominal"),
                "tooltip": {"field": "update", "type": "quantitative"},
            },
        },
    ],
}
IN_SDS = {"type": "quantitative", "title": "standard deviations of all observations from their mean"}
#: means of the numbers of observations: one point per number, with a bar of one standard deviation to each side
MEANS = {
    "width": "container",
    "height": {"step": 19},
    "data": {"name": "means"},
    "transform": [keyed("value", "place")],
    "encoding": {"y": nominal("value", "place")},
    "layer": [
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5, "color": "#4c78a8"},
            "encoding": {
                "x": {"field": "low", **IN_SDS, "axis": {"format": "~g", "tickCount": 5}},
                "x2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "circle", "size": 60, "opacity": 1, "color": "#4c78a8"},
            "encoding": {"x": {"field": "at", **IN_SDS}, "tooltip": {"field": "value", "type": "nominal"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1, "color": "#9aa0a8"},
            "encoding": {"x": {"datum": 0, **IN_SDS}, "y": None},
        },
    ],
}
HEAT = {
    "width": "container",
    "height": {"step": 19},
    "data": {"name": "cells"},
    "transform": [keyed("column", "across"), keyed("row", "down")],
    "mark": {"type": "rect"},
    "encoding": {
        "x": nominal("column", "across", labelAngle=-50, labelFontSize=11),
        "y": nominal("row", "down"),
        "color": given("colour", "nominal"),
        "tooltip": {"field": "text", "type": "nominal"},
    },
}
#: cuts from one cluster on the left to many on the right
TREE = {
    "width": "container",
    "height": 300,
    "layer": [
        {
            "data": {"name": "stems"},
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {
                "x": unit("x"),
                "y": unit("y"),
                "x2": {"field": "x2"},
                "y2": {"field": "y2"},
                "color": given("colour", "nominal"),
            },
        },
        {
            "data": {"name": "joints"},
            "mark": {"type": "circle", "opacity": 1},
            "encoding": {
                "x": unit("x"),
                "y": unit("y"),
                "color": given("colour", "nominal"),
                "size": given("size", "quantitative"),
                "tooltip": {"field": "cluster", "type": "nominal"},
            },
        },
        *names("labels", 11, "start"),
    ],
}
CHARTS = {
    "map": MAP,
    "topics": TOPICS,
    "bars": BARS,
    "means": MEANS,
    "trend": TREND,
    "groups": GROUPS,
    "course": COURSE,
    "heat": HEAT,
    "tree": TREE,
}


def made():
    """Return the texts of the assets: the charts in Vega, and one script with Vega-Embed and all its dependencies."""
    import vl_convert

    look = {"background": "transparent", "config": {"view": {"stroke": None}}}
    charts = {name: vl_convert.vegalite_to_vega({**chart, **look}) for name, chart in CHARTS.items()}
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return {
        "charts.json": json.dumps(charts, indent=1) + "\n",
        "vega.js": f"// bundled by {MAKER} {metadata.version(MAKER)}; licences: vega.LICENSE\n{library}\n",
    }


if __name__ == "__main__":
    for name, text in made().items():
        (ASSETS / name).write_text(text, encoding="utf-8")
