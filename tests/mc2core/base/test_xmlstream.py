"""Fields of XML records: as in the tree of the whole document, wherever it is cut, and what is refused."""

import bz2
import gzip
import itertools
import lzma
from unittest import mock
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.base import xmlstream

FIELDS = xmlstream.Fields({"x": "x", "x/a": "a", "x/a/b": "b", "x/a/b@k": "k", "x/a/c/d": "d", "x/e": "e"})
TOKENS = [
    "<a>", "</a>", "<a/>", "<b>", "</b>", '<b k="v1">', "<b k = 'v2' l=''/>", "<c>", "</c>", "<d>", "</d>", "<d/>",
    "<e>", "</e >", "<i x='>'>", "</i>", "text", " ", "\n", "\r\n", "\r", "&amp;", "&lt;", "&#233;", "&#x1F600;",
    "&quot;", "é", "😀", "<!-- <a> -->", "<![CDATA[<b>&]]>", "<?p <a>?>", "&undefined;", "&#0;", "<", "<a", "&",
    "<b k=v>", "<b k>", "</b", "<1>", "\x01", "<!x>",
]  # fmt: skip
ODD = [b"", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xef\xbf\xbf"]
PATHS = {("a",), ("a", "b"), ("a", "c", "d"), ("e",)}
TEXTS = {("a", "b"), ("a", "c", "d"), ("e",)}


def by_tree(content):
    """Fields below x as the tree has them, or None where there is no tree."""
    found = []

    def walk(element, path):
        if path == ("a", "b") and "k" in element.attrib:
            found.append(("k", element.attrib["k"]))
        for inner in element:
            if isinstance(inner.tag, str):
                walk(inner, (*path, inner.tag))
        if path in PATHS:
            found.append((path[-1], "".join(element.itertext()) if path in TEXTS else ""))

    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError:
        return None
    walk(root.find("x"), ())
    return found


def by_us(folder, content, size):
    (folder / "x.xml").write_bytes(content)
    with mock.patch.object(xmlstream, "BLOCK_BYTES", size):
        try:
            ((_, found),) = xmlstream.records(folder / "x.xml", "r", FIELDS, ["x"])
        except xmlstream.DamagedInput:
            return None
    return [(name, text.decode()) for name, text in found]


well_formed = st.recursive(
    st.sampled_from(TOKENS[16:31]),
    lambda inner: st.builds(
        lambda name, parts, k: f'<{name}{k}>{"".join(parts)}</{name}>',
        st.sampled_from("abcdei"), st.lists(inner, max_size=4), st.sampled_from(["", ' k="v&lt;"', " l='>' k='w'"]),
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.lists(well_formed, max_size=6), st.lists(st.sampled_from(TOKENS), max_size=12)),
    st.one_of(st.just(1 << 18), st.integers(1, 40)),
)
def test_fields_are_those_of_the_tree_and_other_data_are_refused(tmp_path_factory, parts, size):
    content = f"<r><x>{''.join(parts)}</x></r>".encode()
    assert by_us(tmp_path_factory.getbasetemp(), content, size) == by_tree(content)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=8), st.sampled_from(ODD))
def test_text_is_utf_8_or_refused(tmp_path_factory, some, odd):
    text = some.translate(None, b"<&]\r\x00") + odd
    content = b"<r><x><e>" + text + b"</e></x></r>"
    found = by_us(tmp_path_factory.getbasetemp(), content, 3)
    assert found == by_tree(content)
    try:
        assert found in (None, [("e", text.decode())])  # None: control characters, and two that are none
    except UnicodeDecodeError:
        assert found is None


