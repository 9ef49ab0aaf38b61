"""The bill of materials names what THIRD_PARTY.md says is linked, each with a licence and, where one is known, a version."""
import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def module(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


sbom = module("scripts/sbom.py")


def test_the_bill_has_each_library_that_is_linked():
    rows = sbom.third_parties((ROOT / "THIRD_PARTY.md").read_text())
    assert {name for name, _, _ in rows} == set(sbom.PACKAGES)
    assert all(address.startswith("https://") for _, address, _ in rows)


def test_pinned_versions_are_those_of_the_wheel(tmp_path):
    sbom.main("0.1.0", tmp_path / "a.json", ROOT / "packaging/wheel/third_parties.txt")
    bill = json.loads((tmp_path / "a.json").read_text())
    found = {component["name"]: component for component in bill["components"]}
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "1.6", "hvdrun")
    lines = (ROOT / "packaging/wheel/third_parties.txt").read_text().splitlines()
    pinned = {line.split()[0]: line.split()[1] for line in lines if line and not line.startswith("#")}
    assert found["OpenSSL"]["version"] == pinned["openssl"] and found["Gloo"]["version"] == pinned["gloo"]
    assert found["libstdc++ and libgcc"]["licenses"] == [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}]
    assert set(bill["dependencies"][0]["dependsOn"]) == set(found)


def test_a_wheel_has_it_where_tools_look(tmp_path):
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w") as wheel:
        for name in ("WHEEL", "RECORD"):
            wheel.writestr(f"hvdrun-0.1.0.dist-info/{name}", "Tag: py3-none-linux_x86_64\n")
        wheel.writestr("hvdrun-0.1.0.data/data/share/doc/hvdrun/hvdrun.cdx.json", "{}")
    (tmp_path / "hvdrun-0.1.0-py3-none-linux_x86_64.whl").write_bytes(text.getvalue())
    made = module("packaging/wheel/tag_wheel.py").retag(str(tmp_path / "hvdrun-0.1.0-py3-none-linux_x86_64.whl"), "manylinux_2_28_x86_64", str(tmp_path / "out"))
    names = zipfile.ZipFile(made).namelist()
    assert "hvdrun-0.1.0.dist-info/sboms/hvdrun.cdx.json" in names and not [name for name in names if "share/doc" in name]
    assert b"sboms/hvdrun.cdx.json,sha256=" in zipfile.ZipFile(made).read("hvdrun-0.1.0.dist-info/RECORD")


@pytest.mark.parametrize("script, product, parts", [("pure_wheel.py", "hvdrun", []), ("shim_wheel.py", "horovod", ["hvdrun"])])
def test_wheels_without_a_runtime_have_one_too(tmp_path, script, product, parts):
    subprocess.run([sys.executable, ROOT / "packaging/wheel" / script, tmp_path], check=True, capture_output=True)
    wheel = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    name = next(name for name in wheel.namelist() if name.endswith(f".dist-info/sboms/{product}.cdx.json"))
    bill = json.loads(wheel.read(name))
    assert bill["metadata"]["component"]["name"] == product and [part["name"] for part in bill["components"]] == parts
    assert f"{name},sha256=".encode() in wheel.read(name.split("/")[0] + "/RECORD")
