"""pure_wheel.py FOLDER: makes FOLDER/hvdrun-VERSION-py3-none-any.whl, for systems that the runtime is not built for.

It has the Python package alone: a world of one rank, and an hvdrun that starts one process. pip prefers a wheel of the platform, so it
reaches macOS, Windows and other processors only. Equal sources give equal bytes.
"""
import os
import pathlib
import sys
import tomllib
import zipfile

from tag_wheel import TIME, record_line

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))
import sbom  # noqa: E402
SUMMARY = "A world of one process for systems that hvdrun is not built for: import horovod.torch as hvd"
MARK = "horovod/lib/world_of_one"  # horovod.common._native looks for it


def metadata(project):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {SUMMARY}",
             f"License: {project['license']['text']}", f"Requires-Python: {project['requires-python']}",
             "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (REPO / "README.md").read_text()


def entry_points(project):
    text = "[console_scripts]\nhvdrun = horovod.runner._world_of_one:main\nhorovodrun = horovod.runner._world_of_one:main\n"
    for group, entries in project.get("entry-points", {}).items():
        text += f"\n[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
    return text


def contents(project):
    package = REPO / "runtime/python"
    files = {str(path.relative_to(package)): path.read_bytes()
             for path in sorted(package.glob("horovod/**/*")) if path.suffix == ".py" or path.name == "py.typed"}
    files[MARK] = b""
    info = f"{project['name']}-{project['version']}.dist-info"
    files[f"{info}/METADATA"] = metadata(project).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: hvdrun\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = entry_points(project).encode()
    for name in ("LICENSE", "NOTICE"):
        files[f"{info}/licenses/{name}"] = (REPO / name).read_bytes()
    bill = sbom.document(project["name"], project["version"], [])  # nothing but the package itself
    files[f"{info}/sboms/hvdrun.cdx.json"] = sbom.text_of(bill).encode()
    record = f"{info}/RECORD"
    files[record] = ("".join(record_line(name, data) for name, data in sorted(files.items())) + f"{record},,\n").encode()
    return files


def write_wheel(path, files):
    os.makedirs(path.parent, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        # Installers want .dist-info last.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, files[name])


if __name__ == "__main__":
    with open(REPO / "pyproject.toml", "rb") as file:
        described = tomllib.load(file)["project"]
    target = pathlib.Path(sys.argv[1]) / f"{described['name']}-{described['version']}-py3-none-any.whl"
    write_wheel(target, contents(described))
    print(target)
