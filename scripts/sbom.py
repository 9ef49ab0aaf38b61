#!/usr/bin/env python3
"""sbom.py VERSION FILE [PINNED]: writes a bill of materials (CycloneDX 1.6): hvdrun and what THIRD_PARTY.md says is compiled or linked into it.
Versions are those of the installed packages of Debian, or those that PINNED (packaging/wheel/third_parties.txt) names; none where neither has one."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# As THIRD_PARTY.md calls it -> the source package in PINNED, and the package of Debian that a build is made with.
PACKAGES = {
    "Asio": (None, "libasio-dev"), "CLI11": (None, "libcli11-dev"), "spdlog": (None, "libspdlog-dev"), "fmt": (None, "libfmt-dev"),
    "JSON for Modern C++": (None, "nlohmann-json3-dev"), "yaml-cpp": ("yaml-cpp", "libyaml-cpp-dev"), "Eigen": (None, "libeigen3-dev"),
    "libssh2": ("libssh2", "libssh2-1-dev"), "zlib": ("zlib", "zlib1g-dev"), "OpenSSL": ("openssl", "libssl-dev"),
    "libstdc++ and libgcc": (None, "libgcc-12-dev"), "Gloo": ("gloo", "libgloo-dev"),
}


def third_parties(text):
    """(name, address, licence) of each row of the table of what is linked, and of Gloo."""
    rows = re.findall(r"^\| \[([^\]]*)\]\(([^)]*)\)[^|]*\| ([^|]*?) \|", text, re.M)
    linked = text.split("## Loaded when")[0]
    return [row for row in rows if f"[{row[0]}]" in linked or row[0] == "Gloo"]


def licence(text):
    """The SPDX expression in a cell: the first word, and an exception that has a name."""
    found = re.match(r"[\w.-]+(?: WITH [\w.-]+)?", text)
    return found.group(0)


def version_of(name, pinned):
    source, package = PACKAGES[name]
    if source in pinned:
        return pinned[source]
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 and done.stdout else None


def bill(version, pinned):
    components = []
    for name, address, terms in third_parties((ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")):
        component = {"type": "library", "bom-ref": name, "name": name, "licenses": [{"expression": licence(terms)}],
                     "externalReferences": [{"type": "website", "url": address}]}
        found = version_of(name, pinned)
        if found:
            component["version"] = found
        components.append(component)
    return document("hvdrun", version, components)


def document(name, version, components):
    """The bill of a product with these components."""
    product = {"type": "application", "bom-ref": name, "name": name, "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    return {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "metadata": {"component": product}, "components": components,
            "dependencies": [{"ref": name, "dependsOn": [component["bom-ref"] for component in components]}]}


def text_of(document):
    return json.dumps(document, indent=1) + "\n"


def main(version, file, pinned=None):
    lines = pathlib.Path(pinned).read_text(encoding="utf-8").splitlines() if pinned else []
    words = [line.split() for line in lines if line and not line.startswith("#")]
    pathlib.Path(file).write_text(text_of(bill(version, {name: at for name, at, *_ in words})), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
