# A package index of two wheels, for the tests of python.rs: `plain`, which is
# all of itself, and `needy`, which needs another package. Prints its port.
import functools
import hashlib
import http.server
import os
import sys
import zipfile

root = sys.argv[1]
for package, metadata in [("plain", ""), ("needy", "Requires-Dist: plain\n")]:
    folder = os.path.join(root, package)
    os.makedirs(folder)
    name = package + "-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr(package + ".py", "")
        wheel.writestr(package + "-1.0.dist-info/METADATA", "Name: %s\n%s\n" % (package, metadata))
    with open(os.path.join(folder, name), "rb") as wheel:
        digest = hashlib.sha256(wheel.read()).hexdigest()
    with open(os.path.join(folder, "index.html"), "w") as page:
        page.write('<a href="%s#sha256=%s">%s</a>' % (name, digest, name))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root))
print(server.server_address[1], flush=True)
server.serve_forever()
