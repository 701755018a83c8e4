# Unpacks one wheel from PyPI into a folder, with nothing but Python itself:
# for systems whose Python has neither venv nor pip (Debian's, for one).
# Arguments: package, version, folder.
import hashlib
import html.parser
import io
import os
import platform
import sys
import urllib.parse
import urllib.request
import zipfile

package, version, folder = sys.argv[1:]
# The index in its oldest form, which every mirror has.
index = "%s/%s/" % (os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/"), package)


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


class Links(html.parser.HTMLParser):
    found = []

    def handle_starttag(self, tag, attributes):
        self.found += [urllib.parse.urljoin(index, value) for name, value in attributes if name == "href"]


Links().feed(fetch(index).decode())
begin = "%s-%s-" % (package, version)
for link in Links.found:
    url, _, digest = link.partition("#sha256=")
    filename = urllib.parse.unquote(url.rsplit("/", 1)[-1])
    if filename.startswith(begin) and filename.endswith(".whl") and digest and fits(filename):
        break
else:
    sys.exit("%s has no wheel of %s for %s" % (index, begin[:-1], platform.platform()))
data = fetch(url)
if hashlib.sha256(data).hexdigest() != digest:
    sys.exit("%s arrived damaged" % filename)
with zipfile.ZipFile(io.BytesIO(data)) as wheel:
    for name in wheel.namelist():
        if name.endswith(".dist-info/METADATA"):
            lines = wheel.read(name).decode().split("\n\n")[0].splitlines()
            others = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
            if others:
                sys.exit("%s needs more than itself: %s" % (filename, "; ".join(others)))
    for entry in wheel.infolist():
        path = wheel.extract(entry, folder)
        # zipfile forgets which files are programs.
        if entry.external_attr >> 16 & 0o111 and not entry.is_dir():
            os.chmod(path, 0o755)
