"""Small dumps of Wikipedia."""

import bz2

# -- dumps ---------------------------------------------------------------------------------------------------
SITE = (
    '<siteinfo><namespaces><namespace key="0"/><namespace key="6">Datei</namespace>'
    '<namespace key="14">Kategorie</namespace><namespace key="2">Benutzer</namespace></namespaces></siteinfo>'
)


def page(key, title="", body="some words here", revision=None, ns=0, extra="", inside="", redirect=""):
    number = f"<ns>{ns}</ns>" if ns is not None else ""
    revision = key * 10 if revision is None else revision
    return (
        f"<page><title>{title or f'Title {key}'}</title>{number}<id>{key}</id>{redirect}<revision><id>{revision}</id>"
        f"<timestamp>2020-01-01T00:00:00Z</timestamp><contributor><username>A</username><id>1</id></contributor>{inside}"
        f'<text xml:space="preserve">{body}</text></revision>{extra}</page>'
    )


def dump(pages, schema="0.10", site=SITE, end="</mediawiki>"):
    space = f' xmlns="http://www.mediawiki.org/xml/export-{schema}/"' if schema else ""
    return f"<mediawiki{space}>{site}{''.join(pages)}{end}"


def write(path, content, compress=bz2.compress):
    path.write_bytes(compress(content if isinstance(content, bytes) else content.encode()))
    return path


def multistream(tmp_path, n_pages=23, in_stream=3):
    pages = [
        page(key, body=f"common word{'abcdefghij'[key % 10] * 3} [[Kategorie:C{key % 4}]]") for key in range(1, n_pages)
    ]
    streams, index, offset = [bz2.compress(dump([], end="").encode())], [], 0
    for first in range(0, len(pages), in_stream):
        offset = sum(map(len, streams))
        index += [f"{offset}:{key + 1}:Title {key + 1}" for key in range(first, min(first + in_stream, len(pages)))]
        streams.append(bz2.compress("".join(pages[first : first + in_stream]).encode()))
    streams.append(bz2.compress(b"</mediawiki>\n"))
    path = tmp_path / "multistream.xml.bz2"
    path.write_bytes(b"".join(streams))
    return path, write(tmp_path / "index.txt.bz2", "\n".join([*index, ""]))
