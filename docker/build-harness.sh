#!/usr/bin/env bash
# Builds the image of the harness, with the wheel of this source tree.
#
#   docker/build-harness.sh [--base BASE_IMAGE] [IMAGE]      IMAGE: kidx/harness if not given
#
# With --base, an image with a Python, the build installs what the wheel needs. Without, the base is kidx/python, which
# docker/build-base.sh makes of this machine's own distribution, and all wheels come from the Python in PYTHON (python3
# if not given), which has to be of the same version: the build needs no network then.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here")
python=${PYTHON:-python3}
base=
if [ "${1:-}" = --base ]; then base=${2:?} && shift 2; fi
image=${1:-kidx/harness}

fail() { printf 'build-harness: %s\n' "$1" >&2 && exit 2; }

docker version >/dev/null 2>&1 || fail 'no Docker engine answers'
[ -f "$source/pyproject.toml" ] || fail "$source is no source tree of kidx"

context=$(mktemp -d)
trap 'rm -rf --one-file-system "$context"' EXIT
cp "$here/harness.Dockerfile" "$context/Dockerfile"
wheel=("$python" -m pip --quiet --disable-pip-version-check wheel --wheel-dir "$context/wheels")
if [ -n "$base" ]; then
    "${wheel[@]}" --no-deps "$source" || fail 'the wheel of kidx cannot be built'
    docker build --quiet --build-arg BASE_IMAGE="$base" --tag "$image" "$context" >/dev/null
else
    "$here/build-base.sh" kidx/python python3 python3-venv ca-certificates
    inside=$(docker run --rm kidx/python python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ "$inside" = "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ] ||
        fail "$python is not Python $inside, as kidx/python is; name one in PYTHON, or an image with --base"
    "${wheel[@]}" "$source[broker]" || fail 'a wheel cannot be built'
    docker build --quiet --build-arg BASE_IMAGE=kidx/python --build-arg PIP_NO_INDEX=1 --tag "$image" "$context" >/dev/null
fi
echo "$image is made: $(docker run --rm "$image" --version)"
