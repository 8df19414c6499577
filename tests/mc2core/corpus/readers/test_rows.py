"""Rows as people have them: bad ones told together, gzip, semicolons, folders of text, Excel; how they are cleaned."""

import gzip
import json
import re
import subprocess
from decimal import Decimal
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.commands import mc2

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.base import records
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.building.rows import BadRows
from mc2core.corpus.readers.reading import read_own
from mc2core.corpus.readers.table import read_table, read_vocabulary

CSV = "text,year,tags\nred lake,1990,a\nblue sea,soon,b\ngreen hill\nred hill,1992,c\nred sea,never,d\n"


class TestBadRows:
    def test_all_are_told_in_one_run(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_bytes(CSV.encode() + b"\xe9,1,z\n")
        layout = Layout("text", contexts={"year": ContextColumn("year", "number")})
        with pytest.raises(ValueError, match="cannot be read") as caught:
            read_table(path, layout)
        assert str(caught.value).splitlines() == [
            f"{path}: 4 of 6 rows cannot be read:",
            "  line 3, column 'year': found 'soon'; a finite number, an empty cell or a code of --missing is needed",
            "  line 4 has 1 field, but the header has 3",
            "  line 6, column 'year': found 'never'; a finite number, an empty cell or a code of --missing is needed",
            "  line 7 is not UTF-8 text: byte 0xe9 at place 1",
        ]
        for allowed in (3, 0):
            with pytest.raises(ValueError, match="4 of 6 rows"):
                read_table(path, layout, bad=BadRows(allowed))
        corpus, dropped = read_table(path, layout, bad=(bad := BadRows(4)))
        assert corpus.contexts["year"].tolist() == [1990, 1992]
        assert [(one.what, one.number) for one in dropped] == [("documents", 4)]
        assert [row.place for row in bad.first] == [3, 4, 6, 7]

    def test_the_option_that_leaves_them_out_is_named_if_any(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text(CSV)
        with pytest.raises(
            ValueError, match=r"3 of 5 rows cannot be read \(--skip-bad 3, 'skip_bad' in a configuration, leaves"
        ):
            read_own(path, {"text": "text", "contexts": ["year:number"]})
        assert read_own(path, {"text": "text", "contexts": ["year:number"], "skip_bad": 3})[0].n_documents == 2

    def test_no_more_than_twenty_are_shown(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_text("{\n" * 50 + '{"t": "lake"}\n')
        with pytest.raises(ValueError, match="50 of 51 rows cannot be read:") as caught:
            read_table(path, Layout("t"))
        assert len(str(caught.value).splitlines()) == 22
        assert str(caught.value).endswith("\n  and 30 more")
        path.write_text("{\n{\n")
        with pytest.raises(ValueError, match="2 of 2 rows"):
            read_table(path, Layout("t"), bad=BadRows(5))

    def test_left_out_into_a_file(self, tmp_path, capsys, output_of):
        (tmp_path / "a.csv").write_text(CSV)
        command = ["import", str(tmp_path / "a.csv"), "--text", "text", "--context", "year:number"]
        assert main([*command, "--out", str(tmp_path / "own")]) == 2
        assert capsys.readouterr().err.count("\n  line ") == 3
        assert "- 3 documents: bad rows" in output_of([*command, "--skip-bad", "3", "--out", tmp_path / "own"])
        rows = [line.split("\t") for line in (tmp_path / "own/bad_rows.tsv").read_text().splitlines()]
        assert [row[:2] for row in rows] == [["row", "column"], ["line 3", "year"], ["line 4", ""], ["line 6", "year"]]
        assert Corpus.load(tmp_path / "own", verify=True).n_documents == 2
        again = ["--skip-bad", "3", "--overwrite", "--out", str(tmp_path / "own")]
        mc2([*command, *again])  # replaced as a whole

    def test_the_id_of_one_is_free(self, tmp_path):
        (tmp_path / "a.csv").write_text("t,n,id\nlake,x,k\nsea,1,k\n")
        layout = Layout("t", contexts={"n": ContextColumn("n", "number")}, id="id")
        assert read_table(tmp_path / "a.csv", layout, bad=BadRows(1))[0].documents["id"].tolist() == ["k"]


class TestFiles:
    @pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
    def test_compressed_tables_are_read(self, tmp_path, name):
        text = "t,n\nlake,1\n" if "csv" in name else json.dumps({"t": "lake", "n": 1}) + "\n"
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()))
        corpus, _ = read_own(path, {"text": "t", "contexts": ["n:number"]})
        assert (corpus.vocabulary, corpus.contexts["n"].tolist()) == (["lake"], [1.0])
        for damaged in (gzip.compress(text.encode() * 100)[:-9], b"not gzip"):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=rf"{name} is damaged or cut off"):
                read_own(path, {"text": "t"})

    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "texts"])
    @pytest.mark.parametrize(
        ("encoding", "hint"),
        [
            ("utf-16", "is UTF-16 text; UTF-8 is needed; iconv -f utf-16 -t utf-8 OLD > NEW converts it"),
            ("utf-16-le", "is UTF-16 text; UTF-8 is needed; iconv -f utf-16le -t utf-8 OLD > NEW converts it"),
            ("utf-16-be", "is UTF-16 text; UTF-8 is needed; iconv -f utf-16be -t utf-8 OLD > NEW converts it"),
            ("utf-32", "is UTF-32 text; UTF-8 is needed; iconv -f utf-32 -t utf-8 OLD > NEW converts it"),
            ("utf-32-le", "is UTF-32 text; UTF-8 is needed; iconv -f utf-32le -t utf-8 OLD > NEW converts it"),
            ("utf-32-be", "is UTF-32 text; UTF-8 is needed; iconv -f utf-32be -t utf-8 OLD > NEW converts it"),
            ("cp1252", "from Windows-1252 or Latin-1 by iconv -f cp1252 -t utf-8 OLD > NEW"),
        ],
    )
    def test_another_encoding_is_named_with_what_converts_it(self, tmp_path, name, encoding, hint):
        text = {
            "a.csv": "t\n\u201clake\u201d\n",
            "a.jsonl": '{"t": "\u201clake\u201d"}\n',
            "texts": "\u201clake\u201d",
        }[name]
        path = tmp_path / name if name != "texts" else tmp_path / "texts/1.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode(encoding))
        layout = {"text": "text" if name == "texts" else "t"}
        with pytest.raises(ValueError, match=re.escape(hint)):
            read_own(tmp_path / name, layout)
        command = ["iconv", "-f", re.search("iconv -f (\\S+)", hint)[1], "-t", "utf-8", str(path)]
        path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        assert read_own(tmp_path / name, layout)[0].vocabulary == ["lake"]

    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "vocabulary.txt"])
    def test_line_ends_of_old_macs_are_named(self, tmp_path, name):
        path, row = tmp_path / name, '{"t": "lake"}' if "json" in name else "lake"
        path.write_bytes(f"t\r{row}\r{row}\r".encode() if "csv" in name else f"{row}\r{row}".encode())
        with pytest.raises(ValueError, match=rf"{name} has line ends of old Macs \(CR\); LF is needed; tr '\\r' '\\n'"):
            read_vocabulary(path) if "vocabulary" in name else read_own(path, {"text": "t"})

    def test_a_csv_of_tabs_is_read(self, tmp_path):
        (tmp_path / "a.csv").write_text("text\tn\nlake, sea; hill\t3.5\n")
        corpus, _ = read_own(tmp_path / "a.csv", {"text": "text", "contexts": ["n:number"]})
        assert (corpus.vocabulary, corpus.contexts["n"].tolist()) == (["hill", "lake", "sea"], [3.5])

    def test_a_key_that_no_record_has_is_named_with_those_there_are(self, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"text": "lake", "year": 1}\n{"text": "sea", "who": 2}\n')
        with pytest.raises(ValueError, match=r"has the key 'txt'; did you mean 'text'\? \(keys: 'text, year, who'\)"):
            read_own(tmp_path / "a.jsonl", {"text": "txt"})

    def test_a_csv_of_semicolons_has_decimal_commas(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text('text;n;tags\nlake, sea;3,5;"a;b"\nhill;4;c\n')
        corpus, _ = read_own(path, {"text": "text", "contexts": ["n:number", "tags:bag"]})
        assert corpus.contexts["n"].tolist() == [3.5, 4.0]
        assert corpus.context_names["tags"] == ["a", "b", "c"]
        path.write_text("text,tags\nlake,a;b\n")
        assert read_own(path, {"text": "text", "contexts": ["tags:bag"]})[0].context_names["tags"] == ["a", "b"]

    def test_a_folder_of_text_files(self, tmp_path):
        folder = tmp_path / "texts"
        for name, text in (("x/1.txt", "lake sea"), ("x/2.txt", "hill"), ("y/1.txt", "sea"), ("y/notes.md", "no")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        corpus, _ = read_own(folder, {"id": "file", "labels": "folder"})
        assert corpus.vocabulary == ["hill", "lake", "sea"]
        assert corpus.content.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1]]
        assert corpus.documents["file"].tolist() == ["x/1.txt", "x/2.txt", "y/1.txt"]
        assert (corpus.labels.tolist(), corpus.label_names) == ([0, 0, 1], ["x", "y"])
        corpus.save(tmp_path / "earlier")
        like = Corpus.load(tmp_path / "earlier")
        assert read_own(folder, {}, like)[0].content.toarray().tolist() == corpus.content.toarray().tolist()
        (folder / "y/1.txt").write_bytes(b"a\xff")
        with pytest.raises(ValueError, match=r"texts, file 'y/1\.txt' is not UTF-8 text: byte 0xff at place 2"):
            read_own(folder, {})
        (folder / "x/2.txt").write_bytes("halb \u00bd".encode("latin-1"))
        with pytest.raises(ValueError, match="2 of 3 rows cannot be read") as caught:
            read_own(folder, {})
        assert str(caught.value).count("iconv -f cp1252 -t utf-8 OLD > NEW") == 1  # for all of them
        command = ["iconv", "-f", "cp1252", "-t", "utf-8", str(folder / "x/2.txt")]
        (folder / "x/2.txt").write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        (folder / "y/1.txt").write_text("sea")
        assert read_own(folder, {"min_letters": 1})[0].vocabulary == ["halb", "lake", "sea", "\u00bd"]
        Corpus([[1]], ["lake"]).save(tmp_path / "saved")
        with pytest.raises(ValueError, match="saved is a saved corpus already"):
            read_own(tmp_path / "saved", {})
        (tmp_path / "none").mkdir()
        with pytest.raises(ValueError, match="has no document"):
            read_own(tmp_path / "none", {})

    def test_upper_case_endings_are_texts_and_hidden_files_left_out(self, tmp_path, capsys):
        folder = tmp_path / "texts"
        names = ["1.txt", "2.Txt", "3.TXT", "._1.txt", ".hidden.TXT", ".git/4.txt", "sub/._5.txt", "sub/notes.md"]
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("lake")
        corpus, dropped = read_own(folder, {"id": "file"})
        assert corpus.documents["file"].tolist() == ["1.txt", "2.Txt", "3.TXT"]
        assert [str(one) for one in dropped] == [
            "4 files: hidden: a name that begins with a dot",
            "1 file: not named .txt",
        ]
        mc2(f"import {folder} --out {tmp_path}/own")
        assert "- 4 files: hidden: a name that begins with a dot\n- 1 file: not" in capsys.readouterr().out
        for name in ("1.txt", "2.Txt", "3.TXT"):
            (folder / name).unlink()
        with pytest.raises(
            ValueError, match=r"texts has no document: of its 5 files none is named \.txt and not hidden"
        ):
            read_own(folder, {})

    @pytest.mark.parametrize("name", ["a.CSV", "a.Tsv", "a.JSONL", "a.NDJSON.GZ", "a.csv.Gz", "a.Parquet", "a.XLSX"])
    def test_the_case_of_an_ending_does_not_matter(self, tmp_path, name):
        frame, path = pd.DataFrame({"t": ["lake", "sea"], "n": [1, 2]}), tmp_path / name
        if "parquet" in name.lower():
            frame.to_parquet(path)
        elif "xlsx" in name.lower():
            frame.to_excel(tmp_path / "a.xlsx", index=False)
            (tmp_path / "a.xlsx").rename(path)
        else:
            is_json, separator = "json" in name.lower(), "\t" if "tsv" in name.lower() else ","
            text = frame.to_json(orient="records", lines=True) if is_json else frame.to_csv(sep=separator, index=False)
            path.write_bytes(gzip.compress(text.encode()) if "gz" in name.lower() else text.encode())
        corpus, _ = read_own(path, {"text": "t", "contexts": ["n:number"]})
        assert (corpus.vocabulary, corpus.contexts["n"].tolist()) == (["lake", "sea"], [1.0, 2.0])

    def test_the_first_visible_sheet_of_an_excel_file(self, tmp_path):
        import datetime

        book = openpyxl.Workbook()
        book.active.sheet_state = "hidden"
        book.active.append(["text", "year"])
        book.active = book.create_sheet()
        for row in (
            ["text", "year", "when"],
            ["lake sea", 1990, datetime.date(2019, 7, 2)],
            [None] * 3,
            ["hill", None, None],
        ):
            book.active.append(row)
        book.save(tmp_path / "a.xlsx")
        corpus, _ = read_own(tmp_path / "a.xlsx", {"text": "text", "contexts": ["year:number", "when:date"]})
        assert corpus.vocabulary == ["hill", "lake", "sea"]
        assert np.array_equal(corpus.contexts["year"], [1990, np.nan], equal_nan=True)
        assert corpus.contexts["when"][0] == pytest.approx(2019 + 182 / 365)
        (tmp_path / "a.xlsx").write_bytes((tmp_path / "a.xlsx").read_bytes()[:-40])
        with pytest.raises(ValueError, match=r"a\.xlsx is not a complete Excel file"):
            read_own(tmp_path / "a.xlsx", {"text": "text"})

    def test_a_workbook_with_any_bit_changed_is_read_or_refused(self, tmp_path):
        book, path = openpyxl.Workbook(), tmp_path / "a.xlsx"
        for row in (["text", "year"], *(["lake sea", 1990 + j] for j in range(20))):
            book.active.append(row)
        book.save(path)
        whole, refused = path.read_bytes(), 0
        for place in range(0, 8 * len(whole), 331):
            damaged = bytearray(whole)
            damaged[place // 8] ^= 1 << place % 8
            path.write_bytes(damaged)
            try:
                read_own(path, {"text": "text"})
            except ValueError as error:
                refused += "is not a complete Excel file" in str(error)
        assert refused > 20

    def test_a_column_with_blanks_is_told_how_to_get_a_name(self, tmp_path):
        (tmp_path / "a.csv").write_text("text,Date of speech\nlake,1990\n")
        said = re.escape(
            "such as 'date_of_speech': --context 'date_of_speech=Date of speech:date' (in Python contexts="
        )
        with pytest.raises(ValueError, match=said):
            read_own(tmp_path / "a.csv", {"text": "text", "contexts": ["Date of speech:date"]})

    def test_an_encrypted_workbook_is_named_as_such(self, tmp_path):
        (tmp_path / "a.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000))
        with pytest.raises(ValueError, match=r"a\.xlsx is encrypted, or of Excel before 2007; save it as .* password"):
            read_own(tmp_path / "a.xlsx", {"text": "text"})

    @pytest.mark.parametrize("dimension", ["A1:A5", "A1:XFD1048576"])
    def test_a_sheet_that_states_another_size_is_read_whole(self, tmp_path, dimension):
        book = openpyxl.Workbook()
        for j in range(21):
            book.active.append(["text", "year"] if j == 0 else ["lake", 1989 + j])
        book.active["XFD1048576"].number_format = "0.00"  # a cell without a value, at the end of the sheet
        book.save(tmp_path / "whole.xlsx")
        sheet = "xl/worksheets/sheet1.xml"
        with ZipFile(tmp_path / "whole.xlsx") as whole, ZipFile(tmp_path / "a.xlsx", "w", ZIP_DEFLATED) as changed:
            for name in whole.namelist():
                changed.writestr(
                    name,
                    re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="%b"' % dimension.encode(), whole.read(name)),
                )
            assert dimension.encode() in changed.read(sheet)
        corpus, _ = read_own(tmp_path / "a.xlsx", {"text": "text", "contexts": ["year:number"]})
        assert corpus.contexts["year"].tolist() == list(range(1990, 2010))


class TestBombs:
    @pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "docword.a.txt.gz"])
    def test_text_that_inflates_too_far_is_refused(self, tmp_path, monkeypatch, name):
        (tmp_path / "vocab.a.txt").write_text("lake\n")
        first = {"a.csv.gz": "t\n", "a.jsonl.gz": "", "docword.a.txt.gz": "9999\n1\n9999\n"}[name]
        row = {"a.csv.gz": "lake\n", "a.jsonl.gz": '{"t": "lake"}\n', "docword.a.txt.gz": "1 1 1\n"}[name]
        (tmp_path / name).write_bytes(gzip.compress((first + 9999 * row).encode()))
        monkeypatch.setattr(records, "SMALL_BYTES", 2000)
        with pytest.raises(ValueError, match=r"gz inflates to \d+ bytes or more, over 200 times its size; if that is"):
            read_own(tmp_path / name, {} if "docword" in name else {"text": "t"})
        if "docword" not in name:
            monkeypatch.setattr(records, "SMALL_BYTES", 10**6)
            assert read_own(tmp_path / name, {"text": "t"})[0].n_documents == 9999

    @pytest.mark.parametrize("shape", ["text", "list", "object", "map", "rows"])
    def test_parquet_that_inflates_too_far_is_refused_beforehand(self, tmp_path, monkeypatch, shape):
        monkeypatch.setattr(records, "SMALL_BYTES", 10**7)
        rows, text = 2**11, "lake " * 2_000  # 20 MB of text
        same = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [text])
        ones = np.arange(rows + 1, dtype=np.int32)
        columns = {
            "text": same,
            "list": pa.ListArray.from_arrays(ones, same),
            "object": pa.StructArray.from_arrays([same], ["w"]),
            "map": pa.MapArray.from_arrays(ones, same.dictionary_decode()[:1].take(np.zeros(rows, np.int32)), ones[1:]),
            "rows": pa.repeat(1, 2**22),
        }
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"t": columns[shape]}), path)
        assert path.stat().st_size < 20_000
        with pytest.raises(ValueError, match=r"a\.parquet inflates to \d+ bytes or more, over 1000 times its size"):
            read_own(path, {"bag": "t"})

    def test_every_type_of_parquet_is_read_as_arrow_shows_it(self, tmp_path):
        columns = {
            "text": pa.array(["a", None, "c"]),
            "large": pa.array(["a", None, "c"], pa.large_string()),
            "categories": pa.array(["x", "y", "x"]).dictionary_encode(),
            "numbers": pa.array([1, 2, 1]).dictionary_encode(),
            "list": pa.array([["a", "b"], None, []]),
            "large_list": pa.array([["a"], None, ["b"]], pa.large_list(pa.large_string())),
            "map": pa.array([[("k", 1)], None, [("z", 2)]], pa.map_(pa.string(), pa.int64())),
            "object": pa.array([{"x": 1, "y": "q"}, None, {"x": 2, "y": "r"}]),
            "objects": pa.array([[{"w": "a", "n": 1}], None, []]),
            "decimal": pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal128(30, 2)),
            "none": pa.nulls(3),
            "a.b": pa.array(["p", "q", "r"]),
            "bytes": pa.array([b"a", None, b"c"]),
        }
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        for name, column in columns.items():
            assert [row for _, (row,) in records.read_rows(tmp_path / "a.parquet", [name])] == column.to_pylist()


