"""The XML scanner against expat, cut anywhere, and what it refuses."""

from xml.parsers import expat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.sources.formats import xmlscan, xmlstream

FIELDS = xmlstream.Fields({"a": "a", "a/b": "b", "a/b@k": "k", "a/c/d": "d", "e": "e"})
TOKENS = [
    "<a>", "</a>", "<a/>", "<b>", "</b>", '<b k="v1">', "<b k = 'v2' l=''/>", "<c>", "</c>", "<d>", "</d>", "<d/>",
    "<e>", "</e >", "<i x='>'>", "</i>", "text", " ", "\n", "\r\n", "\r", "&amp;", "&lt;", "&#233;", "&#x1F600;",
    "&quot;", "é", "😀", "<!-- <a> -->", "<![CDATA[<b>&]]>", "<?p <a>?>", "&undefined;", "&#0;", "<", "<a", "&",
    "<b k=v>", "<b k>", "</b", "<1>", "\x01", "<!x>",
]  # fmt: skip
ODD = [b"", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xef\xbf\xbf"]
PATHS = {("a",), ("a", "b"), ("a", "c", "d"), ("e",)}
TEXTS = {("a", "b"), ("a", "c", "d"), ("e",)}


def by_expat(content):
    """Fields as expat sees them, or None where it refuses the document."""
    found, path, texts = [], [], []
    parser = expat.ParserCreate()

    def start(name, attributes):
        path.append(name)
        if tuple(path[1:]) == ("a", "b") and "k" in attributes:
            found.append(("k", attributes["k"]))
        texts.append("")

    def data(piece):
        for k in range(len(texts)):
            texts[k] += piece

    def end(name):
        here, content = tuple(path[1:]), texts.pop()
        if here in PATHS:
            found.append((here[-1], content if here in TEXTS else ""))
        path.pop()

    parser.StartElementHandler, parser.CharacterDataHandler, parser.EndElementHandler = start, data, end
    try:
        parser.Parse(content, True)
    except expat.ExpatError:
        return None
    return found


def by_us(content, size):
    scanner, found = xmlscan.Scanner(FIELDS.tables), []
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    for piece in [*pieces, None]:
        events, text, error = scanner.feed(piece or b"", is_last=piece is None)
        for number, begin, end in events:
            if number != xmlscan.ROOT:
                found.append((FIELDS.names[number], text[begin:end].decode()))
        if error:
            return None
    return found


well_formed = st.recursive(
    st.sampled_from(TOKENS[16:31]),
    lambda inner: st.builds(
        lambda name, parts, k: f'<{name}{k}>{"".join(parts)}</{name}>',
        st.sampled_from("abcdei"), st.lists(inner, max_size=4), st.sampled_from(["", ' k="v"', " l='>' k='w'"]),
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.lists(well_formed, max_size=6), st.lists(st.sampled_from(TOKENS), max_size=12)),
    st.one_of(st.just(1 << 18), st.integers(1, 40)),
)
def test_what_expat_reads_is_read_and_what_it_refuses_is_refused(parts, size):
    content = f"<r>{''.join(parts)}</r>".encode()
    assert by_us(content, size) == by_expat(content)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=8), st.sampled_from(ODD))
def test_text_is_utf_8_or_refused(some, odd):
    content = b"<r><e>" + some.translate(None, b"<&]") + odd + b"</e></r>"
    assert by_us(content, 3) == by_expat(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<?xml version="1.0" encoding="latin-1"?><r/>', "x.xml is encoded as latin-1; UTF-8 is needed"),
        ("<r/>".encode("utf-16"), "is not well-formed XML"),
        (b"<r>" + b"<e k='" + b"x" * 11_000_000, "has a text or tag of more than 10485760 bytes after 0"),
        (b"<r>" + b"<!--" + b"x" * 11_000_000, "has a text or tag of more than 10485760 bytes after 0"),
        (b"<r></r>more", r"is not well-formed XML: content outside of the root element \(byte 7\)"),
        (b"<!DOCTYPE r SYSTEM 'x'><!DOCTYPE r [<!ENTITY a 'b'>]><r/>", "has declarations of its own"),
    ],
)
def test_what_no_dump_has_is_refused(tmp_path, content, message):
    (tmp_path / "x.xml").write_bytes(content)
    with pytest.raises(xmlstream.DamagedInput, match=message) as caught:
        list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["a"]))
    assert not caught.value.truncated


def test_a_mark_of_byte_order_is_dropped(tmp_path):
    content = b'<?xml version="1.0" encoding="UTF-8"?>\n<r><a><b k="1">x</b></a></r>\n'
    (tmp_path / "x.xml").write_bytes(b"\xef\xbb\xbf" + content)
    assert list(xmlstream.records(tmp_path / "x.xml", "r", FIELDS, ["a"])) == [("a", [("k", b"1"), ("b", b"x")])]
