#!/bin/sh
# Creates the root file system of the image: rootfs.sh BINARY FOLDER. It contains the binary, the libraries that it links (C and
# C++ runtimes), CA certificates, and an unprivileged user.
set -eu

binary=$1
root=$2

rm -rf "$root"
mkdir -p "$root/etc/ssl/certs" "$root/data" "$root/tmp" "$root/proc" "$root/dev"
chmod 1777 "$root/tmp"

install -m 755 "$binary" "$root/frolic"
# Lines like "libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)", and the loader, which has no arrow.
ldd "$binary" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  install -m 755 "$library" "$root$library"
done

if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
fi
echo 'frolic:x:65532:65532::/data:/sbin/nologin' >"$root/etc/passwd"
echo 'frolic:x:65532:' >"$root/etc/group"
# Names are looked up in files first, then by DNS; the runtime adds hosts and resolv.conf.
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
chown 65532:65532 "$root/data" 2>/dev/null || true
