"""The charts of the page and its copy of Vega are what vl-convert-python makes of the specifications here.

After a change of these, or of the version that ``constraints.txt`` pins: ``python tests/mc2core/explore/test_vega.py``,
and a look at the licences in ``vega.LICENSE``. The page's ``charts.js`` fills in the data, by their names.
"""

import json
import re
from importlib import metadata, resources
from pathlib import Path

import pytest

ASSETS = resources.files("mc2core.explore") / "assets"
CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"
MAKER = "vl-convert-python"


def place(field):
    """Of a document or a name on the map, whose axes run from 0 to 1."""
    scale = {"domain": [-0.02, 1.02], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def given(field, kind):
    """A colour, an opacity or a size as the page's script gives it."""
    return {"field": field, "type": kind, "scale": None}


#: Vega-Lite
MAP = {
    "width": "container",
    "height": "container",
    "encoding": {"x": place("x"), "y": place("y"), "color": given("colour", "nominal")},
    "layer": [
        {
            "data": {"name": "points"},
            "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
            "mark": {"type": "circle", "clip": True, "stroke": None},
            "encoding": {
                "opacity": given("opacity", "quantitative"),
                "size": given("size", "quantitative"),
                "tooltip": {"field": "document", "type": "nominal"},
            },
        },
        {
            "data": {"name": "names"},
            "mark": {"type": "text", "fontSize": 12, "fontWeight": "bold", "clip": True},
            "encoding": {"text": {"field": "name", "type": "nominal"}},
        },
    ],
}
#: probabilities of words, here as bars, and in the whole corpus as marks
BARS = {
    "width": "container",
    "height": {"step": 19},
    "data": {"name": "bars"},
    "encoding": {
        "y": {
            "field": "word",
            "type": "nominal",
            "sort": {"field": "place", "op": "min"},
            "title": None,
            "axis": {"labelLimit": 140, "labelFontSize": 12, "ticks": False, "domain": False},
        }
    },
    "layer": [
        {
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {
                "x": {
                    "field": "probability",
                    "type": "quantitative",
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
TREND = {
    "width": "container",
    "height": 110,
    "data": {"name": "trend"},
    "mark": {"type": "line", "point": {"size": 30}, "interpolate": "linear", "strokeWidth": 2},
    "encoding": {
        "x": {
            "field": "start",
            "type": "quantitative",
            "title": None,
            "scale": {"zero": False},
            "axis": {"format": "~d", "tickCount": 6},
        },
        "y": {
            "field": "share",
            "type": "quantitative",
            "title": None,
            "axis": {"format": "~%", "tickCount": 4},
        },
        "tooltip": {"field": "start", "type": "quantitative"},
    },
}
CHARTS = {"map": MAP, "bars": BARS, "trend": TREND}


def made():
    """Texts of the assets: the charts in Vega, and Vega-Embed with all it needs as one script without network."""
    import vl_convert

    look = {"background": "transparent", "config": {"view": {"stroke": None}}}
    charts = {name: vl_convert.vegalite_to_vega({**chart, **look}) for name, chart in CHARTS.items()}
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return {
        "charts.json": json.dumps(charts, indent=1) + "\n",
        "vega.js": f"// bundled by {MAKER} {metadata.version(MAKER)}; licences: vega.LICENSE\n{library}\n",
    }


def version_of_the_assets():
    return re.match(rf"// bundled by {MAKER} (\S+);", (ASSETS / "vega.js").read_text("utf-8"))[1]


def installed_version():
    try:
        return metadata.version(MAKER)
    except metadata.PackageNotFoundError:
        return None


def test_the_assets_are_of_the_version_that_is_pinned():
    assert f"\n{MAKER}=={version_of_the_assets()}\n" in CONSTRAINTS.read_text("utf-8")


def test_made_anew_the_assets_are_the_same():
    if installed_version() != (version := version_of_the_assets()):
        pytest.skip(f"{MAKER} {version} is not installed: pip install -c constraints.txt '.[workflow]'")
    for name, text in made().items():
        assert (ASSETS / name).read_text("utf-8") == text, name


if __name__ == "__main__":
    for name, text in made().items():
        (ASSETS / name).write_text(text, encoding="utf-8")
