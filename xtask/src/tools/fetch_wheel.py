# Unpacks one wheel from PyPI into a folder, with nothing but Python itself:
# for systems whose Python has neither venv nor pip (Debian's, for one).
# Arguments: package, version, folder.
import hashlib
import io
import json
import os
import platform
import sys
import urllib.request
import zipfile

package, version, folder = sys.argv[1:]


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def fits(filename):
    """Whether a wheel for any Python 3 runs on this machine."""
    python, abi, platforms = filename[: -len(".whl")].split("-")[-3:]
    if "py3" not in python or abi != "none":
        return False
    system = {"Linux": "manylinux", "Darwin": "macosx", "Windows": "win"}.get(platform.system(), "?")
    if system == "manylinux" and not platform.libc_ver()[0]:
        system = "musllinux"
    machine = platform.machine().lower()
    machines = {"arm64": ["arm64", "aarch64"], "aarch64": ["arm64", "aarch64"], "amd64": ["amd64", "x86_64"], "x86_64": ["amd64", "x86_64"]}
    return platforms == "any" or any(
        tag.startswith(system) and any(tag.endswith(name) for name in machines.get(machine, [machine]))
        for tag in platforms.split(".")
    )


release = json.loads(fetch("https://pypi.org/pypi/%s/%s/json" % (package, version)))
wheels = [file for file in release["urls"] if file["filename"].endswith(".whl") and fits(file["filename"])]
if not wheels:
    sys.exit("PyPI has no wheel of %s %s for %s" % (package, version, platform.platform()))
data = fetch(wheels[0]["url"])
if hashlib.sha256(data).hexdigest() != wheels[0]["digests"]["sha256"]:
    sys.exit("%s arrived damaged" % wheels[0]["filename"])
with zipfile.ZipFile(io.BytesIO(data)) as wheel:
    for entry in wheel.infolist():
        path = wheel.extract(entry, folder)
        # zipfile forgets which files are programs.
        if entry.external_attr >> 16 & 0o111 and not entry.is_dir():
            os.chmod(path, 0o755)