LAUGHS = "".join(f"<!ENTITY {name} '{f'&{inner};' * 10}'>" for inner, name in itertools.pairwise("abcdefghij"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<?xml version="1.0" encoding="latin-1"?><r/>', "x.xml is encoded as latin-1; UTF-8 is needed"),
        ("<r/>".encode("utf-16"), "is neither gzip, bzip2, xz nor plain XML"),
        (
            b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(40),
            "x.xml is a 7z archive; give the file in it, or the same packed by",
        ),
        (b"<r>" + b"<e k='" + b"x" * 11_000_000, "has a text or tag of more than 10485760 bytes after 0"),
        (b"<r>" + b"<!--" + b"x" * 11_000_000, "has a text or tag of more than 10485760 bytes after 0"),
        (b"<r><x><e>" + b"<i>y</i>" * 2_000_000 + b"z" * 9_000_000, "has a text or tag of more than 10485760 bytes"),
        (b"<r></r>more", "is not well-formed XML: junk after document element: line 1, column 7"),
        (b"<!DOCTYPE r SYSTEM 'x'><!DOCTYPE r [<!ENTITY a 'b'>]><r/>", "is not well-formed XML"),
        (b"<!DOCTYPE r SYSTEM 'x' []><r/>", "has its own declarations"),
        (b"<!DOCTYPE r SYSTEM 'x'><r><e>&a;</e></r>", "is not well-formed XML: undefined entity 'a'"),
        (b"<r>" + b"<x>" * 300, "has elements more than 256 deep, which is not allowed"),
    ],
)
def test_what_no_dump_has_is_refused(tmp_path, content, message):
    (tmp_path / "x.xml").write_bytes(content)
    with pytest.raises(xmlstream.DamagedInput, match=message) as caught:
        list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"]))
    assert not caught.value.truncated


@pytest.mark.parametrize("place", ["<r><x><e>&j;</e></x></r>", "<r k='&j;'/>"])
def test_no_entity_is_expanded(tmp_path, place):
    """A billion laughs, which expat alone would expand up to a limit of its own."""
    (tmp_path / "x.xml").write_text(f"<!DOCTYPE r [<!ENTITY a 'ha'>{LAUGHS}]>{place}")
    with pytest.raises(xmlstream.DamagedInput, match="has its own declarations"):
        list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"]))


def test_a_damage_leaves_the_records_before_it(tmp_path):
    content = b"<!DOCTYPE r SYSTEM 'x'>\n<r><x><e>1</e></x><x><e>2</e></x>\n<x><e>&a;</e></x><x><e>4</e></x></r>"
    (tmp_path / "x.xml").write_bytes(content)
    found = []
    with pytest.raises(xmlstream.DamagedInput) as caught:
        found.extend(fields for _, fields in xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"]))
    assert found == [[("e", b"1")], [("e", b"2")]]
    assert caught.value.truncated
    assert str(caught.value).endswith("x.xml is cut off or damaged after 2 complete records: undefined entity 'a'")


def test_too_deep_nesting_is_damage_and_not_a_cut_file(tmp_path):
    (tmp_path / "x.xml").write_bytes(b"<r><x/>" + b"<x>" * 300)
    with pytest.raises(xmlstream.DamagedInput, match=r"x\.xml has elements more than 256 deep") as caught:
        list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"]))
    assert not caught.value.truncated


def test_a_mark_of_byte_order_is_dropped(tmp_path):
    content = b'<?xml version="1.0" encoding="UTF-8"?>\n<r><x><a><b k="1">x</b></a></x></r>\n'
    (tmp_path / "x.xml").write_bytes(b"\xef\xbb\xbf" + content)
    assert list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"])) == [
        ("x", [("k", b"1"), ("b", b"x"), ("a", b"")])
    ]


@pytest.mark.parametrize(
    ("compress", "rest", "message"),
    [
        (gzip.compress, bytes(512), None),
        (gzip.compress, b"rubbish", "after 7 inflated bytes: Not a gzipped file .*; 1 complete records"),
        (bz2.compress, b"rubbish", None),
        (lzma.compress, b"rubbish", None),
    ],
)
def test_bytes_after_the_last_stream_are_ignored_if_allowed(tmp_path, compress, rest, message):
    content = compress(b"<r>") + compress(b"<x/>") + (b"" if message else compress(b"</r>")) + rest
    (tmp_path / "x.xml").write_bytes(content)
    if message is None:
        assert list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"])) == [("x", [])]
        return
    found = []
    with pytest.raises(xmlstream.DamagedInput, match=message) as caught:
        found.extend(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["x"]))
    assert (found, caught.value.truncated) == ([("x", [])], True)
