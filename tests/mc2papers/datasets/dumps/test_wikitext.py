"""Wiki mark-up to text and text to counts: the compiled scanners against their plain or independent twins."""

import re
import time
from collections import Counter

import pytest
from helpers.paths import DATA_FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.base import xmlstream
from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.dumps import wikitext
from mc2papers.datasets.dumps.wikitext import Namespaces

FOLDER = DATA_FOLDER / "wikipedia"
DUMPS = sorted(FOLDER.glob("enwiki-*.bz2"))
needs_data_folder = pytest.mark.skipif(
    len(DUMPS) < 5, reason=f"the real Wikipedia files are not in {FOLDER} (set MC2_DATA_FOLDER)"
)


def words(markup):
    return words_of(wikitext.plain_text(markup.encode())[0].decode(), 1, ())


# -- mark-up -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("'''Bold''' and ''italic''", "bold and italic"),
        ("[[bus]]es run", "buses run"),
        ("a [[target|label]] b [[plain target]]", "a label b plain target"),
        ("[[File:x.jpg|thumb|a [[link]] in a caption]] after", "after"),
        ("[[ image :x.jpg]] after [[:Category:shown]]", "after category shown"),
        ("{{box|a={{inner|b}}|c}} text", "text"),
        ("{|class=x\n|-\n| cell {{t|a}}\n{|\n| inner\n|}\n|}\ntext", "text"),
        ("{{box\n|a=1\n|}} text", "text"),
        ("one<ref>two }} [[</ref> three<ref name=x/> four", "one three four"),
        ("h<sub>two</sub>o a<br>b", "htwoo a b"),
        ("<nowiki>{{kept}} [[as is|x]]</nowiki>", "kept as is x"),
        ("<math>x {y}</math>z <!-- hidden --> w <!-- hidden to the end", "z w"),
        ("[http://a.org/path label] and http://b.org/x after", "label and after"),
        ("== Head ==\n* item\n__NOTOC__ x__y", "head item x y"),
        ("[[fr:Mot]] [[zh-min-nan:x]] [[simple:x]] [[wikt:word]]", "wikt word"),
        ("caf&eacute; &amp;nbsp; x&nbsp;y", "cafe nbsp x y"),
        ("{{open [[link]] rest", "open link rest"),
        ("[[open {{t}} rest", "open rest"),
        ("{{a [[b}} c", "c"),
        ("x }} y ]] z", "x y z"),
        ("1 < 2 and a <b unclosed", "and a b unclosed"),
    ],
)
def test_markup(markup, expected):
    assert words(markup) == expected.split()


def test_categories_are_named_in_their_canonical_form():
    markup = (
        "[[Category:of_trees |sort]] [[category: of  trees]] <!-- [[Category:No]] --> <nowiki>[[Category:No]]</nowiki>"
    )
    assert wikitext.plain_text(markup.encode())[1] == ["Of trees", "Of trees"]
    german = Namespaces(["Datei"], ["Kategorie"])
    plain, names = wikitext.plain_text(b"[[Kategorie:Baum]] [[Datei:x.png|weg]] da", german)
    assert (plain.split(), names) == ([b"da"], ["Baum"])


# a tree of mark-up that knows its own text: the independent twin of the compiled scanner
_word = st.text("abcxyz", min_size=1, max_size=5)
_leaf = _word.map(lambda word: (word, word))


def _join(parts):
    return " ".join(markup for markup, _ in parts), " ".join(plain for _, plain in parts)


def _wrapped(before, after, shown):
    return lambda inner: (before + inner[0] + after, inner[1] if shown else "")


def _nodes(children):
    inner = st.lists(children, min_size=1, max_size=4).map(_join)
    flat = st.lists(_leaf, min_size=1, max_size=3).map(_join)
    return st.one_of(
        inner.map(_wrapped("{{t|", "}}", False)),
        inner.map(_wrapped("\n{|\n| ", "\n|}\n", False)),
        inner.map(_wrapped("<ref>", "</ref>", False)).filter(lambda node: node[0].count("</ref>") == 1),
        inner.map(_wrapped("[[File:x|", "]]", False)),
        flat.map(_wrapped("[[target|", "]]", True)),
        flat.map(_wrapped("[[", "]]", True)),
        inner.map(_wrapped("'''", "'''", True)),
        inner.map(_wrapped("<b>", "</b>", True)),
        inner.map(_wrapped("\n== ", " ==\n", True)),
        flat.map(_wrapped("<!-- ", " -->", False)),
        flat.map(_wrapped("[http://a.b/c ", "]", True)),
        flat.map(_wrapped("<nowiki>{{", "</nowiki>", True)),
    )


@settings(max_examples=120, deadline=None)
@given(st.lists(st.recursive(_leaf, _nodes, max_leaves=12), max_size=6).map(_join))
def test_markup_gives_the_text_it_was_made_from(pair):
    assert words(pair[0]) == pair[1].split()


@pytest.mark.parametrize(
    "piece", ["{{", "[[", "{{a|[[b|", "<ref>", "<b", "<!--", "{|\n", "[[a:", "]]}}", "__A", "'''", "http://"]
)
def test_deep_markup_takes_linear_time(piece):
    wikitext.plain_text(piece.encode() * 10)
    spent = []
    for n in (10_000, 80_000):
        start = time.process_time()
        wikitext.plain_text(piece.encode() * n)
        spent.append(time.process_time() - start)
    assert spent[1] < 40 * max(spent[0], 2e-3)  # 8 times the text; quadratic work would take 64 times


@needs_data_folder
def test_words_agree_with_mwparserfromhell():
    parser = pytest.importorskip("mwparserfromhell")
    hidden = {"ref", "references", "math", "gallery", "table", "timeline", "source", "syntaxhighlight"}
    outside = re.compile(r"\s*(?:file|image|category|[a-z]{2,3}|[a-z]+(?:-[a-z]+)+|simple)\s*:", re.IGNORECASE)
    both = ours = theirs = 0
    fields = xmlstream.Fields({"page": "page", "page/ns": "ns", "page/revision/text": "text"})
    for _, page in xmlstream.records(DUMPS[3], "mediawiki", fields, ["page"]):
        found = {name: value.decode() for name, value in page}
        body = found["text"]
        if not 2000 < len(body) < 30_000 or found["ns"] != "0":
            continue
        code = parser.parse(body)
        nodes = [link for link in code.filter_wikilinks() if outside.match(str(link.title))]
        for node in [*nodes, *code.filter_tags(matches=lambda tag: str(tag.tag) in hidden)]:
            if code.contains(node):
                code.remove(node)
        expected = Counter(words_of(re.sub(r"https?://\S+|__[A-Z]+__", " ", code.strip_code()), 3, ()))
        found = Counter(words_of(wikitext.plain_text(body.encode())[0].decode(), 3, ()))
        both, ours, theirs = both + (found & expected).total(), ours + found.total(), theirs + expected.total()
    assert theirs > 5000
    assert both > 0.99 * ours
    assert both > 0.99 * theirs
