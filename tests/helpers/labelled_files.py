"""Small archives of the labelled corpora."""

import io
import tarfile

IMAGES = {
    "train-data.dat": b"2 0:3 157:1\n1 7:2\n0\n",
    "train-label.dat": b"0\n7\n3\n",
    "test-data.dat": b"1 7:5\n",
    "test-label.dat": b"3\n",
}


TAGS = b"athlete, ball, athlete, \nsky, , water\n\nball\n"


INFO = b"polo image_0001.jpg\nrowing image_0001.jpg\npolo image_0002.jpg\nbocce image_0001.jpg\n"


ABSTRACTS = {
    f"o/training/C0{1 + j % 2}/000{j}": f"Heart disease{j} of the heart\n and liver.".encode() for j in range(4)
}


ADDRESSES = {
    f"u/{name}.txt": f"PRESIDENT {name.upper()}\nMy fellow citizens, peace {extra}".encode()
    for name, extra in (
        ("1963-Kennedy", "moon"), ("1963-Johnson", "war"), ("1965-Johnson-1", "war"), ("1965-Johnson-2", ""),
        ("1990-Bush", "moon"), ("2001-GWBush-1", "kennedy"),
    )
}  # fmt: skip


def write_tar(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
