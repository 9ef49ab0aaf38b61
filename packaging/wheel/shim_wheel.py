"""shim_wheel.py FOLDER: makes FOLDER/horovod-VERSION+hvdrun-py3-none-any.whl: an empty distribution `horovod` that requires hvdrun.

For environments in which something requires `horovod`: pip takes it for that, and the folder horovod/ is hvdrun's alone. It is in no
index, and its version has a local part, so that nobody takes it for Horovod.
"""
import pathlib
import re
import sys
import tomllib

from pure_wheel import REPO, sbom, write_wheel
from tag_wheel import record_line


def contents(version, hvdrun):
    info = f"horovod-{version}.dist-info"
    files = {
        f"{info}/METADATA": ("Metadata-Version: 2.1\nName: horovod\n" f"Version: {version}\n"
                             "Summary: Not Horovod: an empty distribution that stands for hvdrun, which has the package horovod\n"
                             "License: Apache-2.0\nRequires-Python: >=3.8\n" f"Requires-Dist: hvdrun>={hvdrun}\n").encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: hvdrun\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/HVDRUN": b"",
    }
    required = {"type": "library", "bom-ref": "hvdrun", "name": "hvdrun", "licenses": [{"expression": "Apache-2.0"}]}
    files[f"{info}/sboms/horovod.cdx.json"] = sbom.text_of(sbom.document("horovod", version, [required])).encode()
    record = f"{info}/RECORD"
    files[record] = ("".join(record_line(name, data) for name, data in sorted(files.items())) + f"{record},,\n").encode()
    return files


if __name__ == "__main__":
    package = (REPO / "runtime/python/horovod/__init__.py").read_text()
    version = re.search(r"^__version__ = '(.*)'", package, re.M).group(1) + "+hvdrun"
    with open(REPO / "pyproject.toml", "rb") as file:
        hvdrun = tomllib.load(file)["project"]["version"]
    target = pathlib.Path(sys.argv[1]) / f"horovod-{version}-py3-none-any.whl"
    write_wheel(target, contents(version, hvdrun))
    print(target)