class TestCleaning:
    @pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.xlsx"])
    def test_booleans_and_integers_are_names_in_a_bag(self, tmp_path, name):
        frame, path = pd.DataFrame({"t": ["lake", "sea"], "open": [True, False], "group": [2, 1]}), tmp_path / name
        if name == "a.parquet":
            frame.astype({"group": "category"}).to_parquet(path)
        elif name == "a.xlsx":
            frame.to_excel(path, index=False)
        else:
            path.write_text(
                frame.to_json(orient="records", lines=True) if "json" in name else frame.to_csv(index=False)
            )
        corpus, _ = read_own(path, {"text": "t", "contexts": ["open:bag", "group:bag"], "labels": "open"})
        assert corpus.context_names == {"open": ["False", "True"], "group": ["1", "2"]}
        assert (corpus.label_names, corpus.labels.tolist()) == (["False", "True"], [1, 0])
        with pytest.raises(ValueError, match=r"found 'True'|found True.*; a finite number") as caught:
            read_own(path, {"text": "t", "contexts": ["open:number"]})
        assert "a context of names is of kind bag: open:bag" in str(caught.value)

    def test_names_read_as_numbers_are_told_their_kind_once(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("text,president\n" + "red lake,Lincoln\n" * 30)
        with pytest.raises(ValueError, match="30 of 30 rows") as caught:
            read_own(path, {"text": "text", "contexts": ["president:number"]})
        said = str(caught.value)
        assert said.count("a context of names is of kind bag: president:bag") == 1
        assert "--skip-bad" not in said  # would leave no document
        assert read_own(path, {"text": "text", "contexts": ["president:bag"]})[0].contexts["president"].sum() == 30

    def test_dates_of_another_form_are_refused_with_the_option(self, tmp_path):
        (tmp_path / "a.csv").write_text("text,when\n" + "lake,31/12/2021 23:59:58\n" * 3)
        with pytest.raises(ValueError, match="3 of 3 rows") as caught:
            read_own(tmp_path / "a.csv", {"text": "text", "contexts": ["when:date"]})
        assert "; --date-format '%d/%m/%Y %H:%M:%S' reads dates such as 31/12/2021 23:59:58:" in str(caught.value)
        assert "names" not in str(caught.value)
        given = {"text": "text", "contexts": ["when:date"], "date_format": "%d/%m/%Y %H:%M:%S"}
        assert read_own(tmp_path / "a.csv", given)[0].contexts["when"] == pytest.approx(2022)
        with pytest.raises(ValueError, match="and one of dates when:date"):
            read_own(tmp_path / "a.csv", {"text": "text", "contexts": ["when:number"]})

    def test_russian_dates_separators_and_rare_values_are_read(self, tmp_path, output_of):
        (tmp_path / "a.csv").write_text(
            'text,when,tags,who\n"Дом у реки, дом",02.07.2019,"a,b;c",ann\nРека,03.07.2019,"a",bob\nДом,,"d",ann\n'
        )
        command = ["import", str(tmp_path / "a.csv"), "--text", "text", "--stop-words", "russian"]
        command += [
            "--context", "when:date", "--date-format", "%d.%m.%Y", "--context", "tags:bag", "--separator", "tags=,",
        ]  # fmt: skip
        command += [
            "--context", "who:bag", "--rare", "who=2:pool", "--word-counts", "presence", "--out",
            str(tmp_path / "own"),
        ]  # fmt: skip
        sheet = output_of(command)
        corpus = Corpus.load(tmp_path / "own")
        assert corpus.vocabulary == ["дом", "река", "реки"]
        assert corpus.content.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
        assert corpus.context_names == {"tags": ["a", "b;c", "d"], "who": ["ann", "(rare)"]}
        assert corpus.contexts["when"][0] == pytest.approx(2019 + 182 / 365)
        assert "2019.5 to 2019.5" in sheet
        assert "stop words: russian" in sheet
        assert "each word of a document is counted once" in sheet
        assert "- 1 value of who: in fewer than 2 documents, counted as '(rare)'" in sheet
        # like it: an author never seen is as rare as those that were pooled
        (tmp_path / "new.csv").write_text('text,when,tags,who\nдом дом,04.07.2019,"a,x",zoe\n')
        mc2(f"import {tmp_path}/new.csv --like {tmp_path}/own --out {tmp_path}/n")
        new = Corpus.load(tmp_path / "n")
        assert new.contexts["who"].toarray().tolist() == [[0, 1]]
        assert new.content.toarray().tolist() == [[1, 0, 0]]
        (tmp_path / "new.csv").write_text("text,when,tags,who\nдом,04.07.2019,a,zoe\nдом\n")
        bad, like = ["--skip-bad", "1"], ["--like", str(tmp_path / "own")]
        new = ["import", str(tmp_path / "new.csv"), *like, *bad, "--overwrite", "--out", str(tmp_path / "n")]
        mc2(new)
        assert Corpus.load(tmp_path / "n").n_documents == 1

    def test_a_corpus_of_the_letters_a_to_z_is_followed_with_them(self, tmp_path):
        (tmp_path / "old.jsonl").write_text(json.dumps({"t": "eric stra tree"}) + "\n")
        old, _ = read_own(tmp_path / "old.jsonl", {"text": "t", "tokeniser": "a-z"})
        (tmp_path / "new.jsonl").write_text(json.dumps({"t": "Éric, Straße, TREE's tree of"}) + "\n")
        corpus, _ = read_own(tmp_path / "new.jsonl", {}, old)
        assert corpus.content.toarray().tolist() == [[1, 1, 2]]

    def test_pairs_of_characters_are_told_as_such(self, tmp_path, capsys):
        (tmp_path / "a.jsonl").write_text(json.dumps({"t": "日本語"}) + "\n")
        mc2(f"import {tmp_path}/a.jsonl --text t --out {tmp_path}/own")
        assert "are counted as overlapping pairs of characters, not as words" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--stop-words", "klingon"], "language of stop words is 'klingon'"),
            (["--stop-words", "/none.txt"], "/none.txt is missing"),
            (["--rare", "tags"], "rare 'tags' must have the form CONTEXT=N or CONTEXT=N:pool"),
            (["--rare", "year=2"], "rare values of 'year' cannot be left out"),
            (["--separator", "x"], "the separator 'x' is not valid"),
            (["--separator", "z=,"], "the separator ',' is for the column 'z', which is not used"),
            (["--max-df", "0"], "--max-df is 0.0; it must be above 0"),
            (["--max-ngram", "9"], "--max-ngram is 9; it must be a whole number of at least 1 and at most 5"),
            (["--skip-bad", "-1"], "--skip-bad is -1; it must be a whole number of at least 0"),
        ],
    )
    def test_bad_options_are_one_sentence(self, tmp_path, capsys, options, message):
        (tmp_path / "a.csv").write_text("text,year,tags\nlake,1990,a\n")
        command = ["import", str(tmp_path / "a.csv"), "--text", "text", "--context", "tags:bag", *options]
        assert main([*command, "--out", str(tmp_path / "own")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
