"""tag_wheel.py WHEEL PLATFORM FOLDER: writes the wheel into FOLDER with py3-none-PLATFORM as its tag, its bill of
materials in .dist-info/sboms, and all times alike."""
import base64
import hashlib
import os
import re
import sys
import zipfile

TIME = (1980, 1, 1, 0, 0, 0)  # equal builds give equal wheels


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def retag(path, platform, folder):
    tag = f"py3-none-{platform}"
    name = "-".join(os.path.basename(path).split("-")[:2]) + f"-{tag}.whl"
    with zipfile.ZipFile(path) as old:
        files = {info.filename: (old.read(info), info.external_attr) for info in old.infolist()}
    info = next(name for name in files if name.endswith(".dist-info/WHEEL"))
    text, mode = files[info]
    files[info] = (re.sub(rb"(?m)^Tag: .*$", b"Tag: " + tag.encode(), text), mode)
    for bill in [other for other in files if other.endswith("/share/doc/hvdrun/hvdrun.cdx.json")]:
        files[os.path.dirname(info) + "/sboms/hvdrun.cdx.json"] = files.pop(bill)  # where tools look for it (PEP 770)
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    listed = "".join(record_line(name, data) for name, (data, _) in sorted(files.items()) if name != record)
    files[record] = ((listed + f"{record},,\n").encode(), files[record][1])
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, name)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        # Installers want .dist-info last.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            data, mode = files[name]
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode
            new.writestr(entry, data)
    return target


if __name__ == "__main__":
    print(retag(*sys.argv[1:4]))
